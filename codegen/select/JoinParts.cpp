//===- JoinParts.cpp - launches on parts of one product become one -------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/select/JoinParts.h"
#include "codegen/select/Tensor.h"
#include "llvm/ADT/STLExtras.h"

namespace tenon::codegen {

using ir::ElementType;
using kernel::Launch;
using kernel::Program;
using kernel::Unit;

namespace {

constexpr unsigned rank = 4;
/// So far apart launches are looked for.
constexpr unsigned window = 16;
constexpr unsigned maxParts = 4;

struct Part {
  View x, y;
  bool rotated = false;
};

/// Parts that one launch does.
struct Parts {
  std::vector<Part> list;
  std::vector<View> tables; ///< cos and sin, if any is rotated
  int64_t rotaryDim = 0;
  bool interleaved = false;

  unsigned source() const { return list.front().x.buffer; }
};

llvm::StringRef member(const Unit &unit, llvm::StringRef name) {
  for (const kernel::ConfigMember &member : unit.config)
    if (member.name == name)
      return member.value;
  return "";
}

/// \p view with four dimensions.
std::optional<View> widened(View view) {
  if (view.rank() == 0 || view.rank() > rank)
    return std::nullopt;
  while (view.rank() < rank)
    view = insertDim(view, 0);
  return view;
}

/// A copy, with or without a conversion among f32 and halves.
bool isCopy(const Unit &unit, const Launch &launch) {
  if (unit.kernel != "loop" || launch.views.size() != 2 ||
      !isGpuFloat(launch.views[0].element) ||
      !isGpuFloat(launch.views[1].element))
    return false;
  // One that takes place only sometimes has another grid.
  constexpr int64_t perBlock = 1024;
  if (launch.geometry->grid[0] !=
      Dim::ceilDiv(ir::numElements(launch.views[1].shape), Dim(perBlock)))
    return false;
  const kernel::Functor &functor = unit.functors[0];
  return functor.nodes.empty() || (functor.nodes.size() == 1 &&
                                   functor.nodes[0].kind == ir::OpKind::Cast);
}

std::optional<Parts> partsOf(const Program &program, const Launch &launch) {
  if (launch.kind != kernel::LaunchKind::Kernel || !launch.variants.empty())
    return std::nullopt;
  const Unit &unit = program.units[launch.unit];
  Parts parts;
  if (unit.kernel == "rotary_parts" && member(unit, "parts") == "1") {
    parts.list = {{launch.views[2], launch.views[3], true}};
    parts.tables = {launch.views[0], launch.views[1]};
    if (member(unit, "rotary_dim").getAsInteger(10, parts.rotaryDim))
      return std::nullopt;
    parts.interleaved = member(unit, "interleaved") == "true";
    return parts;
  }
  if (!isCopy(unit, launch))
    return std::nullopt;
  std::optional<View> x = widened(launch.views[0]),
                      y = widened(launch.views[1]);
  if (!x || !y)
    return std::nullopt;
  parts.list = {{*x, *y, false}};
  return parts;
}

bool canJoin(const Parts &all, const Parts &next) {
  if (all.source() != next.source() || all.list.size() == maxParts)
    return false;
  return all.tables.empty() || next.tables.empty() ||
         (all.tables == next.tables && all.rotaryDim == next.rotaryDim &&
          all.interleaved == next.interleaved);
}

/// Whether \p launch must stay behind the parts.
bool dependsOn(const Launch &launch, const Parts &parts) {
  auto touches = [&](unsigned buffer) {
    return llvm::any_of(
        launch.views, [&](const View &view) { return view.buffer == buffer; });
  };
  auto writes = [&](unsigned buffer) {
    return llvm::any_of(launch.results(), [&](const View &view) {
      return view.buffer == buffer;
    });
  };
  return launch.kind != kernel::LaunchKind::Kernel || writes(parts.source()) ||
         llvm::any_of(parts.tables,
                      [&](const View &view) { return writes(view.buffer); }) ||
         llvm::any_of(parts.list,
                      [&](const Part &part) { return touches(part.y.buffer); });
}

Config configOf(const Parts &parts) {
  llvm::SmallVector<ElementType> inputs, results;
  int64_t rotated = 0;
  for (const auto &[i, part] : llvm::enumerate(parts.list)) {
    inputs.push_back(part.x.element);
    results.push_back(part.y.element);
    rotated |= int64_t(part.rotated) << i;
  }
  Config config;
  config.rank("parts", parts.list.size())
      .integer("rotated", rotated)
      .types("Inputs", inputs)
      .types("Results", results)
      .integer("rotary_dim", parts.rotaryDim)
      .integer("half", parts.rotaryDim / 2)
      .flag("interleaved", parts.interleaved);
  return config;
}

class Joiner {
public:
  explicit Joiner(Program &program)
      : program(program), gone(program.launches.size(), false) {}

