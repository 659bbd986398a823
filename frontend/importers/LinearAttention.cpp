//===- LinearAttention.cpp - importers of linear attention ----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/Emitter.h"
#include "frontend/NodeView.h"
#include "frontend/OnnxOps.h"
#include "frontend/importers/Branches.h"
#include <cmath>

using namespace llvm;
using namespace tenon::ir;

namespace tenon::frontend {

//===----------------------------------------------------------------------===//
// LinearAttention
//===----------------------------------------------------------------------===//

namespace {

/// What update_rule names: whether the state decays, and whether what it says
/// of a key already is taken off the value first.
struct UpdateRule {
  StringLiteral name;
  bool decays, corrects;
};

constexpr UpdateRule rules[] = {{"linear", false, false},
                                {"gated", true, false},
                                {"delta", false, true},
                                {"gated_delta", true, true}};

class LinearAttentionImporter {
public:
  LinearAttentionImporter(NodeView &node, Emitter &emit)
      : node(node), emit(emit) {}
  Value *run();

private:
  bool readAttributes();
  Value *heads(unsigned input, Dim count, StringRef what);
  bool readInputs();
  Value *step(int64_t t);
  /// Step \p t of [B, T, ...] as [B, ...].
  Value *at(Value *x, int64_t t) { return emit.element(x, 1, Dim(t)); }

