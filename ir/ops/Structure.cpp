//===- Structure.cpp - inference of constants, regions and terminators ---===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/ops/Infer.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace tenon::ir {

Error inferConst(const OpView &op, InferContext &context) {
  const ConstantRef &value = op.attrs<ConstAttrs>().value;
  if (!value)
    return userError("attribute 'value' is missing");
  TensorType type{value->element(), {}};
  for (int64_t dim : value->shape())
    type.shape.push_back(dim);
  context.results = {type};
  return Error::success();
}

Error inferDims(const OpView &op, InferContext &context) {
  const auto &attrs = op.attrs<DimsAttrs>();
  if (attrs.scalar && attrs.values.size() != 1)
    return userError("a scalar has {0} values in attribute 'values', expected "
                     "1",
                     attrs.values.size());
  TensorType type{ElementType::I64, {}};
  if (!attrs.scalar)
    type.shape.push_back(attrs.values.size());
  context.results = {type};
  return Error::success();
}

Error inferBindDims(const OpView &op, InferContext &context) {
  const Dims &symbols = op.attrs<BindDimsAttrs>().symbols;
  for (Dim symbol : symbols)
    if (!symbol.symbolName())
      return userError("attribute 'symbols' holds {0}, expected names of "
                       "symbols only",
                       text(symbol));
  if (Error e = checkElement(op, 0, isArithmeticInteger, "an integer type"))
    return e;
  if (Error e = checkRank(op, 0, 0, 1))
    return e;
  return requireDim(op, context, "the number of elements", 0,
                    numElements(op.type(0).shape), Dim(symbols.size()));
}

Error inferMap(const OpView &op, InferContext &context) {
  if (!op.region)
    return userError("the body is missing");
  if (op.region->numArguments() != op.operands.size())
    return userError("the body has {0} arguments, expected {1}, one for each "
                     "input",
                     op.region->numArguments(), op.operands.size());
  for (auto [i, type] : enumerate(op.operands)) {
    TensorType scalar{type->element, {}};
    const TensorType &argument = op.region->argument(i)->type;
    if (argument != scalar)
      return userError(
          "argument {0} of the body is {1}, expected {2} as in {3}", i,
          text(argument), text(scalar), operandText(op, i));
  }
  const Op *yield = op.region->terminator();
  if (!yield || yield->kind() != OpKind::Yield)
    return userError("the body does not end in 'yield'");
  Expected<Shape> shape = broadcastOperands(op, context);
  if (!shape)
    return shape.takeError();
  for (const Value *value : yield->operands())
    context.results.push_back({value->element(), *shape});
  return Error::success();
}

Error inferReturn(const OpView &, InferContext &) { return Error::success(); }

Error inferYield(const OpView &op, InferContext &) {
  for (unsigned i = 0; i < op.operands.size(); ++i)
    if (Error e = checkRank(op, i, 0, 0))
      return e;
  return Error::success();
}

} // namespace tenon::ir
