//===- CanonicalizeArith.cpp - laws of arithmetic
//----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
/// \file
/// Rounding: a law may change the last bit of a result where it says so (`x / c
/// = x * (1 / c)` in f32), never more, and never what is infinite or NaN.

#include "passes/canonical/LawUtil.h"
#include "passes/canonical/Laws.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace tenon;
using namespace tenon::ir;
using namespace tenon::passes;

namespace {

bool isWide(ElementType element) {
  return element == ElementType::F32 || element == ElementType::F64;
}

/// \p x if the op's result has its type.
Value *ifSameType(Op &op, Value *x) {
  return x->type == op.result()->type ? x : nullptr;
}

// a + b = b + a, the constant last.
Value *constantLast(Op &op, Rewriter &rewriter) {
  if (!constantOf(op.operand(0)) || constantOf(op.operand(1)))
    return nullptr;
  return rebuild(op, {op.operand(1), op.operand(0)}, rewriter);
}

// x + 0 = x, x - 0 = x
Value *addZero(Op &op, Rewriter &) {
  return splatOf(op.operand(1)) == 0.0 ? ifSameType(op, op.operand(0))
                                       : nullptr;
}

// x * 1 = x, x / 1 = x, x ^ 1 = x
Value *timesOne(Op &op, Rewriter &) {
  return splatOf(op.operand(1)) == 1.0 ? ifSameType(op, op.operand(0))
                                       : nullptr;
}

/// The constant \p value of \p element in the shape of \p like, a constant of
/// one element.
Value *scalarLike(Builder &builder, ElementType element, double value,
                  const Value *like) {
  Value *scalar = builder.scalar(element, value);
  return like->rank() ? buildReshape(builder, scalar, like->shape()) : scalar;
}

// x - c = x + (-c)
Value *subConstant(Op &op, Rewriter &rewriter) {
  std::optional<double> c = scalarOf(op.operand(1));
  ElementType element = op.operand(0)->element();
  if (!c || category(element) == TypeCategory::Unsigned ||
      category(element) == TypeCategory::Bool || constantOf(op.operand(0)))
    return nullptr;
  Builder builder = rewriter.before(op);
  return builder.buildAdd(
      {op.operand(0), scalarLike(builder, element, -*c, op.operand(1))});
}

// 0 - x = -x
Value *subFromZero(Op &op, Rewriter &rewriter) {
  if (splatOf(op.operand(0)) != 0.0 || op.operand(1)->type != op.result()->type)
    return nullptr;
  return rewriter.before(op).buildNeg({op.operand(1)});
}

// a - (-b) = a + b, a + (-b) = a - b
Value *subNegative(Op &op, Rewriter &rewriter) {
  bool isSub = op.kind() == OpKind::Sub;
  for (unsigned i : {1u, 0u}) {
    Op *neg = op.operand(i)->def(OpKind::Neg);
    if (!neg || (isSub && i == 0))
      continue;
    Builder builder = rewriter.before(op);
    return isSub ? builder.buildAdd({op.operand(0), neg->operand(0)})
                 : builder.buildSub({op.operand(1 - i), neg->operand(0)});
  }
  return nullptr;
}

// f(f(x)) = x, for neg and not
Value *involution(Op &op, Rewriter &) {
  Op *inner = op.operand(0)->def(op.kind());
  return inner ? inner->operand(0) : nullptr;
}

/// Whether x * (1 / c) is as good as x / c: exact for powers of two, and to the
/// last bit in f32 and f64, where attention's 1 / sqrt(d) is written both ways.
bool hasGoodReciprocal(ElementType element, double c) {
  if (!isFloat(element) || c == 0 || !std::isfinite(c))
    return false;
  int exponent;
  double mantissa = std::frexp(std::abs(c), &exponent);
  if (exponent < -100 || exponent > 100)
    return false;
  return isWide(element) || (mantissa == 0.5 && std::abs(exponent) < 12);
}

// x / c = x * (1 / c)
Value *divByConstant(Op &op, Rewriter &rewriter) {
  std::optional<double> c = scalarOf(op.operand(1));
  ElementType element = op.result()->element();
  if (!c || constantOf(op.operand(0)) || !hasGoodReciprocal(element, *c))
    return nullptr;
  Builder builder = rewriter.before(op);
  return builder.buildMul(
      {op.operand(0), scalarLike(builder, element, 1 / *c, op.operand(1))});
}

// 1 / x = reciprocal(x)
Value *divOfOne(Op &op, Rewriter &rewriter) {
  if (splatOf(op.operand(0)) != 1.0 || !isFloat(op.result()->element()) ||
      op.operand(1)->type != op.result()->type)
    return nullptr;
  return rewriter.before(op).buildReciprocal({op.operand(1)});
}

// x / sqrt(y) = x * rsqrt(y)
Value *divByRoot(Op &op, Rewriter &rewriter) {
  Op *root = op.operand(1)->def(OpKind::Sqrt);
  if (!root || !isWide(op.result()->element()))
    return nullptr;
  Builder builder = rewriter.before(op);
  return builder.buildMul(
      {op.operand(0), builder.buildRsqrt({root->operand(0)})});
}

// x * reciprocal(y) = x / y, unless y is a root
Value *timesReciprocal(Op &op, Rewriter &rewriter) {
  for (unsigned i : {0u, 1u})
    if (Op *reciprocal = op.operand(i)->def(OpKind::Reciprocal))
      if (!constantOf(op.operand(1 - i)))
        return rewriter.before(op).buildDiv(
            {op.operand(1 - i), reciprocal->operand(0)});
  return nullptr;
}

// reciprocal(sqrt(x)) = rsqrt(x), reciprocal(reciprocal(x)) = x
Value *reciprocalOf(Op &op, Rewriter &rewriter) {
  Op *inner = op.operand(0)->def();
  if (inner && inner->kind() == OpKind::Sqrt)
    return rewriter.before(op).buildRsqrt({inner->operand(0)});
  return nullptr;
}

// x ^ 2 = x * x, and the other powers that have a shorter form
Value *powOfConstant(Op &op, Rewriter &rewriter) {
  Value *x = op.operand(0);
  std::optional<double> e = splatOf(op.operand(1));
  if (!e || x->type != op.result()->type)
    return nullptr;
  bool real = isFloat(x->element());
  Builder builder = rewriter.before(op);
  if (*e == 1)
    return x;
  if (*e == 2)
    return builder.buildMul({x, x});
  if (*e == 3)
    return builder.buildMul({builder.buildMul({x, x}), x});
  if (*e == 0.5 && real)
    return builder.buildSqrt({x});
  if (*e == -0.5 && real)
    return builder.buildRsqrt({x});
  if (*e == -1 && real)
    return builder.buildReciprocal({x});
  return nullptr;
}

// max(x, 0) = relu(x)
Value *maxZero(Op &op, Rewriter &rewriter) {
  if (splatOf(op.operand(1)) != 0.0 ||
      op.operand(0)->type != op.result()->type ||
      category(op.result()->element()) == TypeCategory::Unsigned)
    return nullptr;
  return rewriter.before(op).buildRelu({op.operand(0)});
}

// f(x, x) = x, for min, max, and, or
Value *idempotent(Op &op, Rewriter &) {
  return op.operand(0) == op.operand(1) ? op.operand(0) : nullptr;
}

/// Whether every value of \p from is one of \p to: casting there and on is
/// casting directly.
bool holdsAll(ElementType from, ElementType to) {
  TypeCategory a = category(from), b = category(to);
  unsigned n = bitWidth(from), m = bitWidth(to);
  if (a == TypeCategory::Bool)
    return true;
  if (b == TypeCategory::Bool)
    return false;
  if (a == TypeCategory::Float)
    return b == TypeCategory::Float && n <= m &&
           (from == to || to == ElementType::F32 || to == ElementType::F64);
  if (b == TypeCategory::Float)
    return (to == ElementType::F32 && n <= 16) ||
           (to == ElementType::F64 && n <= 32);
  if (a == b)
    return n <= m;
  return a == TypeCategory::Unsigned && n < m;
}

// cast(x) to its own type = x; cast(cast(x)) = cast(x) if the first loses
// nothing
Value *castOf(Op &op, Rewriter &rewriter) {
  Value *x = op.operand(0);
  if (x->element() == op.result()->element())
    return x;
  Op *inner = x->def(OpKind::Cast);
  if (!inner || !holdsAll(inner->operand(0)->element(), x->element()))
    return nullptr;
  if (inner->operand(0)->element() == op.result()->element())
    return inner->operand(0);
  return rebuild(op, {inner->operand(0)}, rewriter);
}

// (x + c) + d = x + (c + d) of integers
Value *addOfAdd(Op &op, Rewriter &rewriter) {
  Op *inner = op.operand(0)->def(OpKind::Add);
  ElementType element = op.result()->element();
  if (!inner || !isInteger(element))
    return nullptr;
  std::optional<double> c = scalarOf(inner->operand(1)),
                        d = scalarOf(op.operand(1));
  if (!c || !d || std::abs(*c + *d) > 0x1p30 ||
      inner->result()->type != op.result()->type)
    return nullptr;
  Builder builder = rewriter.before(op);
  return builder.buildAdd(
      {inner->operand(0), builder.scalar(element, *c + *d)});
}

} // namespace

