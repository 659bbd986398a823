//===- AttentionMath.cpp - what importers of attention share -------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/importers/AttentionMath.h"
#include <limits>

using namespace llvm;
using namespace tenon::ir;

namespace tenon::frontend {

namespace {

constexpr double minusInfinity = -std::numeric_limits<double>::infinity();

/// 0 where \p keep holds and -inf elsewhere.
Value *maskToBias(Emitter &emit, Value *keep, ElementType type) {
  return emit.where(keep, emit.scalar(type, 0),
                    constantScalar(emit, type, minusInfinity));
}

/// x[B, H, S, N] with the heads that share one of \p heads side by side, as
/// [B, heads, (H / heads) * S, N]: so keys and values are read as they are.
Value *groupHeads(Emitter &emit, Value *x, Dim heads) {
  if (emit.failed() || x->shape()[1] == heads)
    return emit.failed() ? nullptr : x;
  ShapeRef s = x->shape();
  std::optional<Dim> times = Dim::divideExactly(s[1], heads);
  if (!times)
    return emit.fail("{0} query heads do not divide by {1} key heads", s[1],
                     heads);
  return emit.reshape(x, {s[0], heads, *times * s[2], s[3]});
}

/// \p x[B, H, S, ..] times \p y[B, heads of keys, .., N], by groups of heads:
/// [B, H, S, N].
Value *groupedProduct(Emitter &emit, Value *x, Value *y) {
  if (emit.failed())
    return nullptr;
  Value *product = emit.matmul(groupHeads(emit, x, y->shape()[1]), y);
  if (emit.failed() || x->shape()[1] == y->shape()[1])
    return product;
  ShapeRef s = x->shape();
  return emit.reshape(product, {s[0], s[1], s[2], y->shape()[3]});
}

/// The keys that causality and windows leave, as bool[1, 1, Sq, Skv], or null.
Value *visibleKeys(Emitter &emit, const AttentionParts &p) {
  const AttentionAttrs &a = p.attrs;
  Dim queries = p.q->shape()[1], keys = p.k->shape()[1];
  Value *visible = nullptr;
  auto restrict = [&](OpKind compare, int64_t shift) {
    Value *row = emit.add(emit.iota(queries, 4, 2),
                          emit.dimScalar(a.queryOffset + Dim(shift)));
    Value *keep = emit.op(compare, {emit.iota(keys, 4, 3), row});
    visible = visible ? emit.op(OpKind::And, {visible, keep}) : keep;
  };
  if (a.causality == Causality::Causal)
    restrict(OpKind::LessEqual, 0);
  if (a.windowRight >= 0)
    restrict(OpKind::LessEqual, a.windowRight);
  if (a.windowLeft >= 0)
    restrict(OpKind::GreaterEqual, -a.windowLeft);
  return visible;
}

} // namespace

Value *emitAttention(Emitter &emit, const AttentionParts &p) {
  return emit.op(OpKind::Attention, {p.q, p.k, p.v, p.mask}, p.attrs);
}

AttentionScores emitScores(Emitter &emit, const AttentionParts &p) {
  AttentionScores result;
  if (emit.failed())
    return result;
  ElementType type = p.q->element();
  Value *q = emit.transpose(p.q, {0, 2, 1, 3});
  Value *k = emit.transpose(p.k, {0, 2, 3, 1});
  result.scaled = emit.mulScalar(groupedProduct(emit, q, k), p.attrs.scale);
  result.capped = result.scaled;
  if (p.attrs.softcap != 0) {
    Value *cap = emit.scalar(type, p.attrs.softcap);
    result.capped =
        emit.mul(emit.op(OpKind::Tanh, {emit.div(result.scaled, cap)}), cap);
  }
  Value *bias = nullptr;
  if (emit.failed())
    return result;
  if (p.mask)
    bias = p.mask->element() == ElementType::Bool
               ? maskToBias(emit, p.mask, type)
               : emit.cast(p.mask, type);
  if (Value *visible = visibleKeys(emit, p)) {
    Value *causal = maskToBias(emit, visible, type);
    bias = bias ? emit.add(bias, causal) : causal;
  }
  result.masked = bias ? emit.add(result.capped, bias) : result.capped;
  result.weights = emit.softmax(result.masked, 3);
  if (!bias || p.attrs.maskedRow != MaskedRow::Zero || emit.failed())
    return result;
  // A row whose every key is masked is 0.
  Value *best = emit.reduce(OpKind::ReduceMax, bias,
                            {int64_t(bias->rank()) - 1}, /*keepdims=*/true);
  Value *none =
      emit.op(OpKind::Equal, {best, constantScalar(emit, type, minusInfinity)});
  result.weights = emit.where(none, emit.scalar(type, 0), result.weights);
  return result;
}

Value *emitWeighted(Emitter &emit, Value *weights, Value *v) {
  if (emit.failed())
    return nullptr;
  v = emit.transpose(v, {0, 2, 1, 3});
  return emit.transpose(groupedProduct(emit, weights, v), {0, 2, 1, 3});
}

Value *constantScalar(Emitter &emit, ElementType type, double value) {
  return emit.constant(Constant::scalar(type, value));
}

Value *splitHeads(Emitter &emit, Value *x, int64_t heads, StringRef what) {
  if (emit.failed())
    return nullptr;
  if (x->rank() != 3)
    return emit.fail("'{0}' is {1}; expected rank 3", what, x->type);
  std::optional<Dim> width =
      heads > 0 ? Dim::divideExactly(x->shape()[2], heads) : std::nullopt;
  if (!width)
    return emit.fail("the last dimension of '{0}', {1}, does not divide into "
                     "{2} heads",
                     what, x->type, heads);
  return emit.reshape(x, {x->shape()[0], x->shape()[1], Dim(heads), *width});
}

Value *mergeHeads(Emitter &emit, Value *x) {
  if (emit.failed())
    return nullptr;
  ShapeRef s = x->shape();
  return emit.reshape(x, {s[0], s[1], s[2] * s[3]});
}

Value *swapHeads(Emitter &emit, Value *x) {
  return emit.transpose(x, {0, 2, 1, 3});
}

Value *causalMask(Emitter &emit, Dim queries, Dim keys, Value *offset) {
  Value *last = emit.add(emit.iota(queries, 4, 2), offset);
  return emit.op(OpKind::LessEqual, {emit.iota(keys, 4, 3), last});
}

} // namespace tenon::frontend
