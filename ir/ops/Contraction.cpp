//===- Contraction.cpp - types of matmul and conv ------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/ops/Windows.h"

using namespace tenon;
using namespace tenon::ir;

namespace {

constexpr unsigned firstExtra = 2;

/// Checks the epilogue against the extras and pushes the result's type: \p sum,
/// but for the element type that the region yields.
llvm::Error inferEpilogue(const OpView &op, InferContext &context,
                          TensorType sum) {
  unsigned extras = op.operands.size() - firstExtra;
  if (!op.region) {
    if (extras != 0)
      return userError("{0} operands after 'b' but no epilogue that takes them",
                       extras);
    context.results.push_back(std::move(sum));
    return llvm::Error::success();
  }
  const Block &region = *op.region;
  if (region.numArguments() != extras + 1)
    return userError("the epilogue takes {0} arguments, expected {1}: the sum "
                     "and each extra operand",
                     region.numArguments(), extras + 1);
  for (unsigned i = 0; i <= extras; ++i) {
    ElementType expected =
        i == 0 ? sum.element : op.type(firstExtra + i - 1).element;
    if (const TensorType &found = region.argument(i)->type;
        found != TensorType{expected, {}})
      return userError("argument {0} of the epilogue is {1}, expected {2}", i,
                       text(found), mnemonic(expected));
    if (i == 0)
      continue;
    if (llvm::Error error = requireBroadcastsTo(
            op, context, firstExtra + i - 1, sum.shape, "the result"))
      return error;
  }
  const Op *yield = region.terminator();
  if (!yield || yield->numOperands() != 1)
    return userError("the epilogue must yield one value");
  sum.element = yield->operand(0)->element();
  context.results.push_back(std::move(sum));
  return llvm::Error::success();
}

} // namespace

llvm::Error tenon::ir::inferMatMul(const OpView &op, InferContext &context) {
  if (llvm::Error error = checkElement(op, 0, isArithmetic, "a number"))
    return error;
  if (llvm::Error error = checkSameElement(op, 0, 1))
    return error;
  for (unsigned i : {0u, 1u})
    if (llvm::Error error = checkRank(op, i, 1))
      return error;
  ShapeRef a = op.type(0).shape, b = op.type(1).shape;
  Dim bRows = b.size() == 1 ? b[0] : b[b.size() - 2];
  llvm::Expected<Dim> common = unify(op, context, "contracting dimensions", 0,
                                     a.back(), 1, bRows);
  if (!common)
    return common.takeError();

  ShapeRef aBatch = a.drop_back(std::min<size_t>(a.size(), 2)),
           bBatch = b.drop_back(std::min<size_t>(b.size(), 2));
  if (aBatch.size() < bBatch.size())
    std::swap(aBatch, bBatch);
  Shape result(aBatch.begin(), aBatch.end());
  for (size_t d = 0; d != bBatch.size(); ++d) {
    Dim &dim = result[aBatch.size() - bBatch.size() + d];
    std::optional<Dim> wider = broadcastDims(context, dim, bBatch[d]);
    if (!wider)
      return userError("batch dimensions do not broadcast: {0} in operand 'a', "
                       "{1} in operand 'b'",
                       text(a), text(b));
    dim = *wider;
  }
  if (a.size() > 1)
    result.push_back(a[a.size() - 2]);
  if (b.size() > 1)
    result.push_back(b.back());
  return inferEpilogue(op, context, {op.type(0).element, result});
}

llvm::Error tenon::ir::inferConv(const OpView &op, InferContext &context) {
  if (llvm::Error error =
          checkElement(op, 0, isArithmeticFloat, "a float type"))
    return error;
  if (llvm::Error error = checkSameElement(op, 0, 1))
    return error;
  if (llvm::Error error = checkRank(op, 0, 3))
    return error;
  const Shape &x = op.type(0).shape, &w = op.type(1).shape;
  if (llvm::Error error = checkRank(op, 1, x.size(), x.size()))
    return error;
  const auto &attrs = op.attrs<ConvAttrs>();
  size_t rank = x.size() - 2;
  if (llvm::Error error = checkWindows(rank, attrs.strides, attrs.dilations,
                                       attrs.padLow, attrs.padHigh))
    return error;
  if (attrs.groups < 1)
    return userError("groups is {0}, expected 1 or more", attrs.groups);
  std::optional<int64_t> filters = w[0].constant();
  if (filters && *filters % attrs.groups != 0)
    return userError("{0} filters cannot be split into {1} groups", *filters,
                     attrs.groups);
  if (!filters)
    constrain(context, Dim::mod(w[0], attrs.groups), 0);
  if (llvm::Error error = requireDim(op, context, "channels", 0, x[1],
                                     w[1] * attrs.groups))
    return error;
  Shape result{x[0], w[0]};
  for (size_t d = 0; d != rank; ++d) {
    llvm::Expected<Dim> count = windowCount(
        {x[d + 2], w[d + 2], attrs.strides[d], attrs.dilations[d],
         attrs.padLow[d], attrs.padHigh[d]},
        d);
    if (!count)
      return count.takeError();
    result.push_back(*count);
  }
  return inferEpilogue(op, context, {op.type(0).element, result});
}
