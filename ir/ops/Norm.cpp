//===- Norm.cpp - types of normalisations --------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/ops/Infer.h"

using namespace tenon;
using namespace tenon::ir;

llvm::Error tenon::ir::inferFloatAxis(const OpView &op,
                                      InferContext &context) {
  if (llvm::Error error =
          checkElement(op, 0, isArithmeticFloat, "a float type"))
    return error;
  if (llvm::Error error = checkAxis(op, op.attrs<AxisAttrs>().axis))
    return error;
  context.results.push_back(op.type(0));
  return llvm::Error::success();
}

llvm::Error tenon::ir::inferNorm(const OpView &op, InferContext &context) {
  if (llvm::Error error =
          checkElement(op, 0, isArithmeticFloat, "a float type"))
    return error;
  const auto &attrs = op.attrs<NormAttrs>();
  if (llvm::Error error = checkAxis(op, attrs.axis))
    return error;
  if (!(attrs.epsilon >= 0))
    return userError("epsilon is {0}, expected 0 or more", attrs.epsilon);
  ShapeRef normalised = ShapeRef(op.type(0).shape).drop_front(attrs.axis);
  for (unsigned i = 1; i != op.operands.size(); ++i) {
    if (!op.has(i))
      continue;
    if (llvm::Error error = checkSameElement(op, 0, i))
      return error;
    if (llvm::Error error = requireShape(op, context, i, normalised))
      return error;
  }
  context.results.push_back(op.type(0));
  return llvm::Error::success();
}
