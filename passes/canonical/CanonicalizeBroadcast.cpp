//===- CanonicalizeBroadcast.cpp - laws of broadcasting ----------------------===//
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
using llvm::ArrayRef;

namespace {

using Values = llvm::SmallVector<Value *, 3>;

/// The shape of an elementwise op on \p operands.
std::optional<Shape> resultShape(ArrayRef<Value *> operands) {
  Shape shape;
  for (Value *operand : operands) {
    std::optional<Shape> both = broadcastShapes(shape, operand->shape());
    if (!both)
      return std::nullopt;
    shape = *both;
  }
  return shape;
}

bool addsLeadingOnes(ShapeRef from, ShapeRef to) {
  return from.size() < to.size() && to.take_back(from.size()) == from &&
         llvm::all_of(to.drop_back(from.size()),
                      [](Dim dim) { return dim.isConstant(1); });
}

/// What \p value repeats, or gives leading ones, or itself.
Value *beforeBroadcast(Value *value) {
  Op *op = value->def();
  if (!op)
    return value;
  bool drops =
      (op->kind() == OpKind::Broadcast &&
       broadcastsSurely(op->operand(0)->shape(), value->shape())) ||
      (op->kind() == OpKind::Reshape &&
       addsLeadingOnes(op->operand(0)->shape(), value->shape()));
  return drops ? op->operand(0) : value;
}

// f(broadcast(x), y) = f(x, y): elementwise ops broadcast by themselves
Value *implicitBroadcast(Op &op, Rewriter &rewriter) {
  // One operand at a time: each may or may not decide the shape.
  Values operands(op.operands());
  bool changed = false;
  for (Value *&operand : operands) {
    Value *old = operand;
    operand = beforeBroadcast(old);
    if (operand == old)
      continue;
    std::optional<Shape> shape = resultShape(operands);
    if (shape && ShapeRef(*shape) == op.result()->shape())
      changed = true;
    else
      operand = old;
  }
  return changed ? rebuild(op, operands, rewriter) : nullptr;
}

// f(broadcast(x), broadcast(y)) = broadcast(f(x, y))
Value *broadcastLast(Op &op, Rewriter &rewriter) {
  Values operands(op.operands());
  bool changed = false;
  for (Value *&operand : operands) {
    Op *def = operand->def(OpKind::Broadcast);
    if (!def || !broadcastsSurely(def->operand(0)->shape(), operand->shape()))
      continue;
    operand = def->operand(0);
    changed = true;
  }
  if (!changed)
    return nullptr;
  std::optional<Shape> shape = resultShape(operands);
  if (!shape || !broadcastsSurely(*shape, op.result()->shape()))
    return nullptr;
  Builder builder = rewriter.before(op);
  Value *small = llvm::cantFail(builder.clone(op, operands))->result();
  return buildBroadcast(builder, small, op.result()->shape());
}

// attention(q, k, v, broadcast(mask)) = attention(q, k, v, mask): the mask
// broadcasts by itself
Value *attentionMask(Op &op, Rewriter &rewriter) {
  Value *mask = op.operand(3);
  Op *broadcast = mask ? mask->def(OpKind::Broadcast) : nullptr;
  if (!broadcast || broadcast->operand(0)->rank() != mask->rank() ||
      !broadcastsSurely(broadcast->operand(0)->shape(), mask->shape()))
    return nullptr;
  Values operands(op.operands());
  operands[3] = broadcast->operand(0);
  return rebuild(op, operands, rewriter);
}

/// \p constant without leading dimensions of 1; a splat as a scalar.
ConstantRef smaller(const ConstantRef &constant) {
  ArrayRef<int64_t> shape = constant->shape();
  if (shape.empty())
    return nullptr;
  if (constant->numElements() == 1)
    return reshapeConstant(constant, {});
  if (constant->form() == Constant::Form::Splat)
    return Constant::splatBytes(constant->element(), {}, constant->bytes());
  if (std::optional<double> value = constant->splatValue())
    return Constant::scalar(constant->element(), *value);
  ArrayRef<int64_t> rest = shape.drop_while([](int64_t d) { return d == 1; });
  return rest.size() < shape.size() ? reshapeConstant(constant, rest) : nullptr;
}

// f(x, splat) = f(x, scalar), f(x, [1, 1, n]) = f(x, [n])
Value *smallConstant(Op &op, Rewriter &rewriter) {
  for (unsigned i = 0; i != op.numOperands(); ++i) {
    Op *def = op.operand(i)->def(OpKind::Const);
    ConstantRef constant =
        def ? smaller(def->attrs<ConstAttrs>().value) : nullptr;
    if (!constant)
      continue;
    llvm::SmallVector<Dim, 4> dims(constant->shape().begin(),
                                   constant->shape().end());
    Shape shape = dims;
    for (unsigned k = 0; k != op.numOperands(); ++k)
      if (k != i)
        if (std::optional<Shape> both =
                broadcastShapes(shape, op.operand(k)->shape()))
          shape = *both;
    if (ShapeRef(shape) != op.result()->shape())
      continue;
    Values operands(op.operands());
    Builder builder = rewriter.before(op);
    operands[i] = builder.constant(constant);
    return llvm::cantFail(builder.clone(op, operands))->result();
  }
  return nullptr;
}

} // namespace

void passes::addBroadcastLaws(PeepholeSet &laws) {
  laws.add(OpKind::Attention, "attention(broadcast(mask)) = attention(mask)",
           attentionMask);
  for (unsigned i = 0; i != numOpKinds; ++i) {
    OpKind kind = static_cast<OpKind>(i);
    if (!opDef(kind).is(ElementwiseOp))
      continue;
    laws.add(kind, "f(x, [1, n]) = f(x, [n])", smallConstant);
    laws.add(kind, "f(broadcast(x), y) = f(x, y)", implicitBroadcast);
    laws.add(kind, "f(broadcast(x)) = broadcast(f(x))", broadcastLast);
  }
}
