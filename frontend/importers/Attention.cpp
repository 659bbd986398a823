//===- Attention.cpp - importers of ONNX's attention ops -----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/DimMath.h"
#include "frontend/NodeView.h"
#include "frontend/OnnxOps.h"
#include "frontend/importers/AttentionMath.h"
#include <cmath>

using namespace llvm;
using namespace tenon::ir;

namespace tenon::frontend {

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

namespace {

/// What the attributes say besides the operands.
struct AttentionForm {
  bool causal = false;
  int64_t scoresMode = 0;
  bool threeDimensional = false;
};

/// Brings q, k and v to [B, S, H, D]: 3-D inputs are [B, S, H * D], 4-D ones
/// [B, H, S, D].
bool readHeads(NodeView &node, Emitter &emit, AttentionParts &p,
               AttentionForm &form) {
  Value *inputs[] = {node.input(0), node.input(1), node.input(2)};
  Value **targets[] = {&p.q, &p.k, &p.v};
  static constexpr StringLiteral names[] = {"Q", "K", "V"};
  unsigned rank = inputs[0]->rank();
  form.threeDimensional = rank == 3;
  std::optional<int64_t> heads = node.findInt("q_num_heads"),
                         keyHeads = node.findInt("kv_num_heads");
  if (rank == 3 && (!heads || !keyHeads)) {
    node.fail("inputs of rank 3 need the attributes 'q_num_heads' and "
              "'kv_num_heads'");
    return false;
  }
  for (unsigned i = 0; i < 3; ++i) {
    if (inputs[i]->rank() != rank || (rank != 3 && rank != 4)) {
      node.fail("'Q', 'K' and 'V' are {0}, {1} and {2}; expected all of rank 3 "
                "or all of rank 4",
                inputs[0]->type, inputs[1]->type, inputs[2]->type);
      return false;
    }
    std::optional<int64_t> count = i == 0 ? heads : keyHeads;
    *targets[i] = rank == 3 ? splitHeads(emit, inputs[i], *count, names[i])
                            : swapHeads(emit, inputs[i]);
    // Exporters repeat the number of heads of 4-D inputs.
    if (rank == 4 && count && inputs[i]->shape()[1] != Dim(*count)) {
      node.fail("'{0}' is {1}, but the attributes say {2} heads", names[i],
                inputs[i]->type, *count);
      return false;
    }
  }
  return !emit.failed();
}

/// Prepends past keys and values, and gives the present ones.
void readCache(NodeView &node, Emitter &emit, AttentionParts &p) {
  Value *pastKey = node.input(4), *pastValue = node.input(5);
  if ((pastKey == nullptr) != (pastValue == nullptr)) {
    node.fail("'past_key' and 'past_value' must be given together");
    return;
  }
  if (pastKey) {
    if (pastKey->rank() != 4 || pastValue->rank() != 4) {
      node.fail("'past_key' and 'past_value' are {0} and {1}; expected rank 4",
                pastKey->type, pastValue->type);
      return;
    }
    p.attrs.queryOffset = pastKey->shape()[2];
    Value *key = emit.concat({pastKey, swapHeads(emit, p.k)}, 2);
    Value *value = emit.concat({pastValue, swapHeads(emit, p.v)}, 2);
    p.k = swapHeads(emit, key);
    p.v = swapHeads(emit, value);
    if (node.wantsOutput(1))
      node.setOutput(1, key);
    if (node.wantsOutput(2))
      node.setOutput(2, value);
    return;
  }
  if (node.wantsOutput(1))
    node.setOutput(1, swapHeads(emit, p.k));
  if (node.wantsOutput(2))
    node.setOutput(2, swapHeads(emit, p.v));
}

/// A mask that is shorter than the keys hides the rest.
Value *readMask(NodeView &node, Emitter &emit, const AttentionParts &p) {
  Value *mask = node.input(3);
  if (!mask || emit.failed())
    return nullptr;
  if (mask->rank() == 0)
    return node.fail("'attn_mask' is a scalar; expected rank 1 to 4");
  bool isBool = mask->element() == ElementType::Bool;
  if (!isBool)
    mask = emit.cast(mask, p.q->element());
  Dim keys = p.k->shape()[1], length = mask->shape().back();
  if (length == keys || length.isConstant(1) || node.version() < 24)
    return mask;
  if (!(keys - length).isAtLeast(1))
    return mask; // Unrelated sizes: they must agree.
  PadAttrs pad;
  pad.low.assign(mask->rank(), Dim(0));
  pad.high.assign(mask->rank(), Dim(0));
  pad.high.back() = keys - length;
  Value *hidden = isBool ? emit.scalar(ElementType::Bool, 0)
                         : constantScalar(emit, mask->element(), -INFINITY);
  return emit.op(OpKind::Pad, {mask, hidden}, pad);
}

Value *both(Emitter &emit, Value *mask, Value *keep, ElementType type) {
  if (!mask || emit.failed())
    return keep;
  if (mask->element() == ElementType::Bool)
    return emit.op(OpKind::And, {mask, keep});
  return emit.where(keep, mask, constantScalar(emit, type, -INFINITY));
}

/// With an external cache each sequence has its own length, so that padding,
/// causality and windows become part of the mask.
void applyLengths(NodeView &node, Emitter &emit, AttentionParts &p,
                  AttentionForm &form) {
  Value *lengths = node.input(6);
  if (!lengths || emit.failed())
    return;
  if (node.hasInput(4)) {
    node.fail("'nonpad_kv_seqlen' cannot be combined with 'past_key'");
    return;
  }
  if (lengths->rank() != 1) {
    node.fail("'nonpad_kv_seqlen' is {0}; expected rank 1", lengths->type);
    return;
  }
  Dim queries = p.q->shape()[1], keys = p.k->shape()[1];
  ElementType type = p.q->element();
  Value *length = emit.reshape(emit.cast(lengths, ElementType::I64),
                               {lengths->shape()[0], Dim(1), Dim(1), Dim(1)});
  Value *key = emit.iota(keys, 4, 3);
  p.mask = both(emit, p.mask, emit.op(OpKind::Less, {key, length}), type);
  Value *offset = emit.sub(length, emit.dimScalar(queries));
  Value *place = emit.add(emit.iota(queries, 4, 2), offset);
  auto restrict = [&](OpKind compare, int64_t shift) {
    Value *limit = shift == 0 ? place : emit.addScalar(place, shift);
    p.mask = both(emit, p.mask, emit.op(compare, {key, limit}), type);
  };
  if (form.causal)
    restrict(OpKind::LessEqual, 0);
  if (p.attrs.windowRight >= 0)
    restrict(OpKind::LessEqual, p.attrs.windowRight);
  if (p.attrs.windowLeft >= 0)
    restrict(OpKind::GreaterEqual, -p.attrs.windowLeft);
  form.causal = false;
  p.attrs.windowLeft = p.attrs.windowRight = -1;
}

void readAttributes(NodeView &node, AttentionParts &p, AttentionForm &form) {
  form.causal = node.flagAttr("is_causal", false);
  form.scoresMode = node.intAttr("qk_matmul_output_mode", 0);
  if (form.scoresMode < 0 || form.scoresMode > 3)
    node.fail("attribute 'qk_matmul_output_mode' is {0}; expected 0 to 3",
              form.scoresMode);
  p.attrs.softcap = node.floatAttr("softcap", 0.0);
  if (p.attrs.softcap < 0)
    node.fail("attribute 'softcap' is {0}", p.attrs.softcap);
  // Tenon's softmax is at least as precise as any of these.
  int64_t precision = node.intAttr("softmax_precision", 1);
  if (precision != 1 && precision != 10 && precision != 11 && precision != 16)
    node.fail("attribute 'softmax_precision' is {0}; expected 1, 10, 11 or 16",
              precision);
  if (node.version() >= 25) {
    p.attrs.windowLeft = node.intAttr("left_window_size", -1);
    p.attrs.windowRight = node.intAttr("right_window_size", -1);
    if (p.attrs.windowLeft < -1 || p.attrs.windowRight < -1)
      node.fail("a window size is below -1");
  }
}

} // namespace

Value *importAttention(NodeView &node, Emitter &emit) {
  AttentionParts p;
  AttentionForm form;
  // A row that sees no key is 0.
  p.attrs.maskedRow = MaskedRow::Zero;
  readAttributes(node, p, form);
  if (!readHeads(node, emit, p, form))
    return nullptr;
  std::optional<int64_t> width = p.q->shape()[3].constant();
  if (std::optional<double> scale = node.findFloat("scale"))
    p.attrs.scale = *scale;
  else if (width && *width > 0)
    p.attrs.scale = 1.0 / std::sqrt(double(*width));
  else
    return node.fail("the size of a head must be known; 'Q' is {0}",
                     node.input(0)->type);
  readCache(node, emit, p);
  p.mask = readMask(node, emit, p);
  applyLengths(node, emit, p, form);
  p.attrs.causality = form.causal ? Causality::Causal : Causality::None;

  Value *y = nullptr;
  if (node.wantsOutput(3)) {
    AttentionScores s = emitScores(emit, p);
    Value *wanted[] = {s.scaled, s.capped, s.masked, s.weights};
    node.setOutput(3, wanted[form.scoresMode]);
    y = emitWeighted(emit, s.weights, p.v);
  } else {
    y = emitAttention(emit, p);
  }
  return form.threeDimensional ? mergeHeads(emit, y) : swapHeads(emit, y);
}

//===----------------------------------------------------------------------===//
// Rotary embedding
//===----------------------------------------------------------------------===//

namespace {

/// The rotated form of \p x ([B, S, H, D]).
Value *rotate(NodeView &node, Emitter &emit, Value *x, Value *cos, Value *sin,
              int64_t rotaryDim) {
  RotaryAttrs attrs;
  attrs.interleaved = node.flagAttr("interleaved", false);
  attrs.rotaryDim = rotaryDim;
  if (emit.failed())
    return nullptr;
  if (rotaryDim == 0) {
    std::optional<int64_t> width = x->shape()[3].constant();
    if (!width)
      return node.fail("the size of a head must be known; the input is {0}",
                       x->type);
    attrs.rotaryDim = *width;
  }
  return emit.op(OpKind::Rotary, {x, cos, sin}, attrs);
}

/// [B, H, S, D], or [B, S, H * D] with \p heads, to [B, S, H, D].
Value *rotaryHeads(NodeView &node, Emitter &emit, Value *x, int64_t heads) {
  if (x->rank() == 4)
    return swapHeads(emit, x);
  if (heads <= 0)
    return node.fail("an input of rank 3 needs the attribute 'num_heads'");
  return splitHeads(emit, x, heads, "X");
}

} // namespace

Value *importRotary(NodeView &node, Emitter &emit) {
  Value *x = node.input(0), *cos = node.input(1), *sin = node.input(2),
        *positions = node.input(3);
  int64_t heads = node.intAttr("num_heads", 0);
  int64_t rotaryDim = node.intAttr("rotary_embedding_dim", 0);
  if (positions) {
    if (cos->rank() != 2 || sin->rank() != 2)
      return node.fail(
          "with 'position_ids', 'cos_cache' and 'sin_cache' must be "
          "of rank 2; they are {0} and {1}",
          cos->type, sin->type);
    cos = emit.gather(cos, positions, 0);
    sin = emit.gather(sin, positions, 0);
  }
  Value *split = rotaryHeads(node, emit, x, heads);
  Value *y = rotate(node, emit, split, cos, sin, rotaryDim);
  return x->rank() == 4 ? swapHeads(emit, y) : mergeHeads(emit, y);
}

/// com.microsoft: positions are [B, S], or [1] with the position of the first
/// token.
Value *importMsRotary(NodeView &node, Emitter &emit) {
  Value *x = node.input(0), *positions = node.input(1), *cos = node.input(2),
        *sin = node.input(3);
  int64_t heads = node.intAttr("num_heads", 0);
  int64_t rotaryDim = node.intAttr("rotary_embedding_dim", 0);
  node.ignoreAttr("scale"); // ONNX Runtime does not read it either.
  if (node.flagAttr("is_packed_batching", false))
    return node.fail("attribute 'is_packed_batching' is 1, which is not "
                     "supported");
  if (cos->rank() != 2 || sin->rank() != 2)
    return node.fail("'cos_cache' and 'sin_cache' are {0} and {1}; expected "
                     "rank 2",
                     cos->type, sin->type);
  if (x->rank() == 3 && heads == 0) {
    std::optional<Dim> count =
        Dim::divideExactly(x->shape()[2], cos->shape()[1] * Dim(2));
    heads = count && count->constant() ? *count->constant() : 0;
  }
  Value *split = rotaryHeads(node, emit, x, heads);
  if (emit.failed())
    return nullptr;
  if (positions->rank() != 2) {
    Value *first = emit.reshape(positions, {Dim(1), Dim(1)});
    positions = emit.add(emit.cast(first, ElementType::I64),
                         emit.iota(split->shape()[1], 2, 1));
  }
  Value *y = rotate(node, emit, split, emit.gather(cos, positions, 0),
                    emit.gather(sin, positions, 0), rotaryDim);
  return x->rank() == 4 ? swapHeads(emit, y) : mergeHeads(emit, y);
}

} // namespace tenon::frontend
