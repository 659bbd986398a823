//===- PackedWeights.cpp - weights that stay packed ----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/analysis/PackedWeights.h"
#include "ir/OpDef.h"

using namespace tenon;
using namespace tenon::ir;

namespace {

/// Longer than any importer's chain.
constexpr unsigned maxSteps = 12;

bool isStep(const Op &op) {
  switch (op.kind()) {
  case OpKind::Cast:
  case OpKind::Add:
  case OpKind::Sub:
  case OpKind::Mul:
  case OpKind::Reshape:
  case OpKind::Slice:
  case OpKind::Transpose:
    return op.result()->element() == ElementType::F32;
  default:
    return false;
  }
}

/// The operand that \p op works on: the other one of a sum or product is a
/// constant.
Value *mainOperand(const Op &op) {
  bool second = is(op, Commutative) && op.operand(0)->def(OpKind::Const);
  return op.operand(second ? 1 : 0);
}

/// Constant codes [n, blocks, block] that the kernels know.
bool areCodes(const Value &value) {
  ElementType element = value.element();
  if (!value.def(OpKind::Const) || value.rank() != 3 ||
      (element != ElementType::U2 && element != ElementType::U4 &&
       element != ElementType::U8))
    return false;
  std::optional<int64_t> block = value.shape()[2].constant();
  return block && *block % 16 == 0;
}

bool comesFromCodes(const Op &op) {
  const Op *at = &op;
  for (unsigned steps = 0; at && steps < maxSteps; ++steps) {
    if (!isStep(*at))
      return false;
    Value *from = mainOperand(*at);
    if (at->kind() == OpKind::Cast)
      return areCodes(*from);
    at = from->def();
  }
  return false;
}

bool goesToProduct(const Op &op) {
  const Op *at = &op;
  for (unsigned steps = 0; steps < maxSteps; ++steps) {
    if (!at->result()->hasOneUse())
      return false;
    Use use = at->result()->uses().front();
    if (use.op->kind() == OpKind::MatMul)
      return use.index == 1;
    if (!isStep(*use.op) || mainOperand(*use.op) != at->result())
      return false;
    at = use.op;
  }
  return false;
}

} // namespace

bool passes::unpacksWeight(const Op &op) {
  return isStep(op) && comesFromCodes(op) && goesToProduct(op);
}
