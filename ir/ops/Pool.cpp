//===- Pool.cpp - types of pooling ---------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/ops/Windows.h"

using namespace tenon;
using namespace tenon::ir;

namespace {

llvm::Error checkPads(const PoolAttrs &attrs) {
  for (size_t d = 0; d != attrs.kernel.size(); ++d) {
    int64_t extent = (attrs.kernel[d] - 1) * attrs.dilations[d] + 1;
    if (attrs.padLow[d] >= extent || attrs.padHigh[d] >= extent)
      return userError("padding of {0} and {1} in spatial dimension {2} is not "
                       "smaller than the window of {3}",
                       attrs.padLow[d], attrs.padHigh[d], d, extent);
  }
  return llvm::Error::success();
}

llvm::Expected<Shape> pooledShape(const OpView &op) {
  const auto &attrs = op.attrs<PoolAttrs>();
  if (llvm::Error error = checkRank(op, 0, 3))
    return error;
  const Shape &x = op.type(0).shape;
  size_t rank = x.size() - 2;
  if (llvm::Error error = checkLength("kernel", attrs.kernel.size(), rank))
    return error;
  for (int64_t size : attrs.kernel)
    if (size < 1 || size > INT32_MAX)
      return userError("kernel has an entry {0}, expected 1 to {1}", size,
                       INT32_MAX);
  if (llvm::Error error = checkWindows(rank, attrs.strides, attrs.dilations,
                                       attrs.padLow, attrs.padHigh))
    return error;
  if (llvm::Error error = checkPads(attrs))
    return error;
  Shape result{x[0], x[1]};
  for (size_t d = 0; d != rank; ++d) {
    llvm::Expected<Dim> count =
        windowCount({x[d + 2], attrs.kernel[d], attrs.strides[d],
                     attrs.dilations[d], attrs.padLow[d], attrs.padHigh[d],
                     attrs.ceilMode},
                    d);
    if (!count)
      return count.takeError();
    result.push_back(*count);
  }
  return result;
}

} // namespace

llvm::Error tenon::ir::inferMaxPool(const OpView &op, InferContext &context) {
  if (llvm::Error error = checkElement(op, 0, isArithmetic, "a number"))
    return error;
  llvm::Expected<Shape> shape = pooledShape(op);
  if (!shape)
    return shape.takeError();
  context.results.push_back({op.type(0).element, *shape});
  context.results.push_back({ElementType::I64, *shape});
  return llvm::Error::success();
}

llvm::Error tenon::ir::inferAveragePool(const OpView &op,
                                        InferContext &context) {
  if (llvm::Error error =
          checkElement(op, 0, isArithmeticFloat, "a float type"))
    return error;
  llvm::Expected<Shape> shape = pooledShape(op);
  if (!shape)
    return shape.takeError();
  context.results.push_back({op.type(0).element, *shape});
  return llvm::Error::success();
}
