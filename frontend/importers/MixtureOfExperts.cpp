//===- MixtureOfExperts.cpp - com.microsoft MoE and QMoE -----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

/// \file
/// A router gives each token the k experts it likes best, each with a weight:
///
///   p = softmax(router); w = p where it is among the k largest, else 0; where
///   asked for, divided by their sum
///   y = sum over e of w[e] * (act(x W1[e]^T + b1[e]) W2[e]^T + b2[e])
///
/// Here every expert sees every token and w is 0 for those that were not
/// chosen, which is right, and as much work as a dense model of that size.

#include "frontend/Emitter.h"
#include "frontend/NodeView.h"
#include "frontend/OnnxOps.h"
#include "frontend/importers/QuantMath.h"
#include <limits>

using namespace llvm;
using namespace tenon::ir;

namespace tenon::frontend {

namespace {

/// One linear layer of all experts: weights [E, N, K], bias [E, N] or null.
struct Layer {
  Value *weights = nullptr, *bias = nullptr;
};

/// x[E or 1, T, K] -> [E, T, N]
Value *apply(Emitter &emit, Value *x, const Layer &layer) {
  Value *y = emit.matmul(x, emit.transposeLast(layer.weights));
  if (!layer.bias || emit.failed())
    return y;
  ShapeRef s = layer.bias->shape();
  return emit.add(y, emit.reshape(layer.bias, {s[0], Dim(1), s[1]}));
}

struct GateAttrs {
  double alpha, beta, limit;
};

Value *clamp(Emitter &emit, Value *x, double low, double high) {
  if (emit.failed())
    return nullptr;
  if (high != std::numeric_limits<double>::infinity())
    x = emit.op(OpKind::Min, {x, emit.scalar(x->element(), high)});
  if (low != -std::numeric_limits<double>::infinity())
    x = emit.op(OpKind::Max, {x, emit.scalar(x->element(), low)});
  return x;
}

Value *quickGelu(Emitter &emit, Value *x, double alpha) {
  AlphaAttrs attrs;
  attrs.alpha = alpha;
  return emit.op(OpKind::QuickGelu, {x}, attrs);
}

/// min(g, limit) * sigmoid(alpha * ..) * (clamp(l) + beta)
Value *swiGlu(Emitter &emit, Value *gate, Value *linear, const GateAttrs &a) {
  gate = clamp(emit, gate, -std::numeric_limits<double>::infinity(), a.limit);
  linear = clamp(emit, linear, -a.limit, a.limit);
  if (a.beta != 0)
    linear = emit.addScalar(linear, a.beta);
  return emit.mul(quickGelu(emit, gate, a.alpha), linear);
}

/// Both halves of h[E, T, 2 * I], interleaved or one after the other.
std::pair<Value *, Value *> halves(NodeView &node, Emitter &emit, Value *h,
                                   bool interleaved) {
  if (emit.failed())
    return {};
  ShapeRef s = h->shape();
  std::optional<Dim> half = Dim::divideExactly(s[2], 2);
  if (!half) {
    node.fail("{0} rows of 'fc1_experts_weights' are not gate and up", s[2]);
    return {};
  }
  if (!interleaved)
    return {emit.slice(h, 2, Dim(0), *half), emit.slice(h, 2, *half, *half)};
  Value *pairs = emit.reshape(h, {s[0], s[1], *half, Dim(2)});
  Shape flat{s[0], s[1], *half};
  return {emit.reshape(emit.slice(pairs, 3, Dim(0), Dim(1)), flat),
          emit.reshape(emit.slice(pairs, 3, Dim(1), Dim(1)), flat)};
}

class Experts {
public:
  Experts(NodeView &node, Emitter &emit) : node(node), emit(emit) {
    activation = node.strAttr("activation_type", "relu").str();
    fusion = node.intAttr("swiglu_fusion", 0);
    gate = {node.floatAttr("activation_alpha", 1.0),
            node.floatAttr("activation_beta", 0.0),
            node.floatAttr("swiglu_limit",
                           std::numeric_limits<double>::infinity())};
    k = node.intAttr("k", 1);
    normalize = node.flagAttr("normalize_routing_weights", false);
    if (node.flagAttr("use_sparse_mixer", false))
      node.fail("attribute 'use_sparse_mixer' is 1, which is not supported");
    if (node.intAttr("swiglu_limit_after_activation", 0) != 0)
      node.fail("attribute 'swiglu_limit_after_activation' is not supported");
    if (fusion < 0 || fusion > 2)
      node.fail("attribute 'swiglu_fusion' is {0}; expected 0 to 2", fusion);
  }