  NodeView &node;
  Emitter &emit;
  const UpdateRule *rule = nullptr;
  int64_t queryHeads = 0, keyHeads = 0, steps = 0;
  double scale = 0;
  /// q[B, T, Hkv, group, dk], k[B, T, Hkv, 1, dk], v[B, T, Hkv, 1, dv],
  /// decay[B, T, Hkv, dk or 1, 1], beta[B, T, Hkv or 1, 1, 1], state[B, Hkv,
  /// dk, dv]; f32.
  Value *q = nullptr, *k = nullptr, *v = nullptr, *decay = nullptr,
        *beta = nullptr, *state = nullptr;
};

bool LinearAttentionImporter::readAttributes() {
  queryHeads = node.requireInt("q_num_heads");
  keyHeads = node.requireInt("kv_num_heads");
  scale = node.floatAttr("scale", 0);
  node.ignoreAttr("chunk_size"); // A hint for how to compute it.
  StringRef name = node.strAttr("update_rule", "gated_delta");
  for (const UpdateRule &known : rules)
    if (name == known.name)
      rule = &known;
  if (!rule)
    node.fail("attribute 'update_rule' is '{0}'; expected linear, gated, delta "
              "or gated_delta",
              name);
  else if (queryHeads < 1 || keyHeads < 1 || queryHeads % keyHeads != 0)
    node.fail("it has {0} query heads and {1} key heads; expected a multiple",
              queryHeads, keyHeads);
  else if (rule->decays != (node.input(4) != nullptr))
    node.fail("the update rule '{0}' {1} the input 'decay'", name,
              rule->decays ? "needs" : "does not take");
  else if (rule->corrects != (node.input(5) != nullptr))
    node.fail("the update rule '{0}' {1} the input 'beta'", name,
              rule->corrects ? "needs" : "does not take");
  return !emit.failed();
}

/// [B, T, count * d] as f32[B, T, count, d].
Value *LinearAttentionImporter::heads(unsigned input, Dim count,
                                      StringRef what) {
  Value *x = node.input(input);
  std::optional<Dim> width =
      x->rank() == 3 ? Dim::divideExactly(x->shape()[2], count) : std::nullopt;
  if (!width)
    return node.fail("'{0}' is {1}; expected [batch, length, {2} heads]", what,
                     x->type, count);
  return emit.reshape(emit.cast(x, ElementType::F32),
                      {x->shape()[0], x->shape()[1], count, *width});
}

bool LinearAttentionImporter::readInputs() {
  Value *query = heads(0, Dim(queryHeads), "query"),
        *key = heads(1, Dim(keyHeads), "key"),
        *value = heads(2, Dim(keyHeads), "value");
  if (emit.failed())
    return false;
  Dim batch = key->shape()[0], length = key->shape()[1], heads = Dim(keyHeads),
      dk = key->shape()[3], dv = value->shape()[3];
  if (!length.constant() || !dk.constant()) {
    node.fail("its length is {0} and its keys have {1} elements; both must be "
              "known when compiling (give them values with --dim)",
              length, dk);
    return false;
  }
  steps = *length.constant();
  if (steps > unrollLimit) {
    node.fail("its length is {0}; at most {1} is supported", steps,
              unrollLimit);
    return false;
  }
  if (scale == 0)
    scale = 1 / std::sqrt(double(std::max<int64_t>(*dk.constant(), 1)));
  q = emit.reshape(query,
                   {batch, length, heads, Dim(queryHeads / keyHeads), dk});
  k = emit.reshape(key, {batch, length, heads, Dim(1), dk});
  v = emit.reshape(value, {batch, length, heads, Dim(1), dv});
  if (rule->decays) {
    decay = this->heads(4, heads, "decay");
    if (emit.failed())
      return false;
    decay = emit.op(OpKind::Exp,
                    {emit.reshape(decay, {batch, length, heads,
                                          decay->shape()[3], Dim(1)})});
  }
  if (rule->corrects) {
    Value *given = emit.cast(node.input(5), ElementType::F32);
    if (emit.failed() || given->rank() != 3) {
      node.fail("'beta' is {0}; expected [batch, length, heads or 1]",
                node.input(5)->type);
      return false;
    }
    beta =
        emit.reshape(given, {batch, length, given->shape()[2], Dim(1), Dim(1)});
  }
  Value *past = node.input(3);
  state = past ? emit.cast(past, ElementType::F32)
               : emit.filled(ElementType::F32, 0, {batch, heads, dk, dv});
  return !emit.failed();
}

/// One token: decay, correction, the new key and value, and the reading.
Value *LinearAttentionImporter::step(int64_t t) {
  Value *key = at(k, t), *value = at(v, t);
  if (decay)
    state = emit.mul(state, at(decay, t));
  if (beta)
    value = emit.mul(at(beta, t), emit.sub(value, emit.matmul(key, state)));
  state = emit.add(state, emit.mul(emit.transposeLast(key), value));
  return emit.mulScalar(emit.matmul(at(q, t), state), scale);
}

Value *LinearAttentionImporter::run() {
  if (!readAttributes() || !readInputs())
    return nullptr;
  Values outputs;
  for (int64_t t = 0; t < steps && !emit.failed(); ++t)
    outputs.push_back(step(t));
  ElementType type = node.input(0)->element();
  if (node.wantsOutput(1))
    node.setOutput(
        1, emit.cast(state, node.input(3) ? node.input(3)->element() : type));
  if (emit.failed())
    return nullptr;
  Dim batch = v->shape()[0], width = Dim(queryHeads) * v->shape()[4];
  if (outputs.empty())
    return emit.filled(type, 0, {batch, Dim(0), width});
  // [B, T, Hkv, group, dv]
  return emit.cast(
      emit.reshape(emit.stack(outputs, 1), {batch, Dim(steps), width}), type);
}

} // namespace

Value *importLinearAttention(NodeView &node, Emitter &emit) {
  return LinearAttentionImporter(node, emit).run();
}

//===----------------------------------------------------------------------===//
// CausalConvWithState
//===----------------------------------------------------------------------===//

/// A convolution of each channel with what came before: the past in front of
/// the input, and no other padding.
Value *importCausalConv(NodeView &node, Emitter &emit) {
  Value *x = node.input(0), *w = node.input(1), *bias = node.input(2),
        *past = node.input(3);
  StringRef activation = node.strAttr("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    return node.fail("attribute 'activation' is '{0}'; expected none, silu or "
                     "swish",
                     activation);
  if (x->rank() != 3 || w->rank() != 3 || !w->shape()[1].isConstant(1) ||
      !w->shape()[0].constant() || !w->shape()[2].constant())
    return node.fail("its input is {0} and its weights are {1}; expected "
                     "[batch, channels, length] and [channels, 1, k], known "
                     "when compiling",
                     x->type, w->type);
  Dim channels = w->shape()[0], before = w->shape()[2] - Dim(1);
  if (!past)
    past = emit.filled(x->element(), 0, {x->shape()[0], channels, before});
  Value *all = emit.concat({past, x}, 2);
  ConvAttrs attrs;
  attrs.strides = attrs.dilations = {1};
  attrs.padLow = attrs.padHigh = {0};
  attrs.groups = *channels.constant();
  Value *y = emit.op(OpKind::Conv, {all, w}, attrs);
  if (bias && !emit.failed())
    y = emit.add(y, emit.reshape(bias, {channels, Dim(1)}));
  if (activation != "none")
    y = emit.op(OpKind::QuickGelu, {y}, AlphaAttrs());
  if (node.wantsOutput(1) && !emit.failed())
    node.setOutput(1, emit.slice(all, 2, all->shape()[2] - before, before));
  return y;
}

} // namespace tenon::frontend
