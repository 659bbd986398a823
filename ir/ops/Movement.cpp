//===- Movement.cpp - inference of ops that move elements ----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/ops/Infer.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace llvm;

namespace tenon::ir {

namespace {

Error checkShapeAttribute(ShapeRef shape) {
  for (auto [i, dim] : enumerate(shape))
    if (Error e = checkSize(
            "dimension " + std::to_string(i) + " of attribute 'shape'", dim))
      return e;
  return Error::success();
}

/// Whether start + i * step leaves [0, dim) for some 0 <= i < size, as far as
/// constants tell. Sums are taken in 128 bits: models hold INT64_MAX.
bool provablyOutside(Dim start, Dim size, int64_t step, Dim dim) {
  if ((Dim(-1) - start).isAtLeast(0))
    return true;
  std::optional<int64_t> first = start.constant(), count = size.constant(),
                         extent = dim.constant();
  if (!first || !count || !extent || *count <= 0)
    return false;
  __int128 last = *first + __int128(*count - 1) * step;
  return *first >= *extent || last < 0 || last >= *extent;
}

} // namespace

Error inferReshape(const OpView &op, InferContext &context) {
  const Dims &shape = op.attrs<ShapeAttrs>().shape;
  if (Error e = checkShapeAttribute(shape))
    return e;
  Dim from = numElements(op.type(0).shape), to = numElements(shape);
  for (Dim count : {from, to})
    if (Error e = checkSize("the number of elements", count))
      return e;
  if (provablyDifferent(from, to) || differByFactor(from, to))
    return userError("element counts differ: {0} in operand 'x' of shape {1}, "
                     "{2} in attribute 'shape' {3}",
                     text(from), text(op.type(0).shape), text(to), text(shape));
  constrain(context, from, to);
  context.results = {{op.type(0).element, Shape(shape)}};
  return Error::success();
}

Error inferBitCast(const OpView &op, InferContext &context) {
  ElementType from = op.type(0).element, to = op.attrs<CastAttrs>().to;
  if (bitWidth(from) != bitWidth(to))
    return userError("attribute 'to' is {0}, expected a type as wide as {1}",
                     mnemonic(to), mnemonic(from));
  context.results = {{to, op.type(0).shape}};
  return Error::success();
}

Error inferTranspose(const OpView &op, InferContext &context) {
  const Ints &perm = op.attrs<TransposeAttrs>().perm;
  const TensorType &x = op.type(0);
  if (Error e = checkLength("perm", perm.size(), x.rank()))
    return e;
  SmallBitVector seen(x.rank());
  TensorType y{x.element, {}};
  for (int64_t axis : perm) {
    if (Error e = checkAxis("entry of attribute 'perm'", axis, x.rank(),
                            operandText(op, 0)))
      return e;
    if (seen.test(axis))
      return userError("attribute 'perm' names dimension {0} twice", axis);
    seen.set(axis);
    y.shape.push_back(x.shape[axis]);
  }
  context.results = {y};
  return Error::success();
}

Error inferBroadcast(const OpView &op, InferContext &context) {
  const Dims &shape = op.attrs<ShapeAttrs>().shape;
  if (Error e = checkShapeAttribute(shape))
    return e;
  if (Error e = requireBroadcastsTo(op, context, 0, shape, "attribute 'shape'"))
    return e;
  context.results = {{op.type(0).element, Shape(shape)}};
  return Error::success();
}

Error inferSlice(const OpView &op, InferContext &context) {
  const auto &attrs = op.attrs<SliceAttrs>();
  const TensorType &x = op.type(0);
  if (Error e = checkLength("starts", attrs.starts.size(), x.rank()))
    return e;
  if (Error e = checkLength("sizes", attrs.sizes.size(), x.rank()))
    return e;
  if (Error e = checkLength("steps", attrs.steps.size(), x.rank()))
    return e;
  for (unsigned i = 0; i < x.rank(); ++i) {
    Dim start = attrs.starts[i], size = attrs.sizes[i];
    int64_t step = attrs.steps[i];
    if (step == 0)
      return userError("the step of dimension {0} is 0", i);
    if (Error e = checkSize("the size of dimension " + std::to_string(i), size))
      return e;
    if (provablyOutside(start, size, step, x.shape[i]))
      return userError("a slice of {0} elements from {1} with step {2} leaves "
                       "dimension {3} of operand 'x', which has {4}",
                       text(size), text(start), step, i, text(x.shape[i]));
  }
  context.results = {{x.element, Shape(attrs.sizes)}};
  return Error::success();
}

Error inferConcat(const OpView &op, InferContext &context) {
  if (op.operands.empty())
    return userError("there are no inputs, expected 1 or more");
  int64_t axis = op.attrs<AxisAttrs>().axis;
  if (Error e = checkAxis(op, axis))
    return e;
  TensorType y = op.type(0);
  for (unsigned k = 1; k < op.operands.size(); ++k) {
    const TensorType &x = op.type(k);
    if (Error e = checkSameElement(op, 0, k))
      return e;
    if (x.rank() != y.rank())
      return userError("ranks differ: {0} in {1}, {2} in {3}", y.rank(),
                       operandText(op, 0), x.rank(), operandText(op, k));
    for (unsigned d = 0; d < y.rank(); ++d) {
      if (d == axis) {
        y.shape[d] = y.shape[d] + x.shape[d];
        continue;
      }
      Expected<Dim> dim =
          unify(op, context, "sizes of dimension " + std::to_string(d), 0,
                y.shape[d], k, x.shape[d]);
      if (!dim)
        return dim.takeError();
      y.shape[d] = *dim;
    }
  }
  if (Error e = checkSize("the size of the result along 'axis'", y.shape[axis]))
    return e;
  context.results = {y};
  return Error::success();
}

Error inferPad(const OpView &op, InferContext &context) {
  const auto &attrs = op.attrs<PadAttrs>();
  TensorType y = op.type(0);
  if (Error e = checkLength("low", attrs.low.size(), y.rank()))
    return e;
  if (Error e = checkLength("high", attrs.high.size(), y.rank()))
    return e;
  if (op.has(1)) {
    if (Error e = checkRank(op, 1, 0, 0))
      return e;
    if (Error e = checkSameElement(op, 0, 1))
      return e;
  }
  for (unsigned i = 0; i < y.rank(); ++i) {
    Dim dim = y.shape[i];
    y.shape[i] = dim + attrs.low[i] + attrs.high[i];
    if (Error e = checkSize("dimension " + std::to_string(i) + " after padding",
                            y.shape[i]))
      return e;
    if (attrs.mode != PadMode::Constant && dim.isConstant(0) &&
        y.shape[i].isAtLeast(1))
      return userError("dimension {0} of operand 'x' is empty, which only mode "
                       "'constant' can pad",
                       i);
  }
  context.results = {y};
  return Error::success();
}

Error inferTrilu(const OpView &op, InferContext &context) {
  if (Error e = checkRank(op, 0, 2))
    return e;
  context.results = {op.type(0)};
  return Error::success();
}

} // namespace tenon::ir
