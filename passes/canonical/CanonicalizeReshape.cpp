//===- CanonicalizeReshape.cpp - laws of reshapes
//----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/canonical/FoldOp.h"
#include "passes/canonical/LawUtil.h"
#include "passes/canonical/Laws.h"
#include "llvm/ADT/STLExtras.h"

using namespace tenon;
using namespace tenon::ir;
using namespace tenon::passes;

namespace {

/// A reshape that merges or splits dimensions, and that nothing else uses.
Op *asRegrouping(Value *value) {
  Op *op = value->def(OpKind::Reshape);
  if (!op || !value->hasOneUse() ||
      movesOnlyOnes(op->operand(0)->shape(), value->shape()))
    return nullptr;
  return op;
}

/// How many last dimensions the reshape from \p in to \p out keeps.
unsigned keptLast(ShapeRef in, ShapeRef out) {
  unsigned n = 0;
  while (n < in.size() && n < out.size() &&
         in[in.size() - 1 - n] == out[out.size() - 1 - n])
    ++n;
  return n;
}

/// \p operand as it is before a reshape from \p in to \p out, if that is free:
/// a scalar, something over the kept last dimensions, the same reshape, a
/// constant. Null when it is not. Builds only with \p builder set.
Value *beforeReshape(Value *operand, ShapeRef in, ShapeRef out,
                     Builder *builder) {
  unsigned kept = keptLast(in, out);
  if (operand->rank() <= kept)
    return operand;
  if (operand->shape() != out)
    return nullptr;
  Op *op = operand->def();
  if (op && op->kind() == OpKind::Reshape && op->operand(0)->shape() == in)
    return op->operand(0);
  if (op && op->kind() == OpKind::Const)
    if (auto shape = constantShape(in))
      return builder ? builder->constant(reshapeConstant(
                           op->attrs<ConstAttrs>().value, *shape))
                     : operand;
  return nullptr;
}

// f(reshape(x), y) = reshape(f(x, y)) where y does not mind
Value *elementwiseOfReshape(Op &op, Rewriter &rewriter) {
  Op *reshape = nullptr;
  for (Value *operand : op.operands())
    if (!reshape)
      reshape = asRegrouping(operand);
  if (!reshape || reshape->result()->shape() != op.result()->shape())
    return nullptr;
  ShapeRef in = reshape->operand(0)->shape(), out = reshape->result()->shape();
  // Of nothing, leading dimensions may just go.
  if (keptLast(in, out) == out.size())
    return nullptr;
  for (Value *operand : op.operands())
    if (!beforeReshape(operand, in, out, nullptr))
      return nullptr;
  Builder builder = rewriter.before(op);
  llvm::SmallVector<Value *, 3> operands;
  for (Value *operand : op.operands())
    operands.push_back(beforeReshape(operand, in, out, &builder));
  Value *y = llvm::cantFail(builder.clone(op, operands))->result();
  return buildReshape(builder, y, op.result()->shape());
}

/// \p x's leading dimensions that \p rows regroups, and K: the shape of the
/// same rows with x's own leading dimensions; empty where x's split rows
/// otherwise.
Shape ownRows(ShapeRef x, ShapeRef rows) {
  for (size_t lead = 1; lead < x.size(); ++lead)
    if (numElements(x.drop_front(lead)) == rows.back() &&
        numElements(x.take_front(lead)) == numElements(rows.drop_back())) {
      Shape shape(x.take_front(lead));
      shape.push_back(rows.back());
      return shape;
    }
  return {};
}

// matmul(reshape(x), w) = reshape(matmul(x, w)) for a matrix w: how many
// leading dimensions the rows have does not matter. Heads that were merged
// into the rows' columns stay merged.
Value *matmulOfReshape(Op &op, Rewriter &rewriter) {
  if (op.region() || op.numOperands() != 2 || op.operand(1)->rank() != 2)
    return nullptr;
  Op *reshape = asRegrouping(op.operand(0));
  if (!reshape || op.operand(0)->rank() < 2)
    return nullptr;
  Value *x = reshape->operand(0);
  Shape rows = ownRows(x->shape(), op.operand(0)->shape());
  if (rows.empty() || ShapeRef(rows) == op.operand(0)->shape())
    return nullptr;
  Builder builder = rewriter.before(op);
  if (x->shape() != ShapeRef(rows))
    x = buildReshape(builder, x, rows);
  Value *y = builder.buildMatMul({x, op.operand(1)}, op.attrs<MatMulAttrs>());
  return buildReshape(builder, y, op.result()->shape());
}

// matmul(reshape(x), reshape(y)) with [b, h, ...] merged to [b * h, ...] on
// both sides = reshape(matmul(x, y))
Value *matmulOfMergedBatches(Op &op, Rewriter &rewriter) {
  if (op.region() || op.numOperands() != 2)
    return nullptr;
  Op *a = asRegrouping(op.operand(0)), *b = asRegrouping(op.operand(1));
  if (!a || !b || op.operand(0)->rank() < 3)
    return nullptr;
  Value *x = a->operand(0), *y = b->operand(0);
  auto keepsMatrix = [](Op *reshape) {
    return reshape->operand(0)->rank() >= 3 && reshape->result()->rank() >= 3 &&
           keptLast(reshape->operand(0)->shape(), reshape->result()->shape()) >=
               2;
  };
  if (!keepsMatrix(a) || !keepsMatrix(b) ||
      x->shape().drop_back(2) != y->shape().drop_back(2) ||
      op.operand(0)->shape().drop_back(2) !=
          op.operand(1)->shape().drop_back(2))
    return nullptr;
  Builder builder = rewriter.before(op);
  return buildReshape(builder,
                      builder.buildMatMul({x, y}, op.attrs<MatMulAttrs>()),
                      op.result()->shape());
}

// reshape(f(reshape(x))) = f(reshape(x)) for f of one tensor and scalars
Value *reshapeAround(Op &op, Rewriter &rewriter) {
  Op *f = op.operand(0)->def();
  if (!f || !is(*f, ElementwiseOp) || !op.operand(0)->hasOneUse())
    return nullptr;
  Op *inner = nullptr;
  unsigned at = 0;
  for (auto [i, operand] : llvm::enumerate(f->operands())) {
    if (operand->type.isScalar())
      continue;
    if (inner || operand->shape() != f->result()->shape())
      return nullptr;
    inner = operand->def(OpKind::Reshape);
    at = i;
    if (!inner)
      return nullptr;
  }
  if (!inner)
    return nullptr;
  Builder builder = rewriter.before(op);
  llvm::SmallVector<Value *, 3> operands(f->operands());
  operands[at] = buildReshape(builder, inner->operand(0), op.result()->shape());
  return llvm::cantFail(builder.clone(*f, operands))->result();
}

// softmax(reshape(x)) = reshape(softmax(x)) over a last dimension that stays
Value *softmaxOfReshape(Op &op, Rewriter &rewriter) {
  Op *reshape = asRegrouping(op.operand(0));
  unsigned rank = op.result()->rank();
  if (!reshape || op.attrs<AxisAttrs>().axis + 1 != rank)
    return nullptr;
  Value *x = reshape->operand(0);
  if (!x->rank() || !keptLast(x->shape(), op.operand(0)->shape()))
    return nullptr;
  Builder builder = rewriter.before(op);
  AxisAttrs attrs;
  attrs.axis = x->rank() - 1;
  Value *y = op.kind() == OpKind::Softmax ? builder.buildSoftmax({x}, attrs)
                                          : builder.buildLogSoftmax({x}, attrs);
  return buildReshape(builder, y, op.result()->shape());
}

} // namespace

void passes::addReshapeLaws(PeepholeSet &laws) {
  for (unsigned i = 0; i != numOpKinds; ++i) {
    OpKind kind = static_cast<OpKind>(i);
    if (opDef(kind).is(ElementwiseOp))
      laws.add(kind, "f(reshape(x)) = reshape(f(x))", elementwiseOfReshape);
  }
  laws.add(OpKind::Reshape, "reshape(f(reshape(x))) = f(reshape(x))",
           reshapeAround);
  laws.add(OpKind::MatMul, "matmul(reshape(x), w) = reshape(matmul(x, w))",
           matmulOfReshape);
  laws.add(OpKind::MatMul,
           "matmul(reshape(x), reshape(y)) = reshape(matmul(x, y))",
           matmulOfMergedBatches);
  laws.add({OpKind::Softmax, OpKind::LogSoftmax},
           "softmax(reshape(x)) = reshape(softmax(x))", softmaxOfReshape);
}