  void run() {
    for (const kernel::Segment &segment : program.segments)
      for (unsigned i = 0; i < segment.numLaunches; ++i)
        joinFrom(segment.firstLaunch + i,
                 segment.firstLaunch + segment.numLaunches);
    dropGone();
    dropUnits();
  }

private:
  void joinFrom(unsigned first, unsigned end) {
    if (gone[first])
      return;
    std::optional<Parts> all = partsOf(program, program.launches[first]);
    if (!all)
      return;
    llvm::SmallVector<unsigned> members{first};
    for (unsigned i = first + 1; i < std::min(end, first + window); ++i) {
      if (gone[i])
        continue;
      const Launch &launch = program.launches[i];
      std::optional<Parts> next = partsOf(program, launch);
      bool behind = dependsOn(launch, *all);
      if (next && !behind && canJoin(*all, *next)) {
        members.push_back(i);
        llvm::append_range(all->list, next->list);
        if (all->tables.empty()) {
          all->tables = next->tables;
          all->rotaryDim = next->rotaryDim;
          all->interleaved = next->interleaved;
        }
      } else if (behind) {
        break;
      }
    }
    if (members.size() > 1)
      replace(members, *all);
  }

  void replace(llvm::ArrayRef<unsigned> members, const Parts &parts) {
    Launch joined;
    joined.views = parts.tables;
    Dim items = 0;
    for (const Part &part : parts.list) {
      joined.views.push_back(part.x);
      Dim row = part.x.shape[3] - Dim(part.rotated ? parts.rotaryDim / 2 : 0);
      items =
          items + ir::numElements(ir::ShapeRef(part.x.shape).drop_back()) * row;
    }
    for (const Part &part : parts.list)
      joined.views.push_back(part.y);
    joined.numResults = parts.list.size();
    for (unsigned i : members) {
      const Launch &launch = program.launches[i];
      joined.flops = joined.flops + launch.flops;
      joined.bytes = joined.bytes + launch.bytes;
      joined.loc.merge(launch.loc);
      gone[i] = i != members.back();
    }
    constexpr unsigned threads = 256;
    joined.geometry.emplace();
    joined.geometry->threads = threads;
    joined.geometry->grid[0] = Dim::ceilDiv(items, Dim(threads));
    Config config = configOf(parts);
    completeConfig(config, joined.views, 0, threads);
    joined.unit = unitOf({"rotary_parts", std::move(config.members), {}});
    program.launches[members.back()] = std::move(joined);
  }

  unsigned unitOf(Unit unit) {
    auto text = [](const Unit &unit) {
      std::string out;
      llvm::raw_string_ostream os(out);
      kernel::print(unit, os);
      return out;
    };
    std::string wanted = text(unit);
    for (const auto &[i, known] : llvm::enumerate(program.units))
      if (known.kernel == unit.kernel && text(known) == wanted)
        return i;
    program.units.push_back(std::move(unit));
    return program.units.size() - 1;
  }

  void dropGone() {
    std::vector<Launch> kept;
    for (kernel::Segment &segment : program.segments) {
      unsigned first = segment.firstLaunch, count = segment.numLaunches;
      segment.firstLaunch = kept.size();
      for (unsigned i = first; i < first + count; ++i)
        if (!gone[i])
          kept.push_back(std::move(program.launches[i]));
      segment.numLaunches = kept.size() - segment.firstLaunch;
    }
    program.launches = std::move(kept);
  }

  /// Units that no launch has any more.
  void dropUnits() {
    std::vector<unsigned> number(program.units.size(), kernel::none);
    std::vector<Unit> kept;
    auto keep = [&](unsigned &unit) {
      if (unit == kernel::none)
        return;
      if (number[unit] == kernel::none) {
        number[unit] = kept.size();
        kept.push_back(std::move(program.units[unit]));
      }
      unit = number[unit];
    };
    for (Launch &launch : program.launches) {
      keep(launch.unit);
      for (kernel::Variant &variant : launch.variants)
        keep(variant.unit);
    }
    program.units = std::move(kept);
  }

  Program &program;
  std::vector<bool> gone;
};

} // namespace

void joinParts(Program &program) { Joiner(program).run(); }

} // namespace tenon::codegen
