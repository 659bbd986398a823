//===- MicrosoftNorm.cpp - importers of ONNX Runtime's norms -------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/NodeView.h"
#include "frontend/OnnxOps.h"
#include "frontend/importers/NormMath.h"

using namespace llvm;
using namespace tenon::ir;

namespace tenon::frontend {

namespace {

/// norm(input + skip + bias) over the last dimension.
Value *skipNorm(NodeView &node, Emitter &emit, OpKind kind, Value *beta,
                Value *bias) {
  Value *x = node.input(0), *skip = node.input(1), *gamma = node.input(2);
  NormAttrs attrs;
  attrs.epsilon = node.floatAttr("epsilon", 1e-12f);
  Value *sum = emit.add(x, skip);
  if (bias)
    sum = emit.add(sum, bias);
  if (emit.failed())
    return nullptr;
  if (sum->type != x->type || x->rank() == 0)
    return node.fail("'skip' is {0} or the bias does not fit; both must "
                     "broadcast to the input, {1}",
                     skip->type, x->type);
  attrs.axis = int64_t(x->rank()) - 1;
  if (node.wantsOutput(1) || node.wantsOutput(2)) {
    Statistics s = statistics(emit, sum, attrs.axis, attrs.epsilon,
                              kind == OpKind::LayerNorm);
    if (node.wantsOutput(1))
      node.setOutput(1, s.mean);
    if (node.wantsOutput(2))
      node.setOutput(2, s.inverse);
  }
  if (node.wantsOutput(3))
    node.setOutput(3, sum);
  gamma = normOperand(emit, gamma, sum, attrs.axis, "gamma");
  beta = normOperand(emit, beta, sum, attrs.axis, "beta");
  if (kind == OpKind::RmsNorm)
    return emit.op(kind, {sum, gamma}, attrs);
  return emit.op(kind, {sum, gamma, beta}, attrs);
}

} // namespace

Value *importSkipLayerNorm(NodeView &node, Emitter &emit) {
  return skipNorm(node, emit, OpKind::LayerNorm, node.input(3), node.input(4));
}

Value *importSkipRmsNorm(NodeView &node, Emitter &emit) {
  return skipNorm(node, emit, OpKind::RmsNorm, nullptr, node.input(3));
}

Value *importEmbedLayerNorm(NodeView &node, Emitter &emit) {
  Value *ids = node.input(0), *segments = node.input(1), *words = node.input(2),
        *places = node.input(3), *segmentTable = node.input(4),
        *gamma = node.input(5), *beta = node.input(6), *mask = node.input(7),
        *positions = node.input(8);
  NormAttrs attrs;
  attrs.axis = 2;
  attrs.epsilon = node.floatAttr("epsilon", 1e-12f);
  int64_t indexType = node.intAttr("mask_index_type", 0);
  if (indexType != 0)
    return node.fail("attribute 'mask_index_type' is {0}; only 0 is supported",
                     indexType);
  if (ids->rank() != 2 || words->rank() != 2 || places->rank() != 2)
    return node.fail("'input_ids' is {0} and the tables are {1} and {2}; "
                     "expected rank 2",
                     ids->type, words->type, places->type);
  Dim batch = ids->shape()[0], length = ids->shape()[1];
  Value *sum = emit.gather(words, ids, 0);
  if (!positions)
    positions = emit.reshape(emit.iota(length, 1, 0), {Dim(1), length});
  sum = emit.add(sum, emit.gather(places, positions, 0));
  if ((segments == nullptr) != (segmentTable == nullptr))
    return node.fail("'segment_ids' and 'segment_embedding' must be given "
                     "together");
  if (segments)
    sum = emit.add(sum, emit.gather(segmentTable, segments, 0));
  if (emit.failed())
    return nullptr;
  if (node.wantsOutput(1)) {
    // How many tokens each sequence has.
    Value *count = emit.filled(ElementType::I32, 0, {batch});
    if (mask) {
      Value *one = emit.scalar(mask->element(), 1);
      Value *real =
          emit.cast(emit.op(OpKind::Equal, {mask, one}), ElementType::I32);
      count = emit.reduce(OpKind::ReduceSum, real, {1}, false);
    }
    node.setOutput(1, count);
  }
  if (node.wantsOutput(2))
    node.setOutput(2, sum);
  return emit.op(OpKind::LayerNorm,
                 {sum, normOperand(emit, gamma, sum, 2, "gamma"),
                  normOperand(emit, beta, sum, 2, "beta")},
                 attrs);
}

} // namespace tenon::frontend
