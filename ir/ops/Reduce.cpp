//===- Reduce.cpp - types of reductions ----------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/ops/Infer.h"

using namespace tenon;
using namespace tenon::ir;

namespace {

bool isOrdered(ElementType type) {
  return isArithmetic(type) || type == ElementType::Bool;
}

/// \p shape with the \p axes set to 1 or dropped.
Shape reducedShape(ShapeRef shape, llvm::ArrayRef<int64_t> axes,
                   bool keepdims) {
  Shape result;
  for (unsigned d = 0; d != shape.size(); ++d) {
    if (!llvm::is_contained(axes, d))
      result.push_back(shape[d]);
    else if (keepdims)
      result.push_back(1);
  }
  return result;
}

} // namespace

llvm::Error tenon::ir::inferReduce(const OpView &op, InferContext &context) {
  bool extreme = op.kind == OpKind::ReduceMax || op.kind == OpKind::ReduceMin;
  if (llvm::Error error =
          extreme ? checkElement(op, 0, isOrdered, "a number or bool")
                  : checkElement(op, 0, isArithmetic, "a number"))
    return error;
  const auto &attrs = op.attrs<ReduceAttrs>();
  for (size_t i = 0; i != attrs.axes.size(); ++i) {
    if (llvm::Error error = checkAxis(op, attrs.axes[i]))
      return error;
    if (i != 0 && attrs.axes[i] <= attrs.axes[i - 1])
      return userError("axes are not sorted and unique: {0} follows {1}",
                       attrs.axes[i], attrs.axes[i - 1]);
  }
  const TensorType &x = op.type(0);
  context.results.push_back(
      {x.element, reducedShape(x.shape, attrs.axes, attrs.keepdims)});
  return llvm::Error::success();
}

llvm::Error tenon::ir::inferArgReduce(const OpView &op, InferContext &context) {
  if (llvm::Error error = checkElement(op, 0, isOrdered, "a number or bool"))
    return error;
  const auto &attrs = op.attrs<ArgReduceAttrs>();
  if (llvm::Error error = checkAxis(op, attrs.axis))
    return error;
  const TensorType &x = op.type(0);
  if (x.shape[attrs.axis].isConstant(0))
    return userError("axis {0} of operand 'x' is empty: there is no extreme of "
                     "nothing",
                     attrs.axis);
  context.results.push_back(
      {ElementType::I64, reducedShape(x.shape, {attrs.axis}, attrs.keepdims)});
  return llvm::Error::success();
}
