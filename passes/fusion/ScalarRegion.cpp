//===- ScalarRegion.cpp - growing the scalar body of a fused op ----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/fusion/ScalarRegion.h"

using namespace tenon;
using namespace tenon::ir;
using passes::ScalarRegion;

std::optional<double> passes::scalarConstant(const Value *value) {
  Op *op = value->def(OpKind::Const);
  if (!op ||
      !llvm::all_of(value->shape(), [](Dim dim) { return dim.isConstant(1); }))
    return std::nullopt;
  // i64 values above 2^53 don't survive the double: they stay operands.
  std::optional<double> splat = op->attrs<ConstAttrs>().value->splatValue();
  if (splat && std::abs(*splat) > 9007199254740992.0 &&
      isInteger(value->element()))
    return std::nullopt;
  return splat;
}

Value *ScalarRegion::addArgument(Value *value) {
  Value *scalar = region.addArgument(TensorType{value->element(), {}});
  scalars[value] = scalar;
  return scalar;
}

Value *ScalarRegion::scalarOf(Value *value) {
  if (Value *known = scalars.lookup(value))
    return known;
  if (std::optional<double> splat = scalarConstant(value))
    return scalars[value] = builder.scalar(value->element(), *splat);
  captured.push_back(value);
  return addArgument(value);
}

void ScalarRegion::append(const Op &op) {
  llvm::SmallVector<Value *, 4> operands;
  for (Value *operand : op.operands())
    operands.push_back(scalarOf(operand));
  llvm::Expected<Op *> copy = builder.clone(op, operands);
  scalars[op.result()] = llvm::cantFail(std::move(copy))->result();
}

void ScalarRegion::inlineRegion(const Block &other,
                                llvm::ArrayRef<Value *> arguments,
                                llvm::ArrayRef<Value *> results) {
  llvm::DenseMap<Value *, Value *> inner;
  for (auto [i, value] : llvm::enumerate(arguments))
    inner[other.argument(i)] = scalarOf(value);
  for (Op &op : other) {
    llvm::SmallVector<Value *, 4> operands;
    for (Value *operand : op.operands())
      operands.push_back(inner.lookup(operand));
    if (op.kind() == OpKind::Yield) {
      for (auto [i, value] : llvm::enumerate(operands))
        scalars[results[i]] = value;
      return;
    }
    llvm::Expected<Op *> copy = builder.clone(op, operands);
    inner[op.result()] = llvm::cantFail(std::move(copy))->result();
  }
}

void ScalarRegion::yield(llvm::ArrayRef<Value *> values) {
  llvm::SmallVector<Value *, 2> results;
  for (Value *value : values)
    results.push_back(scalarOf(value));
  builder.buildYield(results);
}
