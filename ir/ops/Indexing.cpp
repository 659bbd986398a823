//===- Indexing.cpp - inference of ops that read, write or make indices --===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/ops/Infer.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace tenon::ir {

namespace {

bool isIndex(ElementType type) {
  return type == ElementType::I32 || type == ElementType::I64;
}

Error checkIndices(const OpView &op) {
  return checkElement(op, 1, isIndex, "i32 or i64");
}

/// Operand 1 of gather_elements and scatter_elements: x's rank, and no larger
/// than x but along \p axis. (Smaller is fine; whether an undecided size is too
/// large shows when running.)
Error checkElementIndices(const OpView &op, int64_t axis) {
  const TensorType &x = op.type(0), &indices = op.type(1);
  if (Error e = checkIndices(op))
    return e;
  if (Error e = checkAxis(op, axis))
    return e;
  if (Error e = checkRank(op, 1, x.rank(), x.rank()))
    return e;
  for (unsigned i = 0; i < x.rank(); ++i)
    if (i != axis && (indices.shape[i] - x.shape[i]).isAtLeast(1))
      return userError("dimension {0} of operand 'indices' is {1}, expected at "
                       "most {2} as in operand 'x'",
                       i, text(indices.shape[i]), text(x.shape[i]));
  return Error::success();
}

/// The length of the multi-indices that the last dimension of operand 1 holds;
/// they address x behind its first \p batchDims dimensions.
Expected<unsigned> indexDepth(const OpView &op, unsigned batchDims) {
  const TensorType &x = op.type(0), &indices = op.type(1);
  if (Error e = checkIndices(op))
    return e;
  if (Error e = checkRank(op, 0, batchDims + 1))
    return e;
  if (Error e = checkRank(op, 1, batchDims + 1))
    return e;
  Dim last = indices.shape.back();
  std::optional<int64_t> depth = last.constant();
  int64_t most = x.rank() - batchDims;
  if (!depth || *depth < 1 || *depth > most)
    return userError("the last dimension of operand 'indices' is {0}, expected "
                     "a constant from 1 to {1}",
                     text(last), most);
  return unsigned(*depth);
}

Error checkReduction(const OpView &op, ScatterReduction reduction) {
  if (reduction == ScatterReduction::None)
    return Error::success();
  return checkElement(op, 0, isArithmetic,
                      "a type with arithmetic for a reduction");
}

} // namespace

Error inferGather(const OpView &op, InferContext &context) {
  int64_t axis = op.attrs<AxisAttrs>().axis;
  const TensorType &x = op.type(0), &indices = op.type(1);
  if (Error e = checkIndices(op))
    return e;
  if (Error e = checkAxis(op, axis))
    return e;
  TensorType y{x.element, Shape(ShapeRef(x.shape).take_front(axis))};
  append_range(y.shape, indices.shape);
  append_range(y.shape, ShapeRef(x.shape).drop_front(axis + 1));
  context.results = {y};
  return Error::success();
}

Error inferGatherElements(const OpView &op, InferContext &context) {
  if (Error e = checkElementIndices(op, op.attrs<AxisAttrs>().axis))
    return e;
  context.results = {{op.type(0).element, op.type(1).shape}};
  return Error::success();
}

Error inferGatherNd(const OpView &op, InferContext &context) {
  int64_t batchDims = op.attrs<GatherNdAttrs>().batchDims;
  const TensorType &x = op.type(0), &indices = op.type(1);
  unsigned most = std::min(x.rank(), indices.rank());
  if (batchDims < 0 || batchDims >= int64_t(most))
    return userError("attribute 'batch_dims' is {0}, expected less than {1}, "
                     "the smaller rank of operands 'x' and 'indices'",
                     batchDims, most);
  Expected<unsigned> depth = indexDepth(op, batchDims);
  if (!depth)
    return depth.takeError();
  TensorType y{x.element, {}};
  for (unsigned i = 0; i < batchDims; ++i) {
    Expected<Dim> dim = unify(op, context, "batch dimensions", 0, x.shape[i], 1,
                              indices.shape[i]);
    if (!dim)
      return dim.takeError();
    y.shape.push_back(*dim);
  }
  append_range(y.shape,
               ShapeRef(indices.shape).drop_back().drop_front(batchDims));
  append_range(y.shape, ShapeRef(x.shape).drop_front(batchDims + *depth));
  context.results = {y};
  return Error::success();
}

