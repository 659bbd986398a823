//===- CanonicalizeScale.cpp - laws of scalar factors
//------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/canonical/LawUtil.h"
#include "passes/canonical/Laws.h"
#include <cmath>

using namespace tenon;
using namespace tenon::ir;
using namespace tenon::passes;

namespace {

/// Whether \p value is a finite number that \p element holds with full
/// precision.
bool isNormal(ElementType element, double value) {
  int exponent;
  std::frexp(value, &exponent);
  int limit = element == ElementType::F16 ? 12 : 100;
  return std::isfinite(value) && value != 0 && std::abs(exponent) < limit;
}

/// `x * c` with a scalar constant, not itself a constant.
struct Scaled {
  Value *x;
  double factor;
};
std::optional<Scaled> asScaled(Value *value) {
  Op *mul = value->def(OpKind::Mul);
  if (!mul || !isFloat(value->element()) || constantOf(mul->operand(0)) ||
      mul->operand(0)->type != mul->result()->type)
    return std::nullopt;
  std::optional<double> c = scalarOf(mul->operand(1));
  if (!c)
    return std::nullopt;
  return Scaled{mul->operand(0), *c};
}

// (x * c) * d = x * (c * d)
Value *mulOfMul(Op &op, Rewriter &rewriter) {
  std::optional<Scaled> inner = asScaled(op.operand(0));
  std::optional<double> d = scalarOf(op.operand(1));
  ElementType element = op.result()->element();
  if (!inner || !d || op.operand(0)->type != op.result()->type ||
      !isNormal(element, inner->factor * *d))
    return nullptr;
  Builder builder = rewriter.before(op);
  return builder.buildMul(
      {inner->x, builder.scalar(element, inner->factor * *d)});
}

/// Movement ops through which a scalar factor may be pulled.
bool movesElements(const Op &op) {
  switch (op.kind()) {
  case OpKind::Reshape:
  case OpKind::Transpose:
  case OpKind::Broadcast:
  case OpKind::Slice:
    return true;
  default:
    return false;
  }
}

// matmul(move(x * c), y) = matmul(move(x), y) * c, so that the scale of
// attention's scores is in one place however it was split. Not of a weight: a
// factor in front of a projection belongs to the activation before it.
Value *matmulOfScaled(Op &op, Rewriter &rewriter) {
  if (op.region() || op.numOperands() != 2 ||
      bitWidth(op.result()->element()) < 32 ||
      op.operand(0)->def(OpKind::Const) || op.operand(1)->def(OpKind::Const))
    return nullptr;
  for (unsigned side : {0u, 1u}) {
    llvm::SmallVector<Op *, 4> moves;
    Value *value = op.operand(side);
    while (value->def() && movesElements(*value->def()) && value->hasOneUse() &&
           moves.size() < 8) {
      moves.push_back(value->def());
      value = value->def()->operand(0);
    }
    std::optional<Scaled> scaled = asScaled(value);
    if (!scaled || !value->hasOneUse() ||
        !isNormal(value->element(), scaled->factor))
      continue;
    Builder builder = rewriter.before(op);
    Value *moved = scaled->x;
    for (Op *move : llvm::reverse(moves))
      moved = llvm::cantFail(builder.clone(*move, {moved}))->result();
    Value *operands[] = {op.operand(0), op.operand(1)};
    operands[side] = moved;
    Value *product = builder.buildMatMul(operands, op.attrs<MatMulAttrs>());
    return builder.buildMul(
        {product, builder.scalar(product->element(), scaled->factor)});
  }
  return nullptr;
}

} // namespace

void passes::addScaleLaws(PeepholeSet &laws) {
  laws.add(OpKind::Mul, "(x * c) * d = x * (c * d)", mulOfMul);
  laws.add(OpKind::MatMul, "matmul(x * c, y) = matmul(x, y) * c",
           matmulOfScaled);
}
