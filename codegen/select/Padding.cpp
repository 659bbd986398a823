//===- Padding.cpp - where padding between tokens changes nothing ---------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/select/Padding.h"
#include "ir/OpDef.h"
#include "ir/RowUse.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

namespace tenon::codegen {

using ir::Dim;
using ir::Op;
using ir::OpKind;
using ir::Value;
using kernel::Padding;

namespace {

class SlotUse {
public:
  explicit SlotUse(const ir::Func &func) : func(func) {}

  Padding find() {
    if (!readInputs())
      return Padding::Nowhere;
    for (const Op &op : func.body) {
      if (op.kind() == OpKind::Return)
        continue;
      Source from = sourceOf(op);
      for (const Value *result : op.results())
        sources[result] = from;
      if (from == Source::Tokens)
        visit(op);
      if (allowed == Padding::Nowhere)
        break;
    }
    return allowed;
  }

private:
  const ir::Func &func;
  std::string batch;
  Padding allowed = Padding::Anywhere;

  /// What a value depends on; later ones win where several meet.
  enum class Source {
    Constants,
    Told,   ///< of attention_mask and position_ids
    Slots,  ///< of how tokens are numbered
    Tokens, ///< of tokens, or of caches
  };
  llvm::DenseMap<const Value *, Source> sources;

  void allow(Padding most) { allowed = std::min(allowed, most); }

  bool readInputs() {
    bool found = false;
    for (const auto &[i, port] : llvm::enumerate(func.inputs)) {
      const Value *input = func.body.argument(i);
      bool tells = port.name == "attention_mask" || port.name == "position_ids";
      sources[input] = tells ? Source::Told : Source::Tokens;
      if (port.name != "input_ids" || input->rank() != 2)
        continue;
      batch = input->shape()[0].symbolName().value_or("").str();
      found = counts(input->shape()[1]);
    }
    return found;
  }

  /// Whether \p dim has a size in it that grows with tokens.
  bool counts(Dim dim) const {
    bool found = false;
    dim.collectSymbols([&](llvm::StringRef name) { found |= name != batch; });
    return found;
  }

  Source sourceOf(const Op &op) const {
    Source from = Source::Constants;
    for (const Value *operand : op.operands())
      if (operand)
        from = std::max(from, sources.lookup(operand));
    return from < Source::Slots && numbersSlots(op, from) ? Source::Slots
                                                          : from;
  }

  /// Whether \p op, of no tokens, makes rows that differ from slot to slot.
  bool numbersSlots(const Op &op, Source from) const {
    bool told = from == Source::Told;
    switch (op.kind()) {
    case OpKind::Range:
      return llvm::any_of(op.result()->shape(),
                          [&](Dim dim) { return counts(dim); });
    case OpKind::Dims:
      return llvm::any_of(op.attrs<ir::DimsAttrs>().values,
                          [&](Dim dim) { return counts(dim); });
    case OpKind::Slice: // rows of a table; new rows of what was told
    case OpKind::CumSum:
      return !told && mentionsCounts(op);
    case OpKind::Concat:
    case OpKind::Gather:
      return false;
    default:
      return mentionsCounts(op) && !keepsRows(op);
    }
  }

  bool mentionsCounts(const Op &op) const {
    bool found = false;
    auto look = [&](const Value *value) {
      for (Dim dim : value ? value->shape() : ir::ShapeRef())
        found |= counts(dim);
    };
    llvm::for_each(op.operands(), look);
    llvm::for_each(op.results(), look);
    return found;
  }

  static bool keepsRows(const Op &op) {
    return ir::is(op, ir::ElementwiseOp) || ir::is(op, ir::ViewLike) ||
           op.kind() == OpKind::Map || op.kind() == OpKind::Broadcast;
  }

  void visit(const Op &op) {
    auto isSlots = [&](const Value *value) {
      return value && sources.lookup(value) == Source::Slots;
    };
    if (op.kind() == OpKind::Attention) {
      const auto &attrs = op.attrs<ir::AttentionAttrs>();
      if (attrs.windowLeft >= 0 || attrs.windowRight > 0)
        allow(Padding::InFront);
      for (const Value *operand : op.operands().drop_front(3))
        if (operand && sources.lookup(operand) >= Source::Slots)
          allow(Padding::Nowhere);
      return;
    }
    if (llvm::any_of(op.operands(), isSlots))
      allow(op.kind() == OpKind::Rotary && !isSlots(op.operand(0))
                ? Padding::InFront
                : Padding::Nowhere);
    if (mixesTokens(op))
      allow(Padding::Nowhere);
  }

  bool mixesTokens(const Op &op) const {
    if (op.kind() == OpKind::Slice)
      return false;
    if (op.kind() == OpKind::Concat || op.kind() == OpKind::ScatterElements)
      return false;
    for (const Value *result : op.results())
      for (const auto &[d, dim] : llvm::enumerate(result->shape()))
        if (counts(dim) && !ir::rowUses(op, d))
          return true;
    return llvm::any_of(op.operands(), [&](const Value *operand) {
      return operand && sources.lookup(operand) == Source::Tokens &&
             losesRows(op, operand);
    });
  }

  /// Whether rows of \p operand are no rows of a result.
  bool losesRows(const Op &op, const Value *operand) const {
    for (const auto &[axis, dim] : llvm::enumerate(operand->shape()))
      if (counts(dim) && !isUsed(op, operand, axis))
        return true;
    return false;
  }

  bool isUsed(const Op &op, const Value *operand, unsigned axis) const {
    for (const Value *result : op.results())
      for (unsigned d = 0; d < result->rank(); ++d) {
        auto uses = ir::rowUses(op, d);
        for (const auto &[i, value] : llvm::enumerate(op.operands()))
          if (value == operand && uses && i < uses->size() &&
              (*uses)[i].axis == axis)
            return true;
      }
    return false;
  }
};

} // namespace

Padding paddingAllowed(const ir::Func &func) { return SlotUse(func).find(); }

} // namespace tenon::codegen
