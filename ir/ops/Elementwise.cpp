//===- Elementwise.cpp - inference of elementwise ops --------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/ops/Infer.h"

using namespace llvm;

namespace tenon::ir {

namespace {

/// A set of element types and how messages describe it.
struct Wanted {
  bool (*accepts)(ElementType);
  StringLiteral text;
};

constexpr Wanted numbers{
    isArithmetic, "a float (16 bits or more) or integer (8 bits or more) type"};
constexpr Wanted floats{isArithmeticFloat, "a float type of 16 bits or more"};
constexpr Wanted integers{isArithmeticInteger,
                          "an integer type of 8 bits or more"};
constexpr Wanted anyFloat{isFloat, "a float type"};
constexpr Wanted bools{[](ElementType t) { return t == ElementType::Bool; },
                       "bool"};

Error check(const OpView &op, unsigned i, const Wanted &wanted) {
  return checkElement(op, i, wanted.accepts, wanted.text);
}

Error unary(const OpView &op, InferContext &context, const Wanted &wanted) {
  if (Error e = check(op, 0, wanted))
    return e;
  context.results = {op.type(0)};
  return Error::success();
}

/// Broadcasts all operands to a result of type \p element.
Error broadcastTo(const OpView &op, InferContext &context,
                  ElementType element) {
  Expected<Shape> shape = broadcastOperands(op, context);
  if (!shape)
    return shape.takeError();
  context.results = {{element, std::move(*shape)}};
  return Error::success();
}

Error binary(const OpView &op, InferContext &context, const Wanted &wanted) {
  if (Error e = check(op, 0, wanted))
    return e;
  if (Error e = checkSameElement(op, 0, 1))
    return e;
  return broadcastTo(op, context, op.type(0).element);
}

} // namespace

Error inferUnary(const OpView &op, InferContext &context) {
  return unary(op, context, numbers);
}

Error inferFloatUnary(const OpView &op, InferContext &context) {
  return unary(op, context, floats);
}

Error inferBoolUnary(const OpView &op, InferContext &context) {
  return unary(op, context, bools);
}

Error inferIntUnary(const OpView &op, InferContext &context) {
  return unary(op, context, integers);
}

Error inferFloatPredicate(const OpView &op, InferContext &context) {
  if (Error e = check(op, 0, anyFloat))
    return e;
  context.results = {{ElementType::Bool, op.type(0).shape}};
  return Error::success();
}

Error inferCast(const OpView &op, InferContext &context) {
  context.results = {{op.attrs<CastAttrs>().to, op.type(0).shape}};
  return Error::success();
}

Error inferBinary(const OpView &op, InferContext &context) {
  return binary(op, context, numbers);
}

Error inferIntBinary(const OpView &op, InferContext &context) {
  return binary(op, context, integers);
}

Error inferLogical(const OpView &op, InferContext &context) {
  return binary(op, context, bools);
}

Error inferPow(const OpView &op, InferContext &context) {
  for (unsigned i : {0, 1})
    if (Error e = check(op, i, numbers))
      return e;
  return broadcastTo(op, context, op.type(0).element);
}

Error inferCompare(const OpView &op, InferContext &context) {
  if (Error e = check(op, 0, numbers))
    return e;
  return inferCompareAny(op, context);
}

Error inferCompareAny(const OpView &op, InferContext &context) {
  if (Error e = checkSameElement(op, 0, 1))
    return e;
  return broadcastTo(op, context, ElementType::Bool);
}

Error inferWhere(const OpView &op, InferContext &context) {
  if (Error e = check(op, 0, bools))
    return e;
  if (Error e = checkSameElement(op, 1, 2))
    return e;
  return broadcastTo(op, context, op.type(1).element);
}

} // namespace tenon::ir
