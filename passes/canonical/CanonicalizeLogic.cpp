//===- CanonicalizeLogic.cpp - laws of conditions
//----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/canonical/LawUtil.h"
#include "passes/canonical/Laws.h"

using namespace tenon;
using namespace tenon::ir;
using namespace tenon::passes;

namespace {

/// \p x with the type of the op's result: broadcast if need be; null if that
/// would have to be checked.
Value *asResult(Op &op, Value *x, Rewriter &rewriter) {
  if (x->type == op.result()->type)
    return x;
  if (!broadcastsSurely(x->shape(), op.result()->shape()))
    return nullptr;
  Builder builder = rewriter.before(op);
  return buildBroadcast(builder, x, op.result()->shape());
}

/// The result of an op that the constant operand \p condition decides: the
/// operand numbered \p ifTrue or \p ifFalse.
Value *decided(Op &op, unsigned condition, unsigned ifTrue, unsigned ifFalse,
               Rewriter &rewriter) {
  std::optional<double> c = splatOf(op.operand(condition));
  return c ? asResult(op, op.operand(*c != 0 ? ifTrue : ifFalse), rewriter)
           : nullptr;
}

// x and true = x, x and false = false
Value *andConstant(Op &op, Rewriter &rewriter) {
  return decided(op, 1, 0, 1, rewriter);
}

// x or false = x, x or true = true
Value *orConstant(Op &op, Rewriter &rewriter) {
  return decided(op, 1, 1, 0, rewriter);
}

// x xor false = x, x xor true = not x
Value *xorConstant(Op &op, Rewriter &rewriter) {
  std::optional<double> c = splatOf(op.operand(1));
  if (!c || op.operand(0)->type != op.result()->type)
    return nullptr;
  return *c != 0 ? rewriter.before(op).buildNot({op.operand(0)})
                 : op.operand(0);
}

// where(true, a, b) = a
Value *whereConstant(Op &op, Rewriter &rewriter) {
  return decided(op, 0, 1, 2, rewriter);
}

// where(c, x, x) = x
Value *whereSame(Op &op, Rewriter &rewriter) {
  return op.operand(1) == op.operand(2) ? asResult(op, op.operand(1), rewriter)
                                        : nullptr;
}

// where(not c, a, b) = where(c, b, a)
Value *whereNot(Op &op, Rewriter &rewriter) {
  Op *inner = op.operand(0)->def(OpKind::Not);
  if (!inner)
    return nullptr;
  return rebuild(op, {inner->operand(0), op.operand(2), op.operand(1)},
                 rewriter);
}

/// The comparison that holds exactly when \p kind does not, where no value is
/// unordered.
std::optional<OpKind> opposite(OpKind kind) {
  switch (kind) {
  case OpKind::Less:
    return OpKind::GreaterEqual;
  case OpKind::LessEqual:
    return OpKind::Greater;
  case OpKind::Greater:
    return OpKind::LessEqual;
  case OpKind::GreaterEqual:
    return OpKind::Less;
  default:
    return std::nullopt;
  }
}

// not(a < b) = a >= b, of integers
Value *notCompare(Op &op, Rewriter &rewriter) {
  Op *compare = op.operand(0)->def();
  std::optional<OpKind> kind =
      compare ? opposite(compare->kind()) : std::nullopt;
  if (!kind || !isInteger(compare->operand(0)->element()))
    return nullptr;
  Builder builder = rewriter.before(op);
  return llvm::cantFail(builder.create(*kind, compare->operands()))->result();
}

// x == 0 is not(cast(x) to bool), x == 1 of a bool that was cast is that bool
Value *equalConstant(Op &op, Rewriter &rewriter) {
  Value *x = op.operand(0);
  std::optional<double> c = splatOf(op.operand(1));
  if (!c || x->shape() != op.result()->shape())
    return nullptr;
  Op *cast = x->def(OpKind::Cast);
  bool wasBool = cast && cast->operand(0)->element() == ElementType::Bool;
  if (*c == 1 && wasBool)
    return cast->operand(0);
  if (*c != 0)
    return nullptr;
  Builder builder = rewriter.before(op);
  Value *condition = x;
  if (x->element() != ElementType::Bool)
    condition = buildCast(builder, x, ElementType::Bool);
  return builder.buildNot({condition});
}

// a == a of what cannot be NaN
Value *compareSame(Op &op, Rewriter &rewriter) {
  if (op.operand(0) != op.operand(1) || isFloat(op.operand(0)->element()))
    return nullptr;
  bool holds = op.kind() == OpKind::Equal || op.kind() == OpKind::LessEqual ||
               op.kind() == OpKind::GreaterEqual;
  Builder builder = rewriter.before(op);
  Value *truth = builder.scalar(ElementType::Bool, holds);
  return op.result()->rank()
             ? buildBroadcast(builder, truth, op.result()->shape())
             : truth;
}

} // namespace

void passes::addLogicLaws(PeepholeSet &laws) {
  laws.add(OpKind::And, "x and true = x", andConstant);
  laws.add(OpKind::Or, "x or false = x", orConstant);
  laws.add(OpKind::Xor, "x xor false = x", xorConstant);
  laws.add(OpKind::Where, "where(true, a, b) = a", whereConstant);
  laws.add(OpKind::Where, "where(c, x, x) = x", whereSame);
  laws.add(OpKind::Where, "where(not c, a, b) = where(c, b, a)", whereNot);
  laws.add(OpKind::Not, "not(a < b) = a >= b", notCompare);
  laws.add(OpKind::Equal, "x == 0 is not(x)", equalConstant);
  laws.add({OpKind::Equal, OpKind::Less, OpKind::LessEqual, OpKind::Greater,
            OpKind::GreaterEqual},
           "a == a is true", compareSame);
}