void passes::addArithmeticLaws(PeepholeSet &laws) {
  for (unsigned i = 0; i != numOpKinds; ++i) {
    OpKind kind = static_cast<OpKind>(i);
    if (opDef(kind).is(Commutative))
      laws.add(kind, "c + x = x + c", constantLast);
  }
  laws.add({OpKind::Add, OpKind::Sub}, "x + 0 = x", addZero);
  laws.add({OpKind::Mul, OpKind::Div, OpKind::Pow}, "x * 1 = x", timesOne);
  laws.add(OpKind::Sub, "0 - x = -x", subFromZero);
  laws.add({OpKind::Sub, OpKind::Add}, "a - (-b) = a + b", subNegative);
  laws.add(OpKind::Sub, "x - c = x + (-c)", subConstant);
  laws.add({OpKind::Neg, OpKind::Not}, "-(-x) = x", involution);
  laws.add(OpKind::Div, "1 / x = reciprocal(x)", divOfOne);
  laws.add(OpKind::Div, "x / sqrt(y) = x * rsqrt(y)", divByRoot);
  laws.add(OpKind::Div, "x / c = x * (1 / c)", divByConstant);
  laws.add(OpKind::Mul, "x * reciprocal(y) = x / y", timesReciprocal);
  laws.add(OpKind::Reciprocal, "reciprocal(sqrt(x)) = rsqrt(x)", reciprocalOf);
  laws.add(OpKind::Pow, "x ^ 2 = x * x", powOfConstant);
  laws.add(OpKind::Max, "max(x, 0) = relu(x)", maxZero);
  laws.add({OpKind::Min, OpKind::Max, OpKind::And, OpKind::Or}, "max(x, x) = x",
           idempotent);
  laws.add(OpKind::Cast, "cast(cast(x)) = cast(x)", castOf);
  laws.add(OpKind::Add, "(x + c) + d = x + (c + d)", addOfAdd);
}