  /// \p mixing are the experts' weights, if they are not the router's own.
  Value *run(Value *x, Value *router, Value *mixing, const Layer &first,
             const Layer &second, const Layer &third) {
    if (emit.failed())
      return nullptr;
    if (x->rank() != 2 && x->rank() != 3)
      return node.fail("'input' is {0}; expected rank 2 or 3", x->type);
    Dim hidden = x->shape().back(), tokens = x->shape()[0];
    if (x->rank() == 3)
      tokens = tokens * x->shape()[1];
    Value *rows = emit.reshape(x, {Dim(1), tokens, hidden});
    Value *h = activate(apply(emit, rows, first), rows, third);
    Value *y = apply(emit, h, second);
    Value *weights = mix(router, mixing);
    if (emit.failed())
      return nullptr;
    // [T, E] as [E, T, 1].
    ShapeRef s = weights->shape();
    weights =
        emit.reshape(emit.transpose(weights, {1, 0}), {s[1], s[0], Dim(1)});
    // Of an expert that is not chosen infinities do not count either.
    Value *zero = emit.scalar(weights->element(), 0);
    Value *shares = emit.where(emit.op(OpKind::Equal, {weights, zero}), zero,
                               emit.mul(y, weights));
    Value *sum = emit.reduce(OpKind::ReduceSum, shares, {0},
                             /*keepdims=*/false);
    return emit.reshape(sum, x->shape());
  }

  void alwaysNormalize() { normalize = true; }

private:
  NodeView &node;
  Emitter &emit;
  std::string activation;
  int64_t fusion = 0, k = 1;
  bool normalize = false;
  GateAttrs gate = {};

  Value *activate(Value *h, Value *rows, const Layer &third) {
    if (activation == "swiglu") {
      if (fusion == 0 && !third.weights)
        return node.fail("activation_type 'swiglu' with swiglu_fusion = 0 "
                         "needs 'fc3_experts_weights'");
      if (fusion == 0)
        return swiGlu(emit, h, apply(emit, rows, third), gate);
      auto [g, l] = halves(node, emit, h, fusion == 1);
      return swiGlu(emit, g, l, gate);
    }
    Value *y = nullptr;
    if (activation == "relu")
      y = emit.op(OpKind::Relu, {h});
    else if (activation == "gelu")
      y = emit.op(OpKind::GeluTanh, {h}); // as ONNX Runtime does
    else if (activation == "silu")
      y = quickGelu(emit, h, 1);
    else if (activation == "identity")
      y = h;
    else
      return node.fail("attribute 'activation_type' is '{0}'; expected relu, "
                       "gelu, silu, swiglu or identity",
                       activation);
    // A third layer gates the first, as in Mixtral.
    return third.weights ? emit.mul(y, apply(emit, rows, third)) : y;
  }

