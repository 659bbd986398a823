//===- ShareWeights.cpp - one copy of a weight that is used in two ways ---===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/select/ShareWeights.h"
#include "codegen/kernels/cpu/gemm_pack.h"
#include "llvm/ADT/STLExtras.h"
#include <set>

namespace tenon::codegen {

using kernel::BufferKind;
using kernel::Launch;
using kernel::Program;
using kernel::Unit;
using kernel::View;
using kernel::Weight;
using kernel::WeightLayout;

namespace {

const kernel::ConfigMember *member(const Unit &unit, llvm::StringRef name) {
  for (const kernel::ConfigMember &member : unit.config)
    if (member.name == name)
      return &member;
  return nullptr;
}

bool is(const Unit &unit, llvm::StringRef name, llvm::StringRef value) {
  const kernel::ConfigMember *found = member(unit, name);
  return found && found->value == value;
}

/// Sharing of one table: the buffers of its two forms.
class Sharing {
public:
  Sharing(Program &program, unsigned rows, unsigned panels)
      : program(program), rows(rows), panels(panels),
        weight(program.weights[program.buffers[panels].index]) {}

  /// Whether the weight by rows is used, and by gathers of whole rows alone.
  bool isPossible() const {
    bool used = false;
    for (const Launch &launch : program.launches)
      for (const auto &[i, view] : llvm::enumerate(launch.views)) {
        if (view.buffer != rows)
          continue;
        if (i != 0 || !isGatherOfRows(launch))
          return false;
        used = true;
      }
    return used;
  }

  void apply() {
    std::set<unsigned> replaced;
    for (Launch &launch : program.launches) {
      if (launch.views.empty() || launch.views[0].buffer != rows)
        continue;
      replaced.insert(launch.unit);
      launch.views[0] = panelsView();
    }
    for (unsigned unit : replaced)
      replaceUnit(unit);
  }

private:
  bool isGatherOfRows(const Launch &launch) const {
    if (launch.kind != kernel::LaunchKind::Kernel)
      return false;
    const Unit &unit = program.units[launch.unit];
    return unit.kernel == "gather" && is(unit, "data_rank", "2") &&
           is(unit, "axis", "0") && launch.views[0] == tableView();
  }

  View tableView() const {
    return Program::contiguous(
        rows, {weight.value->element(),
               {kernel::Dim(weight.matrix.n), kernel::Dim(weight.matrix.k)}});
  }

  /// Whether two rows share a line (codes_pack.h).
  bool inPairs() const { return weight.layout == WeightLayout::Panels16Codes; }

  View panelsView() const {
    int64_t rows = inPairs() ? 2 : 1, width = tn::panel_columns * rows;
    int64_t count =
        (weight.matrix.n + tn::panel_columns - 1) / tn::panel_columns;
    return Program::contiguous(
        panels,
        {weight.value->element(),
         {kernel::Dim(count), kernel::Dim((weight.matrix.k + rows - 1) / rows),
          kernel::Dim(width)}});
  }

  /// The launches of unit \p number that read the panels get a unit that can:
  /// in its place if it has no others.
  void replaceUnit(unsigned number) {
    auto readsPanels = [&](const Launch &launch) {
      return launch.kind == kernel::LaunchKind::Kernel &&
             launch.unit == number && launch.views[0].buffer == panels;
    };
    bool isAlone = llvm::all_of(program.launches, [&](const Launch &launch) {
      return launch.kind != kernel::LaunchKind::Kernel ||
             launch.unit != number || readsPanels(launch);
    });
    const Unit &gather = program.units[number];
    Unit unit;
    unit.kernel = "gather_panels";
    unit.config = {*member(gather, "T"),
                   *member(gather, "Index"),
                   *member(gather, "indices_rank"),
                   {"int64_t", "entries", std::to_string(weight.matrix.n)},
                   {"bool", "pairs", inPairs() ? "true" : "false"}};
    if (isAlone) {
      program.units[number] = std::move(unit);
      return;
    }
    for (Launch &launch : program.launches)
      if (readsPanels(launch))
        launch.unit = program.units.size();
    program.units.push_back(std::move(unit));
  }

  Program &program;
  unsigned rows, panels;
  const Weight &weight; ///< in panels
};

/// Whether \p packed is a matrix of numbers in panels.
bool isPanels(const Weight &packed) {
  return packed.layout == WeightLayout::Panels16 ||
         (packed.layout == WeightLayout::Panels16Codes &&
          packed.value->element() == ir::ElementType::BF16);
}

/// Whether \p packed holds the table \p whole, transposed.
bool isTransposed(const Weight &packed, const Weight &whole) {
  llvm::ArrayRef<int64_t> shape = whole.value->shape();
  return isPanels(packed) && whole.layout == WeightLayout::RowMajor &&
         packed.value == whole.value && shape.size() == 2 &&
         packed.matrix.batch == 1 && packed.matrix.offset == 0 &&
         packed.matrix.n == shape[0] && packed.matrix.k == shape[1] &&
         packed.matrix.rowStride == 1 && packed.matrix.columnStride == shape[1];
}

} // namespace

void shareWeights(Program &program) {
  auto weightOf = [&](unsigned buffer) -> const Weight * {
    const kernel::Buffer &b = program.buffers[buffer];
    return b.kind == BufferKind::Weight ? &program.weights[b.index] : nullptr;
  };
  for (unsigned panels = 0; panels < program.buffers.size(); ++panels) {
    const Weight *packed = weightOf(panels);
    if (!packed || !isPanels(*packed))
      continue;
    for (unsigned rows = 0; rows < program.buffers.size(); ++rows) {
      const Weight *whole = weightOf(rows);
      if (!whole || !isTransposed(*packed, *whole))
        continue;
      Sharing sharing(program, rows, panels);
      if (sharing.isPossible())
        sharing.apply();
    }
  }
}

} // namespace tenon::codegen
