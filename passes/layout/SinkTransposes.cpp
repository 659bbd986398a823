//===- SinkTransposes.cpp - transposes to where they cancel
//------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
/// \file
/// f(transpose(x)) = transpose(f(x)) for elementwise f, slices and softmax,
/// when that makes no transpose more: every user of the transpose lets it
/// through, or the other operands are transposed in the same way, are too small
/// to mind, or constants. At the bottom it meets another transpose or a matmul,
/// where it is free.

#include "passes/Pass.h"
#include "passes/canonical/FoldOp.h"
#include "passes/canonical/LawUtil.h"
#include "passes/canonical/Laws.h"
#include "llvm/ADT/STLExtras.h"

using namespace tenon;
using namespace tenon::ir;
using namespace tenon::passes;
using llvm::ArrayRef;

namespace {

/// Bytes of a constant that may be transposed for this.
constexpr uint64_t maxConstantBytes = 1 << 20;

const Ints &permOf(const Op &transpose) {
  return transpose.attrs<TransposeAttrs>().perm;
}

Ints inverse(ArrayRef<int64_t> perm) {
  Ints result(perm.size());
  for (auto [i, axis] : llvm::enumerate(perm))
    result[axis] = i;
  return result;
}

/// How many of the last dimensions \p perm leaves in place.
unsigned fixedLast(ArrayRef<int64_t> perm) {
  unsigned n = 0;
  while (n < perm.size() &&
         perm[perm.size() - 1 - n] == static_cast<int64_t>(perm.size() - 1 - n))
    ++n;
  return n;
}

/// Whether a transpose by \p perm moves only dimensions of 1 of \p shape.
bool isReshape(ShapeRef shape, ArrayRef<int64_t> perm) {
  int64_t last = -1;
  for (int64_t axis : perm) {
    if (shape[axis].isConstant(1))
      continue;
    if (axis < last)
      return false;
    last = axis;
  }
  return true;
}

/// Whether \p user lets a transpose through: without asking its other operands.
bool letsThrough(const Op &user) {
  return is(user, ElementwiseOp) || user.kind() == OpKind::Slice;
}

bool vanishes(Op &transpose) {
  return llvm::all_of(transpose.result()->uses(),
                      [](const Use &use) { return letsThrough(*use.op); });
}

/// \p operand as it is in front of a transpose by \p perm; null when that is
/// not free. Builds only with \p builder set.
Value *before(Value *operand, ArrayRef<int64_t> perm, Builder *builder) {
  if (operand->rank() <= fixedLast(perm))
    return operand;
  Op *op = operand->def();
  if (op && op->kind() == OpKind::Transpose && ArrayRef(permOf(*op)) == perm)
    return op->operand(0);
  Ints back = inverse(perm);
  if (operand->rank() != perm.size())
    return nullptr;
  const Constant *constant = constantOf(operand);
  bool isSmall =
      constant && byteSize(constant->element(), constant->numElements()) <=
                      maxConstantBytes;
  if (!isSmall && !isReshape(operand->shape(), back))
    return nullptr;
  return builder ? buildTranspose(*builder, operand, back) : operand;
}

Value *sinkElementwise(Op &op, Rewriter &rewriter) {
  Op *transpose = nullptr;
  for (Value *operand : op.operands()) {
    Op *def = operand->def(OpKind::Transpose);
    if (def && !transpose && def->result()->shape() == op.result()->shape() &&
        vanishes(*def))
      transpose = def;
  }
  if (!transpose)
    return nullptr;
  Ints perm = permOf(*transpose);
  for (Value *operand : op.operands())
    if (!before(operand, perm, nullptr))
      return nullptr;
  Builder builder = rewriter.before(op);
  llvm::SmallVector<Value *, 3> operands;
  for (Value *operand : op.operands())
    operands.push_back(before(operand, perm, &builder));
  Value *y = llvm::cantFail(builder.clone(op, operands))->result();
  return buildTranspose(builder, y, perm);
}

Value *sinkSlice(Op &op, Rewriter &rewriter) {
  Op *transpose = op.operand(0)->def(OpKind::Transpose);
  if (!transpose || !vanishes(*transpose))
    return nullptr;
  const auto &attrs = op.attrs<SliceAttrs>();
  SliceAttrs inside = attrs;
  for (auto [i, axis] : llvm::enumerate(permOf(*transpose))) {
    inside.starts[axis] = attrs.starts[i];
    inside.sizes[axis] = attrs.sizes[i];
    inside.steps[axis] = attrs.steps[i];
  }
  Builder builder = rewriter.before(op);
  Value *y = builder.buildSlice({transpose->operand(0)}, inside);
  return buildTranspose(builder, y, permOf(*transpose));
}

Value *sinkConcat(Op &op, Rewriter &rewriter) {
  Op *first = op.operand(0)->def(OpKind::Transpose);
  if (!first || op.numOperands() < 2)
    return nullptr;
  llvm::SmallVector<Value *, 3> inputs;
  for (Value *input : op.operands()) {
    Op *transpose = input->def(OpKind::Transpose);
    if (!transpose || permOf(*transpose) != permOf(*first))
      return nullptr;
    inputs.push_back(transpose->operand(0));
  }
  Builder builder = rewriter.before(op);
  AxisAttrs attrs;
  attrs.axis = permOf(*first)[op.attrs<AxisAttrs>().axis];
  return buildTranspose(builder, builder.buildConcat(inputs, attrs),
                        permOf(*first));
}

class SinkTransposes final : public FuncPass {
public:
  SinkTransposes() {
    for (unsigned i = 0; i != numOpKinds; ++i) {
      OpKind kind = static_cast<OpKind>(i);
      if (opDef(kind).is(ElementwiseOp))
        laws.add(kind, "f(transpose(x)) = transpose(f(x))", sinkElementwise);
    }
    laws.add(OpKind::Slice, "slice(transpose(x)) = transpose(slice(x))",
             sinkSlice);
    laws.add(OpKind::Concat, "concat(transpose(x)) = transpose(concat(x))",
             sinkConcat);
    // Two that meet are one before they go on: else a chain of them moves on
    // together, one rewrite each for every step of each.
    addTransposeLaws(laws);
  }

  llvm::Expected<bool> runOnFunc(Module &module, Func &func,
                                 PassContext &context) override {
    return applyPeepholes(module, func, laws, &context);
  }

private:
  PeepholeSet laws;
};

} // namespace

std::unique_ptr<Pass> passes::createSinkTransposes() {
  return std::make_unique<SinkTransposes>();
}
