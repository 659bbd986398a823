//===- ByteProducts.cpp - products of 8-bit numbers -----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/ByteProducts.h"
#include "ir/OpDef.h"
#include "llvm/ADT/STLExtras.h"

using namespace tenon;
using namespace tenon::ir;

namespace {

/// A use as the first operand of a matmul by a widened constant of bytes.
bool isByteFactor(const Use &use) {
  if (use.op->kind() != OpKind::MatMul || use.index != 0)
    return false;
  Op *cast = use.op->operand(1)->def(OpKind::Cast);
  return cast && cast->operand(0)->def(OpKind::Const) &&
         cast->operand(0)->element() == ElementType::I8;
}

bool isCentre(const Op &op) {
  return op.kind() == OpKind::Sub &&
         op.result()->element() == ElementType::F32 &&
         !op.result()->uses().empty() &&
         llvm::all_of(op.result()->uses(), isByteFactor);
}

bool isWidening(const Op &op) {
  return op.kind() == OpKind::Cast &&
         op.result()->element() == ElementType::F32 &&
         op.operand(0)->element() == ElementType::U8;
}

} // namespace

std::optional<passes::ByteRows> passes::byteRows(const Value *value) {
  ByteRows rows;
  bool isSub = value->def(OpKind::Sub) != nullptr;
  if (const Op *op = isSub ? value->def() : value->def(OpKind::Add)) {
    rows.zero = op->operand(1);
    if (!numElements(rows.zero->shape()).isConstant(1) ||
        op->operand(0)->rank() != value->rank())
      return std::nullopt;
    value = op->operand(0);
  }
  const Op *cast = value->def(OpKind::Cast);
  if (!cast || value->element() != ElementType::I32)
    return std::nullopt;
  rows.a = cast->operand(0);
  ElementType element = rows.a->element();
  if (element != ElementType::U8 && element != ElementType::I8)
    return std::nullopt;
  if (!rows.zero)
    return rows;
  if (const Op *widening = rows.zero->def(OpKind::Cast))
    return isSub && widening->operand(0)->element() == element
               ? std::optional(rows)
               : std::nullopt;
  const Op *constant = rows.zero->def(OpKind::Const);
  if (!constant)
    return std::nullopt;
  rows.zero = nullptr;
  rows.number = constant->attrs<ConstAttrs>().value->intAt(0);
  if (!isSub) // x - c, as canonicalize has it
    rows.number = -rows.number;
  int64_t least = element == ElementType::U8 ? 0 : -128;
  return rows.number >= least && rows.number < least + 256 ? std::optional(rows)
                                                           : std::nullopt;
}

bool passes::sumsBytes(const Op &product) {
  if (product.kind() != OpKind::MatMul || product.region() ||
      product.result()->element() != ElementType::I32 ||
      product.operand(1)->rank() != 2 || !product.result()->hasOneUse())
    return false;
  const Op *cast = product.result()->uses().front().op;
  std::optional<int64_t> rows = product.operand(1)->shape()[0].constant();
  return cast->kind() == OpKind::Cast &&
         cast->result()->element() == ElementType::F32 && rows &&
         *rows <= mostByteRows && byteRows(product.operand(0));
}

bool passes::widensByteMatrix(const Op &op) {
  return op.kind() == OpKind::Cast && op.operand(0)->def(OpKind::Const) &&
         op.operand(0)->element() == ElementType::I8 &&
         op.result()->element() == ElementType::I32 &&
         !op.result()->uses().empty() &&
         llvm::all_of(op.result()->uses(), [](const Use &use) {
           return use.index == 1 && sumsBytes(*use.op);
         });
}

bool passes::widensBytes(const Op &op) {
  if (isCentre(op)) {
    Op *cast = op.operand(0)->def();
    return cast && isWidening(*cast);
  }
  return isWidening(op) && !op.result()->uses().empty() &&
         llvm::all_of(op.result()->uses(), [](const Use &use) {
           return isByteFactor(use) || isCentre(*use.op);
         });
}
