//===- Norm.cpp - importers of normalisations ----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/DimMath.h"
#include "frontend/Emitter.h"
#include "frontend/NodeView.h"
#include "frontend/OnnxOps.h"
#include "frontend/Weights.h"
#include "frontend/importers/NormMath.h"
#include "llvm/ADT/Sequence.h"

using namespace llvm;
using namespace tenon::ir;

namespace tenon::frontend {

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

namespace {

Value *softmax(NodeView &node, Emitter &emit, OpKind kind) {
  Value *x = node.input(0);
  int64_t axis = node.checkedAxis(node.intAttr("axis", -1), x->rank());
  return emit.softmax(x, axis, kind);
}

/// Up to opset 12: over all dimensions from `axis` on as one.
Value *flatSoftmax(NodeView &node, Emitter &emit, OpKind kind) {
  Value *x = node.input(0);
  int64_t axis = node.checkedAxis(node.intAttr("axis", 1), x->rank());
  if (emit.failed())
    return nullptr;
  if (axis + 1 == int64_t(x->rank()))
    return emit.softmax(x, axis, kind);
  Shape flat(x->shape().take_front(axis));
  flat.push_back(numElements(x->shape().drop_front(axis)));
  return emit.reshape(emit.softmax(emit.reshape(x, flat), axis, kind),
                      x->shape());
}

} // namespace

Value *importSoftmax1(NodeView &node, Emitter &emit) {
  return flatSoftmax(node, emit, OpKind::Softmax);
}
Value *importSoftmax(NodeView &node, Emitter &emit) {
  return softmax(node, emit, OpKind::Softmax);
}
Value *importLogSoftmax1(NodeView &node, Emitter &emit) {
  return flatSoftmax(node, emit, OpKind::LogSoftmax);
}
Value *importLogSoftmax(NodeView &node, Emitter &emit) {
  return softmax(node, emit, OpKind::LogSoftmax);
}

//===----------------------------------------------------------------------===//
// Layer and RMS norm
//===----------------------------------------------------------------------===//

Value *normOperand(Emitter &emit, Value *operand, Value *x, int64_t axis,
                   StringRef what) {
  if (emit.failed() || !operand)
    return nullptr;
  ShapeRef wanted = x->shape().drop_front(axis);
  ShapeRef shape = operand->shape();
  while (shape.size() > wanted.size() && shape.front().isConstant(1))
    shape = shape.drop_front();
  std::optional<Shape> common = broadcastShapes(shape, wanted);
  if (!common || ShapeRef(*common) != wanted)
    return emit.fail("operand '{0}' is {1}; expected [{2}], the normalised "
                     "dimensions of {3}",
                     what, operand->type, formatDims(wanted), x->type);
  return emit.broadcast(emit.reshape(operand, shape), wanted);
}

Statistics statistics(Emitter &emit, Value *x, int64_t axis, double epsilon,
                      bool centred) {
  if (emit.failed())
    return {};
  auto axes = llvm::to_vector(llvm::seq<int64_t>(axis, x->rank()));
  x = emit.cast(x, ElementType::F32);
  Statistics result;
  if (centred) {
    result.mean = emit.reduce(OpKind::ReduceMean, x, axes, true);
    x = emit.sub(x, result.mean);
  }
  Value *square = emit.reduce(OpKind::ReduceMean, emit.mul(x, x), axes, true);
  result.inverse = emit.op(OpKind::Rsqrt, {emit.addScalar(square, epsilon)});
  return result;
}

namespace {

/// `stash_type` allows statistics of less precision than Tenon's.
void checkStashType(NodeView &node) {
  int64_t type = node.intAttr("stash_type", 1);
  if (type != 1 && type != 10 && type != 11 && type != 16)
    node.fail("attribute 'stash_type' is {0}; expected 1, 10, 11 or 16", type);
}

NormAttrs normAttrs(NodeView &node, Value *x, double epsilon) {
  NormAttrs attrs;
  attrs.axis = node.checkedAxis(node.intAttr("axis", -1), x->rank());
  attrs.epsilon = node.floatAttr("epsilon", float(epsilon));
  return attrs;
}

} // namespace

Value *importLayerNorm(NodeView &node, Emitter &emit) {
  Value *x = node.input(0);
  checkStashType(node);
  NormAttrs attrs = normAttrs(node, x, 1e-5);
  Value *gamma = normOperand(emit, node.input(1), x, attrs.axis, "Scale");
  Value *beta = normOperand(emit, node.input(2), x, attrs.axis, "B");
  if (node.wantsOutput(1) || node.wantsOutput(2)) {
    Statistics s = statistics(emit, x, attrs.axis, attrs.epsilon, true);
    if (node.wantsOutput(1))
      node.setOutput(1, s.mean);
    if (node.wantsOutput(2))
      node.setOutput(2, s.inverse);
  }
  return emit.op(OpKind::LayerNorm, {x, gamma, beta}, attrs);
}

namespace {

/// rms_norm whose result has the type of \p gamma.
Value *rmsNorm(Emitter &emit, Value *x, Value *scale, const NormAttrs &attrs) {
  Value *gamma = normOperand(emit, scale, x, attrs.axis, "scale");
  if (emit.failed())
    return nullptr;
  if (gamma->element() == x->element())
    return emit.op(OpKind::RmsNorm, {x, gamma}, attrs);
  Value *plain = emit.op(OpKind::RmsNorm, {x}, attrs);
  return emit.mul(emit.cast(plain, gamma->element()), gamma);
}

} // namespace

Value *importRmsNorm(NodeView &node, Emitter &emit) {
  Value *x = node.input(0), *scale = node.input(1);
  checkStashType(node);
  return rmsNorm(emit, x, scale, normAttrs(node, x, 1e-5));
}

Value *importSimplifiedLayerNorm(NodeView &node, Emitter &emit) {
  Value *x = node.input(0), *scale = node.input(1);
  checkStashType(node);
  NormAttrs attrs = normAttrs(node, x, 1e-5);
  if (node.wantsOutput(1))
    node.setOutput(
        1, statistics(emit, x, attrs.axis, attrs.epsilon, false).inverse);
  return rmsNorm(emit, x, scale, attrs);
}

//===----------------------------------------------------------------------===//
// Over channels
//===----------------------------------------------------------------------===//

namespace {

/// A value for each channel of x[N, C, ...], to be broadcast against it.
Value *perChannel(Emitter &emit, Value *value, Value *x, StringRef what) {
  if (emit.failed())
    return nullptr;
  if (x->rank() < 2 || value->rank() != 1 || value->shape()[0] != x->shape()[1])
    return emit.fail("operand '{0}' is {1}; expected one element for each "
                     "channel of {2}",
                     what, value->type, x->type);
  Shape shape(x->rank() - 1, Dim(1));
  shape[0] = value->shape()[0];
  return emit.reshape(value, shape);
}

/// Normalises x[N, C, ...] over each of \p groups groups of channels.
Value *groupNorm(Emitter &emit, Value *x, Dim groups, double epsilon) {
  ShapeRef s = x->shape();
  std::optional<Dim> width =
      Dim::divideExactly(numElements(s.drop_front()), groups);
  if (!width)
    return emit.fail("{0} does not divide into {1} groups of channels", x->type,
                     groups);
  NormAttrs attrs;
  attrs.axis = 2;
  attrs.epsilon = epsilon;
  Value *grouped = emit.reshape(x, {s[0], groups, *width});
  return emit.reshape(emit.op(OpKind::LayerNorm, {grouped}, attrs), s);
}

} // namespace

namespace {

/// Mean and variance of each channel of x[N, C, ...], as [C, 1, ...]; and what
/// training keeps of them: momentum * old + (1 - momentum) * new.
struct BatchStatistics {
  Value *mean, *variance;
};

BatchStatistics ofBatch(NodeView &node, Emitter &emit, Value *x,
                        double momentum) {
  auto axes = llvm::to_vector(llvm::seq<int64_t>(0, x->rank()));
  axes.erase(axes.begin() + 1);
  Value *f32 = emit.cast(x, ElementType::F32);
  Value *mean = emit.reduce(OpKind::ReduceMean, f32, axes, true);
  Value *centred = emit.sub(f32, mean);
  Value *variance =
      emit.reduce(OpKind::ReduceMean, emit.mul(centred, centred), axes, true);
  for (auto [i, now] : {std::pair(1u, mean), std::pair(2u, variance)}) {
    Value *old = node.input(i + 2);
    if (emit.failed() || !node.wantsOutput(i))
      continue;
    Value *flat = emit.cast(emit.reshape(now, {x->shape()[1]}), old->element());
    node.setOutput(i, emit.add(emit.mulScalar(old, momentum),
                               emit.mulScalar(flat, 1 - momentum)));
  }
  if (emit.failed())
    return {};
  Shape column(x->rank() - 1, Dim(1));
  column[0] = x->shape()[1];
  return {emit.reshape(mean, column), emit.reshape(variance, column)};
}

} // namespace

/// y = x * a + b with a = scale / sqrt(var + epsilon) and b = B - mean * a,
/// which are constants when the parameters are. With training_mode (opset 14),
/// mean and variance are the batch's.
Value *importBatchNorm(NodeView &node, Emitter &emit) {
  Value *x = node.input(0);
  double epsilon = node.floatAttr("epsilon", 1e-5f);
  double momentum = node.floatAttr("momentum", 0.9f);
  bool trains = node.version() >= 14 && node.flagAttr("training_mode", false);
  if (node.version() < 9 && !node.flagAttr("spatial", true))
    return node.fail("attribute 'spatial' is 0, which is not supported");
  Value *scale = perChannel(emit, node.input(1), x, "scale");
  Value *bias = perChannel(emit, node.input(2), x, "B");
  Value *mean = perChannel(emit, node.input(3), x, "mean");
  Value *variance = perChannel(emit, node.input(4), x, "var");
  if (emit.failed())
    return nullptr;
  if (trains) {
    BatchStatistics batch = ofBatch(node, emit, x, momentum);
    mean = emit.cast(batch.mean, mean->element());
    variance = emit.cast(batch.variance, variance->element());
  }
  Value *a = emit.div(
      scale, emit.op(OpKind::Sqrt, {emit.addScalar(variance, epsilon)}));
  if (emit.failed())
    return nullptr;
  ElementType type = x->element();
  Value *b = emit.sub(bias, emit.mul(mean, a));
  return emit.add(emit.mul(x, emit.cast(a, type)), emit.cast(b, type));
}

Value *importInstanceNorm(NodeView &node, Emitter &emit) {
  Value *x = node.input(0);
  double epsilon = node.floatAttr("epsilon", 1e-5f);
  Value *scale = perChannel(emit, node.input(1), x, "scale");
  Value *bias = perChannel(emit, node.input(2), x, "B");
  if (emit.failed())
    return nullptr;
  Value *normal = groupNorm(emit, x, x->shape()[1], epsilon);
  return emit.add(emit.mul(normal, scale), bias);
}

Value *importGroupNorm(NodeView &node, Emitter &emit) {
  Value *x = node.input(0);
  checkStashType(node);
  double epsilon = node.floatAttr("epsilon", 1e-5f);
  int64_t groups = node.requireInt("num_groups");
  Value *scale = perChannel(emit, node.input(1), x, "scale");
  Value *bias = perChannel(emit, node.input(2), x, "bias");
  if (!emit.failed() && groups < 1)
    return node.fail("attribute 'num_groups' is {0}", groups);
  if (emit.failed())
    return nullptr;
  Value *normal = groupNorm(emit, x, groups, epsilon);
  return emit.add(emit.mul(normal, scale), bias);
}

Value *importLpNorm(NodeView &node, Emitter &emit) {
  Value *x = node.input(0);
  int64_t axis = node.checkedAxis(node.intAttr("axis", -1), x->rank());
  int64_t p = node.intAttr("p", 2);
  if (p != 1 && p != 2)
    return node.fail("attribute 'p' is {0}; expected 1 or 2", p);
  Value *norm = emit.reduce(p == 1 ? OpKind::ReduceL1 : OpKind::ReduceL2, x,
                            {axis}, true);
  Value *zero = emit.scalar(x->element(), 0);
  return emit.where(emit.op(OpKind::Equal, {norm, zero}), zero,
                    emit.div(x, norm));
}

Value *importMeanVariance(NodeView &node, Emitter &emit) {
  Value *x = node.input(0);
  auto axes = node.findInts("axes").value_or(SmallVector<int64_t, 4>{0, 2, 3});
  for (int64_t &axis : axes)
    axis = node.checkedAxis(axis, x->rank());
  llvm::sort(axes);
  Value *centred = emit.sub(x, emit.reduce(OpKind::ReduceMean, x, axes, true));
  Value *variance =
      emit.reduce(OpKind::ReduceMean, emit.mul(centred, centred), axes, true);
  // The epsilon is that of ONNX's definition.
  return emit.div(centred,
                  emit.addScalar(emit.op(OpKind::Sqrt, {variance}), 1e-9));
}

} // namespace tenon::frontend