Error inferScatterNd(const OpView &op, InferContext &context) {
  const TensorType &x = op.type(0), &indices = op.type(1);
  if (Error e = checkReduction(op, op.attrs<ScatterNdAttrs>().reduction))
    return e;
  Expected<unsigned> depth = indexDepth(op, 0);
  if (!depth)
    return depth.takeError();
  if (Error e = checkSameElement(op, 0, 2))
    return e;
  Shape updates(ShapeRef(indices.shape).drop_back());
  append_range(updates, ShapeRef(x.shape).drop_front(*depth));
  if (Error e = requireShape(op, context, 2, updates))
    return e;
  context.results = {x};
  return Error::success();
}

Error inferScatterElements(const OpView &op, InferContext &context) {
  const auto &attrs = op.attrs<ScatterElementsAttrs>();
  if (Error e = checkReduction(op, attrs.reduction))
    return e;
  if (Error e = checkElementIndices(op, attrs.axis))
    return e;
  if (Error e = checkSameElement(op, 0, 2))
    return e;
  if (Error e = requireShape(op, context, 2, op.type(1).shape))
    return e;
  context.results = {op.type(0)};
  return Error::success();
}

Error inferRange(const OpView &op, InferContext &context) {
  Dim count = op.attrs<CountAttrs>().count;
  for (unsigned i : {0, 1})
    if (Error e = checkRank(op, i, 0, 0))
      return e;
  if (Error e = checkElement(op, 0, isArithmetic,
                             "a float or integer type with arithmetic"))
    return e;
  if (Error e = checkSameElement(op, 0, 1))
    return e;
  if (Error e = checkSize("attribute 'count'", count))
    return e;
  context.results = {{op.type(0).element, {count}}};
  return Error::success();
}

Error inferOneHot(const OpView &op, InferContext &context) {
  const auto &attrs = op.attrs<OneHotAttrs>();
  const TensorType &indices = op.type(0), &values = op.type(1);
  if (Error e = checkElement(op, 0, isArithmetic, "an integer or float type"))
    return e;
  if (Error e = checkAxis("axis", attrs.axis, indices.rank() + 1, "the result"))
    return e;
  if (Error e = checkSize("attribute 'depth'", attrs.depth))
    return e;
  if (Error e = requireShape(op, context, 1, {Dim(2)}))
    return e;
  TensorType y{values.element, indices.shape};
  y.shape.insert(y.shape.begin() + attrs.axis, attrs.depth);
  context.results = {y};
  return Error::success();
}

Error inferNonZero(const OpView &op, InferContext &context) {
  Dim count = op.attrs<CountAttrs>().count;
  if (!count.symbolName())
    return userError("attribute 'count' is {0}, expected the name of the "
                     "symbol that it defines",
                     text(count));
  if (Error e = checkRank(op, 0, 1))
    return e;
  context.results = {{ElementType::I64, {Dim(op.type(0).rank()), count}}};
  return Error::success();
}

Error inferSameType(const OpView &op, InferContext &context) {
  if (Error e = checkAxis(op, op.attrs<CumSumAttrs>().axis))
    return e;
  if (Error e = checkElement(op, 0, isArithmetic,
                             "a float or integer type with arithmetic"))
    return e;
  context.results = {op.type(0)};
  return Error::success();
}

Error inferGreedyKeep(const OpView &op, InferContext &context) {
  const TensorType &y = op.type(1);
  for (unsigned i : {0, 1})
    if (Error e = checkElement(
            op, i, [](ElementType type) { return type == ElementType::Bool; },
            "bool"))
      return e;
  if (Error e = checkRank(op, 1, 1))
    return e;
  Shape drops = y.shape;
  drops.push_back(y.shape.back());
  if (Error e = requireShape(op, context, 0, drops))
    return e;
  context.results = {y};
  return Error::success();
}

Error inferTopK(const OpView &op, InferContext &context) {
  const auto &attrs = op.attrs<TopKAttrs>();
  TensorType y = op.type(0);
  if (Error e = checkAxis(op, attrs.axis))
    return e;
  if (Error e = checkElement(op, 0, isArithmetic,
                             "a float or integer type with arithmetic"))
    return e;
  if (Error e = checkSize("attribute 'k'", attrs.k))
    return e;
  Dim &dim = y.shape[attrs.axis];
  if ((attrs.k - dim).isAtLeast(1))
    return userError("attribute 'k' is {0}, expected at most {1}, the size of "
                     "dimension {2} of operand 'x'",
                     text(attrs.k), text(dim), attrs.axis);
  dim = attrs.k;
  context.results = {y, {ElementType::I64, y.shape}};
  return Error::success();
}

} // namespace tenon::ir
