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

bool passes::widensBytes(const Op &op) {
  if (isCentre(op)) {
    Op *cast = op.operand(0)->def();
    return cast && isWidening(*cast);
  }
  return isWidening(op) && !op.result()->uses().empty() &&
         llvm::all_of(op.result()->uses(), [](const Use &use) {
           return isByteFactor(use) || (use.index == 0 && isCentre(*use.op));
         });
}
