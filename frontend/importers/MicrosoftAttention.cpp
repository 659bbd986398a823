//===- MicrosoftAttention.cpp - importers of ONNX Runtime's attention ----===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

/// \file
/// com.microsoft Attention and MultiHeadAttention. Their masks add
/// `mask_filter_value` (-10000 by default, so not -inf) to scores, also for
/// causality; what that gives for rows with no visible key is kept.

#include "frontend/DimMath.h"
#include "frontend/NodeView.h"
#include "frontend/OnnxOps.h"
#include "frontend/importers/AttentionMath.h"
#include <cmath>

using namespace llvm;
using namespace tenon::ir;

namespace tenon::frontend {

namespace {

struct MaskInputs {
  /// Key lengths [B], ends and starts [2B], flags [B, Skv] or [B, Sq, Skv].
  Value *padding = nullptr;
  Value *bias = nullptr;
  bool causal = false;
  double filter = -10000.0;
};

/// keep ? 0 : filter
Value *filtered(Emitter &emit, Value *keep, double filter, ElementType type) {
  return emit.where(keep, emit.scalar(type, 0),
                    constantScalar(emit, type, filter));
}

/// From 1-D forms: the first batch entries are where the keys end, and the
/// second, if there, where they start.
Value *keepByLength(Emitter &emit, Value *padding, Dim batch, Dim keys) {
  Value *key = emit.iota(keys, 4, 3);
  auto part = [&](Dim start) {
    return emit.reshape(
        emit.cast(emit.slice(padding, 0, start, batch), ElementType::I64),
        {batch, Dim(1), Dim(1), Dim(1)});
  };
  Value *keep = emit.op(OpKind::Less, {key, part(Dim(0))});
  if (padding->shape()[0] == batch)
    return keep;
  return emit.op(OpKind::And,
                 {keep, emit.op(OpKind::GreaterEqual, {key, part(batch)})});
}

/// The keys that padding leaves, as a bool that broadcasts to the scores.
Value *keepByPadding(NodeView &node, Emitter &emit, const AttentionParts &p,
                     Value *padding) {
  Dim batch = p.q->shape()[0], queries = p.q->shape()[1],
      keys = p.k->shape()[1];
  ShapeRef s = padding->shape();
  if (padding->rank() == 1) {
    if (s[0] == batch || s[0] == batch * Dim(2))
      return keepByLength(emit, padding, batch, keys);
    return node.fail("the mask is {0}; of rank 1, only [batch] and [2 * batch] "
                     "are supported",
                     padding->type);
  }
  Value *flags =
      emit.op(OpKind::Greater, {padding, emit.scalar(padding->element(), 0)});
  if (padding->rank() == 2)
    return emit.reshape(flags, {s[0], Dim(1), Dim(1), s[1]});
  if (padding->rank() == 3)
    return emit.reshape(flags, {s[0], Dim(1), s[1], s[2]});
  return node.fail("the mask is {0}; expected rank 1, 2 or 3 for {1} queries "
                   "and {2} keys",
                   padding->type, queries, keys);
}

/// Combines all masks of \p m into one that is added, or into causality where
/// nothing else masks (then -inf and the filter value give the same).
void applyMasks(NodeView &node, Emitter &emit, AttentionParts &p,
                const MaskInputs &m) {
  if (emit.failed())
    return;
  ElementType type = p.q->element();
  Value *mask = m.bias ? emit.cast(m.bias, type) : nullptr;
  auto add = [&](Value *other) { mask = mask ? emit.add(mask, other) : other; };
  if (m.padding)
    add(filtered(emit, keepByPadding(node, emit, p, m.padding), m.filter,
                 type));
  if (m.causal && !mask && m.filter <= -10000.0) {
    p.attrs.causality = Causality::Causal;
  } else if (m.causal) {
    Value *keep = causalMask(emit, p.q->shape()[1], p.k->shape()[1],
                             emit.dimScalar(p.attrs.queryOffset));
    add(filtered(emit, keep, m.filter, type));
  }
  p.mask = mask;
}

/// `scale`, where 0 and absence mean 1 / sqrt(D).
bool readScale(NodeView &node, AttentionParts &p) {
  double scale = node.floatAttr("scale", 0.0);
  std::optional<int64_t> width = p.q->shape()[3].constant();
  if (scale == 0.0 && (!width || *width <= 0)) {
    node.fail("the size of a head must be known");
    return false;
  }
  p.attrs.scale = scale != 0.0 ? scale : 1.0 / std::sqrt(double(*width));
  return true;
}

void refuseInput(NodeView &node, unsigned i, StringRef name) {
  if (node.hasInput(i))
    node.fail("the input '{0}' is not supported", name);
}

/// Prepends a past of [B, H, P, D] to \p x ([B, S, H, D]) and gives the whole
/// as [B, H, P + S, D].
Value *prependPast(Emitter &emit, Value *past, Value *x) {
  return emit.concat({past, swapHeads(emit, x)}, 2);
}

} // namespace

//===----------------------------------------------------------------------===//
// Attention: projections inside
//===----------------------------------------------------------------------===//

Value *importMsAttention(NodeView &node, Emitter &emit) {
  Value *x = node.input(0), *weights = node.input(1), *bias = node.input(2);
  int64_t heads = node.requireInt("num_heads");
  MaskInputs masks;
  masks.causal = node.flagAttr("unidirectional", false);
  masks.filter = node.floatAttr("mask_filter_value", -10000.0);
  masks.padding = node.input(3);
  masks.bias = node.input(5);
  for (StringRef flag : {"do_rotary", "past_present_share_buffer"})
    if (node.flagAttr(flag, false))
      return node.fail("attribute '{0}' is 1, which is not supported", flag);
  node.ignoreAttr("rotary_embedding_dim"); // Means nothing without do_rotary.
  refuseInput(node, 6, "past_sequence_length");
  auto sizes = node.findInts("qkv_hidden_sizes");
  if (emit.failed())
    return nullptr;
  if (weights->rank() != 2 || x->rank() != 3)
    return node.fail(
        "its input is {0} and its weights are {1}; expected rank 3 "
        "and rank 2",
        x->type, weights->type);
  if (!sizes || sizes->empty()) {
    std::optional<Dim> third = Dim::divideExactly(weights->shape()[1], Dim(3));
    if (!third || !third->constant())
      return node.fail("its weights are {0}; expected three equal parts",
                       weights->type);
    sizes = SmallVector<int64_t, 4>(3, *third->constant());
  }
  if (sizes->size() != 3 ||
      weights->shape()[1] != Dim((*sizes)[0] + (*sizes)[1] + (*sizes)[2]))
    return node.fail("attribute 'qkv_hidden_sizes' does not fit the weights, "
                     "{0}",
                     weights->type);

  Value *all = emit.matmul(x, weights);
  if (bias)
    all = emit.add(all, bias);
  AttentionParts p;
  int64_t start = 0;
  Value **targets[] = {&p.q, &p.k, &p.v};
  for (unsigned i = 0; i < 3; ++i) {
    *targets[i] = splitHeads(emit, emit.slice(all, 2, start, (*sizes)[i]),
                             heads, "input");
    start += (*sizes)[i];
  }
  if (emit.failed() || !readScale(node, p))
    return nullptr;

  // past and present are [2, B, H, S, D]: keys, then values.
  Value *past = node.input(4);
  if (past && past->rank() != 5)
    return node.fail("'past' is {0}; expected rank 5", past->type);
  Value *key = swapHeads(emit, p.k), *value = swapHeads(emit, p.v);
  if (past) {
    Shape one(past->shape().drop_front());
    p.attrs.queryOffset = one[2];
    key = prependPast(emit, emit.reshape(emit.slice(past, 0, 0, 1), one), p.k);
    value =
        prependPast(emit, emit.reshape(emit.slice(past, 0, 1, 1), one), p.v);
    p.k = swapHeads(emit, key);
    p.v = swapHeads(emit, value);
  }
  if (node.wantsOutput(1) && !emit.failed()) {
    Shape pair(key->shape());
    pair.insert(pair.begin(), Dim(1));
    node.setOutput(
        1,
        emit.concat({emit.reshape(key, pair), emit.reshape(value, pair)}, 0));
  }
  applyMasks(node, emit, p, masks);
  return mergeHeads(emit, emitAttention(emit, p));
}

//===----------------------------------------------------------------------===//
// MultiHeadAttention: projections outside
//===----------------------------------------------------------------------===//

namespace {

/// Adds the part of a packed bias that starts at \p start.
Value *addBias(Emitter &emit, Value *x, Value *bias, Dim &start) {
  if (emit.failed() || !bias)
    return x;
  Dim size = x->shape()[2] * x->shape()[3];
  Value *part = emit.slice(bias, 0, start, size);
  start = start + size;
  return emit.add(x, emit.reshape(part, {x->shape()[2], x->shape()[3]}));
}

/// Entry \p i of the packed dimension \p axis.
Value *unpack(Emitter &emit, Value *x, int64_t axis, int64_t i) {
  if (emit.failed())
    return nullptr;
  Shape shape(x->shape());
  shape.erase(shape.begin() + axis);
  return emit.reshape(emit.slice(x, axis, i, 1), shape);
}

/// query, key and value in their packed and plain forms, as [B, S, H, D].
/// \p bias is null when there is none.
bool readQkv(NodeView &node, Emitter &emit, AttentionParts &p, int64_t heads,
             Value *bias) {
  Value *q = node.input(0), *k = node.input(1), *v = node.input(2);
  if (q->rank() == 5 && !k && !v) { // [B, S, H, 3, D]
    p.q = unpack(emit, q, 3, 0);
    p.k = unpack(emit, q, 3, 1);
    p.v = unpack(emit, q, 3, 2);
  } else if (q->rank() == 3 && k && k->rank() == 5 && !v) { // [B, L, H, 2, D]
    p.q = splitHeads(emit, q, heads, "query");
    p.k = unpack(emit, k, 3, 0);
    p.v = unpack(emit, k, 3, 1);
  } else if (q->rank() == 3 && k && v && k->rank() == v->rank() &&
             (k->rank() == 3 || k->rank() == 4)) {
    p.q = splitHeads(emit, q, heads, "query");
    // 4-D: keys and values of cross attention, [B, H, L, D].
    p.k =
        k->rank() == 4 ? swapHeads(emit, k) : splitHeads(emit, k, heads, "key");
    p.v = v->rank() == 4 ? swapHeads(emit, v)
                         : splitHeads(emit, v, heads, "value");
  } else {
    node.fail(
        "'query', 'key' and 'value' are {0}, {1} and {2}, which is no form "
        "of MultiHeadAttention",
        q->type, k ? formatv("{0}", k->type).str() : "left out",
        v ? formatv("{0}", v->type).str() : "left out");
    return false;
  }
  Dim start(0);
  bool ready = k && k->rank() == 4; // Keys and values have their bias already.
  p.q = addBias(emit, p.q, bias, start);
  p.k = ready ? p.k : addBias(emit, p.k, bias, start);
  p.v = ready ? p.v : addBias(emit, p.v, bias, start);
  return !emit.failed();
}

} // namespace

Value *importMultiHeadAttention(NodeView &node, Emitter &emit) {
  AttentionParts p;
  int64_t heads = node.requireInt("num_heads");
  MaskInputs masks;
  masks.causal = node.flagAttr("unidirectional", false);
  masks.filter = node.floatAttr("mask_filter_value", -10000.0);
  masks.padding = node.input(4);
  masks.bias = node.input(5);
  refuseInput(node, 8, "past_sequence_length");
  refuseInput(node, 9, "cache_indirection");
  Value *bias = node.input(3);
  if (bias && bias->rank() != 1)
    return node.fail("'bias' is {0}; expected rank 1", bias->type);
  if (emit.failed() || !readQkv(node, emit, p, heads, bias) ||
      !readScale(node, p))
    return nullptr;

  Value *pastKey = node.input(6), *pastValue = node.input(7);
  if ((pastKey == nullptr) != (pastValue == nullptr))
    return node.fail("'past_key' and 'past_value' must be given together");
  if (pastKey && (pastKey->rank() != 4 || pastValue->rank() != 4))
    return node.fail("'past_key' and 'past_value' are {0} and {1}; expected "
                     "rank 4",
                     pastKey->type, pastValue->type);
  Value *key = swapHeads(emit, p.k), *value = swapHeads(emit, p.v);
  if (pastKey) {
    p.attrs.queryOffset = pastKey->shape()[2];
    key = prependPast(emit, pastKey, p.k);
    value = prependPast(emit, pastValue, p.v);
    p.k = swapHeads(emit, key);
    p.v = swapHeads(emit, value);
  }
  if (node.wantsOutput(1))
    node.setOutput(1, key);
  if (node.wantsOutput(2))
    node.setOutput(2, value);
  applyMasks(node, emit, p, masks);
  if (!node.wantsOutput(3))
    return mergeHeads(emit, emitAttention(emit, p));
  AttentionScores s = emitScores(emit, p);
  node.setOutput(3, s.scaled);
  return mergeHeads(emit, emitWeighted(emit, s.weights, p.v));
}

} // namespace tenon::frontend