  /// What each expert's result is multiplied by: [T, E], 0 where it is not
  /// chosen.
  Value *mix(Value *router, Value *mixing) {
    if (emit.failed())
      return nullptr;
    std::optional<int64_t> experts =
        router->rank() == 2 ? router->shape()[1].constant() : std::nullopt;
    if (!experts || k < 1 || k > *experts)
      return node.fail("'router_probs' is {0}, of which k = {1} are chosen",
                       router->type, k);
    TopKAttrs top;
    top.axis = 1;
    top.k = k;
    Value *p = emit.softmax(router, 1);
    Op *chosen =
        emit.create(OpKind::TopK, {p}, std::make_unique<TopKAttrs>(top));
    if (!chosen)
      return nullptr;
    Value *values = chosen->result(0), *which = chosen->result(1);
    if (mixing) {
      AxisAttrs axis;
      axis.axis = 1;
      values = emit.op(OpKind::GatherElements, {mixing, which}, axis);
    }
    if (normalize)
      values = emit.div(values, emit.reduce(OpKind::ReduceSum, values, {1},
                                            /*keepdims=*/true));
    OneHotAttrs hot;
    hot.axis = 2;
    hot.depth = *experts;
    Value *offOn =
        emit.concat({emit.reshape(emit.scalar(ElementType::Bool, 0), {Dim(1)}),
                     emit.reshape(emit.scalar(ElementType::Bool, 1), {Dim(1)})},
                    0);
    Value *places = emit.op(OpKind::OneHot, {which, offOn}, hot); // [T, k, E]
    if (emit.failed())
      return nullptr;
    ShapeRef s = values->shape();
    return emit.reduce(OpKind::ReduceSum,
                       emit.where(places,
                                  emit.reshape(values, {s[0], s[1], Dim(1)}),
                                  emit.scalar(p->element(), 0)),
                       {1}, /*keepdims=*/false);
  }
};

/// Weights [E, N, K] from codes of \p bits bits with scales for each row or
/// each block of it; zero points are packed like the codes.
Value *dequantized(NodeView &node, Emitter &emit, Value *codes, Value *scales,
                   Value *zeros, int64_t bits, int64_t block,
                   ElementType type) {
  if (!codes || emit.failed())
    return nullptr;
  if (!scales)
    return node.fail("quantised experts need their scales");
  if (codes->element() != ElementType::U8 || codes->rank() != 3)
    return node.fail("quantised weights of experts are {0}; expected u8 of "
                     "rank 3",
                     codes->type);
  Value *q = unpackBits(emit, codes, bits);
  if (emit.failed())
    return nullptr;
  Dim experts = q->shape()[0], n = q->shape()[1], size = q->shape()[2];
  std::optional<Dim> blocks =
      block > 0 ? Dim::divideExactly(size, block) : std::optional<Dim>(1);
  if (!blocks)
    return node.fail("rows of {0} do not divide into blocks of {1}", size,
                     block);
  std::optional<Dim> width = Dim::divideExactly(size, *blocks);
  if (!width)
    return node.fail("rows of {0} do not divide into blocks of {1}", size,
                     block);
  Shape grouped{experts, n, *blocks, *width},
      single{experts, n, *blocks, Dim(1)};
  Value *zero = emit.scalar(type, double(int64_t(1) << (bits - 1)));
  if (zeros) {
    // Rows of zero points are whole bytes; without blocks, one row for all n.
    Value *all = unpackBits(emit, zeros, bits);
    if (emit.failed())
      return nullptr;
    int64_t last = int64_t(all->rank()) - 1;
    all = emit.slice(all, last, Dim(0), last == 2 ? *blocks : n);
    zero = emit.cast(emit.reshape(all, single), type);
  }
  Value *values = emit.sub(emit.cast(emit.reshape(q, grouped), type), zero);
  values = emit.mul(values, emit.reshape(emit.cast(scales, type), single));
  return emit.reshape(values, {experts, n, size});
}

} // namespace

Value *importMoE(NodeView &node, Emitter &emit) {
  Experts experts(node, emit);
  return experts.run(
      node.input(0), node.input(1), nullptr, {node.input(2), node.input(3)},
      {node.input(4), node.input(5)}, {node.input(6), node.input(7)});
}

Value *importQMoE(NodeView &node, Emitter &emit) {
  Experts experts(node, emit);
  StringRef type = node.strAttr("quant_type", "int");
  if (type != "int")
    return node.fail("attribute 'quant_type' is '{0}'; only 'int' is supported",
                     type);
  int64_t bits = node.intAttr("expert_weight_bits", 4);
  int64_t block = node.intAttr("block_size", 0);
  if (int64_t packed = node.intAttr("weights_prepacked", 0); packed > 0)
    return node.fail("attribute 'weights_prepacked' is {0}: weights in a "
                     "device's own layout are not supported",
                     packed);
  node.ignoreAttr("accuracy_level"); // Only allows less precision.
  Value *x = node.input(0), *router = node.input(1), *mixing = node.input(14);
  static constexpr const char *overrides[] = {"fc1_expert_weight_bits",
                                              "fc2_expert_weight_bits",
                                              "fc3_expert_weight_bits"};
  Layer layers[3];
  for (unsigned i = 0; i < 3; ++i) {
    int64_t own = node.intAttr(overrides[i], bits);
    if (own != 2 && own != 4 && own != 8)
      return node.fail("weights of {0} bits are not supported; expected 2, 4 "
                       "or 8",
                       own);
    layers[i].weights =
        dequantized(node, emit, node.input(2 + 3 * i), node.input(3 + 3 * i),
                    node.input(11 + i), own, block, x->element());
    layers[i].bias = node.input(4 + 3 * i);
  }
  // ONNX Runtime takes the softmax over those that are chosen.
  if (!mixing)
    experts.alwaysNormalize();
  return experts.run(x, router, mixing, layers[0], layers[1], layers[2]);
}

} // namespace tenon::frontend
