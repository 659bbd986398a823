//===- RotaryTable.cpp - the angles' cosines and sines of rotary forms ---===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/fusion/RotaryTable.h"
#include "ir/OpDef.h"
#include "passes/canonical/LawUtil.h"
#include "llvm/ADT/STLExtras.h"
#include <cstring>

using namespace tenon;
using namespace tenon::ir;
using passes::Doubling;

namespace {

/// Exporters build tables in fewer steps.
constexpr unsigned maxDepth = 16;

bool varies(const Value *value) {
  return value->rank() != 0 && !value->shape().back().isConstant(1);
}

/// By the contents: row by row, the bytes of each value twice.
bool isDoubledConstant(const Constant &constant, Doubling doubling) {
  llvm::ArrayRef<int64_t> shape = constant.shape();
  unsigned bits = bitWidth(constant.element());
  if (shape.empty() || shape.back() % 2 != 0 || bits % 8 != 0 ||
      constant.numElements() > (int64_t(1) << 24))
    return false;
  std::vector<uint8_t> bytes = constant.materialize();
  size_t n = shape.back() / 2, size = bits / 8;
  for (size_t row = 0; row < bytes.size(); row += 2 * n * size)
    for (size_t i = 0; i < n; ++i) {
      size_t a = doubling == Doubling::Halves ? i : 2 * i,
             b = doubling == Doubling::Halves ? i + n : 2 * i + 1;
      if (std::memcmp(&bytes[row + a * size], &bytes[row + b * size], size))
        return false;
    }
  return true;
}

/// reshape(broadcast(reshape(x, [.., n, 1]), [.., n, 2]), [.., 2 n]), or with
/// concat(x, x) in the middle; gives x's value as [..., n, 1].
Value *beforePairs(Op &reshape) {
  Value *pairs = reshape.operand(0);
  ShapeRef to = reshape.result()->shape(), from = pairs->shape();
  Op *op = pairs->def();
  if (!op || from.size() != to.size() + 1 || !from.back().isConstant(2) ||
      from.drop_back(2) != to.drop_back() ||
      to.back() != from[from.size() - 2] * Dim(2))
    return nullptr;
  Value *once = nullptr;
  if (op->kind() == OpKind::Broadcast)
    once = op->operand(0);
  else if (op->kind() == OpKind::Concat && op->numOperands() == 2 &&
           op->operand(0) == op->operand(1) &&
           op->attrs<AxisAttrs>().axis + 1 == int64_t(from.size()))
    once = op->operand(0);
  bool fits = once && once->rank() == from.size() &&
              once->shape().back().isConstant(1) &&
              once->shape()[from.size() - 2] == from[from.size() - 2];
  return fits ? once : nullptr;
}

/// concat(x, x) along the last dimension, or the same as a broadcast; gives x.
Value *beforeHalves(Op &op) {
  Value *y = op.result();
  if (op.kind() == OpKind::Concat && op.numOperands() == 2 &&
      op.operand(0) == op.operand(1) &&
      op.attrs<AxisAttrs>().axis + 1 == int64_t(y->rank()))
    return op.operand(0);
  return nullptr;
}

/// Whether \p op keeps the last dimension whole and apart from the others.
bool keepsLast(const Op &op) {
  ShapeRef from = op.operand(0)->shape(), to = op.result()->shape();
  if (from.empty() || to.empty() || from.back() != to.back())
    return false;
  if (op.kind() == OpKind::Transpose) {
    llvm::ArrayRef<int64_t> perm = op.attrs<TransposeAttrs>().perm;
    return perm.back() + 1 == int64_t(perm.size());
  }
  if (op.kind() == OpKind::Slice) {
    const auto &attrs = op.attrs<SliceAttrs>();
    return attrs.starts.back().isConstant(0) && attrs.steps.back() == 1;
  }
  return op.kind() == OpKind::Broadcast || op.kind() == OpKind::Reshape;
}

bool gathersRows(const Op &op) {
  return op.kind() == OpKind::Gather && op.attrs<AxisAttrs>().axis == 0 &&
         op.operand(0)->rank() >= 2;
}

bool doubled(Value *table, Doubling doubling, unsigned depth) {
  if (!varies(table))
    return true;
  Op *op = table->def();
  if (!op || depth > maxDepth)
    return false;
  if (op->kind() == OpKind::Const)
    return isDoubledConstant(*op->attrs<ConstAttrs>().value, doubling);
  if (doubling == Doubling::Halves && beforeHalves(*op))
    return true;
  if (doubling == Doubling::Pairs && op->kind() == OpKind::Reshape &&
      beforePairs(*op))
    return true;
  if (gathersRows(*op) || keepsLast(*op))
    return doubled(op->operand(0), doubling, depth + 1);
  if (!is(*op, ElementwiseOp))
    return false;
  return llvm::all_of(op->operands(), [&](Value *operand) {
    return doubled(operand, doubling, depth + 1);
  });
}

/// The constant's first half of each row, or every second value.
Value *sliceOf(Value *x, Doubling doubling, Builder &builder) {
  SliceAttrs attrs;
  attrs.starts.assign(x->rank(), Dim(0));
  attrs.sizes.assign(x->shape().begin(), x->shape().end());
  attrs.steps.assign(x->rank(), 1);
  attrs.sizes.back() = Dim::floorDiv(x->shape().back(), 2);
  if (doubling == Doubling::Pairs)
    attrs.steps.back() = 2;
  return builder.buildSlice({x}, attrs);
}

Shape withLast(ShapeRef shape, Dim last) {
  Shape result(shape);
  result.back() = last;
  return result;
}

} // namespace

bool passes::isDoubled(Value *table, Doubling doubling) {
  return varies(table) && doubled(table, doubling, 0);
}

Value *passes::halved(Value *table, Doubling doubling, Builder &builder) {
  if (!varies(table))
    return table;
  Op &op = *table->def();
  if (op.kind() == OpKind::Const)
    return sliceOf(table, doubling, builder);
  if (doubling == Doubling::Halves)
    if (Value *once = beforeHalves(op))
      return once;
  Dim half = Dim::floorDiv(table->shape().back(), 2);
  if (doubling == Doubling::Pairs && op.kind() == OpKind::Reshape)
    if (Value *once = beforePairs(op))
      return buildReshape(builder, once,
                          withLast(once->shape().drop_back(), half));
  llvm::SmallVector<Value *, 3> operands(op.operands());
  for (Value *&operand : operands)
    if (operand == op.operand(0) || is(op, ElementwiseOp))
      operand = halved(operand, doubling, builder);
  switch (op.kind()) {
  case OpKind::Reshape:
    return buildReshape(builder, operands[0], withLast(table->shape(), half));
  case OpKind::Broadcast:
    return buildBroadcast(builder, operands[0], withLast(table->shape(), half));
  case OpKind::Slice: {
    SliceAttrs attrs = op.attrs<SliceAttrs>();
    attrs.sizes.back() = half;
    return builder.buildSlice(operands, attrs);
  }
  default:
    return llvm::cantFail(builder.clone(op, operands))->result();
  }
}
