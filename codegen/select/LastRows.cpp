//===- LastRows.cpp - logits of the last tokens alone --------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/select/LastRows.h"

#include "ir/Builder.h"
#include "ir/OpDef.h"
#include "ir/RowUse.h"
#include "llvm/ADT/STLExtras.h"

namespace tenon::codegen {

using ir::Dim;
using ir::Op;
using ir::OpKind;
using ir::RowUse;
using ir::Value;

namespace {

class Narrower {
public:
  Narrower(ir::Module &module, ir::Func &func) : module(module), func(func) {}

  std::optional<LastRows> run(bool onlyLast) {
    Value *logits = findLogits();
    if (!logits)
      return std::nullopt;
    tokens = logits->shape()[1];
    std::string name = tokens.symbolName()->str();
    findOps(*logits);
    keepFirstProducts();
    if (!axisOf.contains(logits))
      return std::nullopt;
    Dim rows = onlyLast ? Dim(1) : module.freshSymbol("last_" + name);
    narrow(rows);
    return onlyLast ? LastRows() : LastRows{rows.symbolName()->str(), name};
  }

private:
  ir::Module &module;
  ir::Func &func;
  Dim tokens;
  /// The ops that compute fewer rows, the last first, and along which
  /// dimension their results have them.
  std::vector<Op *> ops;
  llvm::DenseMap<const Value *, unsigned> axisOf;

  Value *findLogits() const {
    Value *ids = nullptr, *logits = nullptr;
    for (const auto &[i, input] : llvm::enumerate(func.inputs))
      if (input.name == "input_ids")
        ids = func.body.argument(i);
    for (const auto &[i, output] : llvm::enumerate(func.outputs))
      if (output.name == "logits")
        logits = func.body.terminator()->operand(i);
    bool known = ids && logits && ids->rank() == 2 && logits->rank() == 3 &&
                 ids->shape()[1].symbolName() &&
                 ids->shape()[1] == logits->shape()[1];
    return known && logits->def() && logits->hasOneUse() ? logits : nullptr;
  }

  /// Whether all that use \p value need the same rows of it; which.
  std::optional<unsigned> neededRows(const Value &value) const {
    std::optional<unsigned> axis;
    for (ir::Use use : value.uses()) {
      if (use.op->kind() == OpKind::Return)
        return std::nullopt;
      std::optional<unsigned> rows = rowsTaken(*use.op, use.index);
      if (!rows || (axis && axis != rows))
        return std::nullopt;
      axis = rows;
    }
    return axis;
  }

  /// The rows that \p op takes of an operand, if it computes fewer.
  std::optional<unsigned> rowsTaken(const Op &op, unsigned operand) const {
    if (op.numResults() != 1)
      return std::nullopt;
    auto found = axisOf.find(op.result());
    if (found == axisOf.end())
      return std::nullopt;
    RowUse use = (*ir::rowUses(op, found->second))[operand];
    bool counts = use.axis && op.operand(operand)->shape()[*use.axis] == tokens;
    return counts ? use.axis : std::nullopt;
  }

  bool canNarrow(const Op &op, unsigned axis) const {
    const Value *result = op.result();
    if (result->shape()[axis] != tokens || !ir::rowUses(op, axis))
      return false;
    // Its only mention of how many tokens there are.
    for (const auto &[d, dim] : llvm::enumerate(result->shape()))
      if (d != axis && ir::mentions(dim, *tokens.symbolName()))
        return false;
    return true;
  }

  void findOps(const Value &logits) {
    axisOf[&logits] = 1;
    if (!canNarrow(*logits.def(), 1)) {
      axisOf.clear();
      return;
    }
    ops.push_back(logits.def());
    for (Op *op = logits.def()->prev(); op; op = op->prev()) {
      if (op->numResults() != 1 || op->result()->uses().empty())
        continue;
      std::optional<unsigned> axis = neededRows(*op->result());
      if (!axis || !canNarrow(*op, *axis))
        continue;
      axisOf[op->result()] = *axis;
      ops.push_back(op);
    }
  }

  void keepFirstProducts() {
    std::vector<Op *> kept;
    for (Op *op : llvm::reverse(ops)) {
      bool keepsAll =
          op->kind() == OpKind::MatMul || op->kind() == OpKind::Cast ||
          ir::is(*op, ir::ViewLike);
      if (keepsAll && !axisOf.contains(op->operand(0)))
        axisOf.erase(op->result());
      else
        kept.push_back(op);
    }
    ops.assign(kept.rbegin(), kept.rend());
  }

  void narrow(Dim rows) {
    llvm::DenseMap<std::pair<Value *, unsigned>, Value *> cut;
    for (Op *op : ops)
      for (unsigned i = 0; i < op->numOperands(); ++i) {
        Value *value = op->operand(i);
        if (!value || axisOf.contains(value))
          continue;
        if (std::optional<unsigned> axis = rowsTaken(*op, i)) {
          Value *&last = cut[{value, *axis}];
          if (!last)
            last = lastRows(value, *axis, rows);
          cuts.push_back({op, i, last});
        }
      }
    for (const Cut &c : cuts)
      c.op->setOperand(c.operand, c.value);
    for (Op *op : ops) {
      unsigned axis = axisOf[op->result()];
      ir::rewriteAttrDims(*op,
                          [&](Dim dim) { return dim == tokens ? rows : dim; });
      op->result()->type.shape[axis] = rows;
    }
  }

  struct Cut {
    Op *op;
    unsigned operand;
    Value *value;
  };
  std::vector<Cut> cuts;

  Value *lastRows(Value *value, unsigned axis, Dim rows) {
    ir::SliceAttrs attrs;
    attrs.starts.assign(value->rank(), Dim(0));
    attrs.sizes.assign(value->shape().begin(), value->shape().end());
    attrs.steps.assign(value->rank(), 1);
    attrs.starts[axis] = tokens - rows;
    attrs.sizes[axis] = rows;
    ir::Builder builder = value->def()
                              ? ir::Builder::after(value->def())
                              : ir::Builder::before(&func.body.front());
    if (value->def())
      builder.loc = value->def()->loc;
    return builder.buildSlice({value}, attrs);
  }
};

} // namespace

std::optional<LastRows> narrowLogits(ir::Module &module, ir::Func &func,
                                     bool onlyLast) {
  return Narrower(module, func).run(onlyLast);
}

} // namespace tenon::codegen
