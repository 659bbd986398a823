//===- Structure.cpp - constants, dimensions and maps --------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/OpDef.h"
#include "ir/eval/Elements.h"
#include "ir/eval/Evaluator.h"
#include "ir/eval/Loops.h"
#include "ir/support/Diag.h"

using namespace llvm;

namespace tenon::ir {

Error evalConst(EvalContext &context) {
  context.out() = Tensor::fromConstant(*context.attrs<ConstAttrs>().value);
  return Error::success();
}

Error evalDims(EvalContext &context) {
  for (auto [i, dim] : enumerate(context.attrs<DimsAttrs>().values)) {
    Expected<int64_t> value = evaluateDim(dim, context.env);
    if (!value)
      return value.takeError();
    context.out().setInt(i, *value);
  }
  return Error::success();
}

Error evalBindDims(EvalContext &context) {
  const Tensor &values = context.in(0);
  const Dims &symbols = context.attrs<BindDimsAttrs>().symbols;
  if (values.numElements() != symbols.size())
    return userError("operand 'values' has {0} elements, expected {1}",
                     values.numElements(), symbols.size());
  for (auto [i, symbol] : enumerate(symbols)) {
    StringRef name = *symbol.symbolName();
    int64_t value = values.intAt(i);
    if (value < 0)
      return userError("the size '{0}' is {1}, which is negative", name, value);
    auto [it, isNew] = context.env.try_emplace(name, value);
    if (!isNew && it->second != value)
      return userError("the size '{0}' is {1}, but it was {2} before", name,
                       value, it->second);
  }
  return Error::success();
}

Error evalMap(EvalContext &context) {
  std::vector<Tensor> arguments;
  for (const Tensor *operand : context.operands)
    arguments.push_back(*operand);
  Expected<std::vector<Tensor>> yielded =
      evaluateRegion(*context.op.region(), std::move(arguments));
  if (!yielded)
    return yielded.takeError();
  for (auto [result, value] : zip_equal(context.results, *yielded))
    result = broadcastTo(value, result.shape);
  return Error::success();
}

} // namespace tenon::ir
