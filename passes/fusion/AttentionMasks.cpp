//===- AttentionMasks.cpp - what an attention's operands say by indices --===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/fusion/AttentionMasks.h"
#include "passes/analysis/IndexExpr.h"
#include "llvm/ADT/STLExtras.h"

using namespace tenon;
using namespace tenon::ir;
using passes::MaskForm;
using passes::Visibility;

namespace {

void addMask(Visibility &visible, Value *mask, Builder &builder) {
  visible.mask = visible.mask ? builder.buildAnd({visible.mask, mask}) : mask;
}

/// The bounds of \p form as attributes say them, added to \p visible; false
/// when they cannot. Windows are counted from the query's own place.
bool takeBounds(const MaskForm &form, Visibility &visible) {
  if (visible.isBounded() || (!form.causalOffset && !form.windowLow))
    return false;
  Visibility taken = visible;
  if (form.causalOffset) {
    taken.causal = true;
    taken.queryOffset = *form.causalOffset;
  }
  if (form.windowLow) {
    // k >= q + low is k >= (q + offset) - left.
    if (!form.causalOffset)
      return false;
    Dim left = taken.queryOffset - *form.windowLow;
    std::optional<int64_t> number = left.constant();
    if (!number || *number < 0)
      return false;
    taken.windowLeft = *number;
  }
  visible = taken;
  return true;
}

MaskForm formOf(passes::IndexAnalysis &analysis, Value *condition) {
  return analysis.maskForm(analysis.elementOf(condition), condition->shape());
}

} // namespace

void passes::setBounds(AttentionAttrs &attrs, const Visibility &visible) {
  if (!visible.isBounded())
    return;
  attrs.causality = visible.causal ? Causality::Causal : Causality::None;
  attrs.queryOffset = visible.queryOffset;
  attrs.windowLeft = visible.windowLeft;
}

bool passes::hasBounds(Module &module, Value *condition,
                       const Visibility &visible) {
  if (condition->rank() < 2)
    return false;
  IndexAnalysis analysis(module);
  MaskForm form = formOf(analysis, condition);
  Visibility trial = visible;
  return form.alwaysTrue() || takeBounds(form, trial);
}

void passes::takeCondition(Module &module, Value *condition,
                           Visibility &visible, Builder &builder) {
  if (condition->rank() < 2)
    return addMask(visible, condition, builder);
  IndexAnalysis analysis(module);
  ShapeRef shape = condition->shape();
  MaskForm form = formOf(analysis, condition);
  if (form.alwaysTrue())
    return;
  if (!takeBounds(form, visible))
    return addMask(visible, condition, builder);
  bool plain = llvm::all_of(form.rest, [&](const IndexExpr *e) {
    return analysis.isPlain(e, shape);
  });
  // Where it isn't, the tensor still says it all; the attributes let tiles be
  // skipped.
  if (!plain)
    return addMask(visible, condition, builder);
  for (const IndexExpr *e : form.rest)
    addMask(visible, analysis.materialize(e, shape, builder), builder);
}

Value *passes::beforeRepeatedHeads(Value *x, unsigned axis) {
  Op *merge = x->def(OpKind::Reshape);
  Op *repeat = merge ? merge->operand(0)->def(OpKind::Broadcast) : nullptr;
  if (!repeat || x->rank() != 4)
    return nullptr;
  Value *y = repeat->operand(0);
  ShapeRef from = y->shape(), to = repeat->result()->shape();
  if (from.size() != 5 || to.size() != 5 || !from[axis + 1].isConstant(1))
    return nullptr;
  // [.., Hkv, 1, ..] to [.., Hkv, n, ..] to [.., Hkv * n, ..]
  Shape expected(from.begin(), from.end());
  expected[axis + 1] = to[axis + 1];
  Shape merged(expected);
  merged.erase(merged.begin() + axis + 1);
  merged[axis] = from[axis] * to[axis + 1];
  return to == ShapeRef(expected) && x->shape() == ShapeRef(merged) ? y
                                                                    : nullptr;
}
