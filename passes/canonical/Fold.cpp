//===- Fold.cpp - constant folding
//-------------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Pass.h"
#include "passes/canonical/FoldOp.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

using namespace tenon;
using namespace tenon::ir;
using namespace tenon::passes;

namespace {

/// The transpose of a big table that is gathered from too: a language model's
/// embedding that is its output projection as well. The matmul can read the
/// table as it is; a transposed copy would double it.
bool isTiedTable(const Op &op) {
  constexpr uint64_t big = 1 << 20;
  if (op.kind() != OpKind::Transpose)
    return false;
  const Value *table = op.operand(0);
  const Op *def = table->def(OpKind::Const);
  if (!def || def->attrs<ConstAttrs>().value->numElements() < big)
    return false;
  return llvm::any_of(table->uses(), [](const Use &use) {
    return use.op->kind() == OpKind::Gather && use.index == 0;
  });
}

/// Computes ops on constants, in order, so that one sweep folds whole chains.
class Fold final : public FuncPass {
public:
  llvm::Expected<bool> runOnFunc(Module &module, Func &func,
                                 PassContext &context) override {
    bool changed = false;
    llvm::SmallVector<Op *, 64> ops;
    for (Op &op : func.body)
      ops.push_back(&op);
    FoldBudget budget(constantBytes(ops));
    for (Op *op : ops) {
      if (!op->hasUses() || isTiedTable(*op))
        continue;
      ConstantRef value = foldOp(*op, budget);
      if (!value || !context.allow("fold", *op))
        continue;
      context.simplified("an op on constants is a constant", op->loc);
      Builder builder = Builder::before(op);
      builder.loc = op->loc;
      op->result()->replaceAllUsesWith(builder.constant(value));
      changed = true;
    }
    return eraseDead(func) | changed;
  }

private:
  /// Bytes of the dense constants, each counted once.
  static uint64_t constantBytes(llvm::ArrayRef<Op *> ops) {
    llvm::DenseSet<const void *> seen;
    uint64_t sum = 0;
    for (const Op *op : ops) {
      if (op->kind() != OpKind::Const)
        continue;
      const Constant &constant = *op->attrs<ConstAttrs>().value;
      if (constant.form() == Constant::Form::Dense &&
          seen.insert(constant.bytes().data()).second)
        sum += constant.bytes().size();
    }
    return sum;
  }

  /// What was folded, and the constants on the way.
  static bool eraseDead(Func &func) {
    bool changed = false;
    Op *op = func.body.empty() ? nullptr : &func.body.back();
    while (op) {
      Op *previous = op->prev();
      if (op->numResults() && !op->hasUses() && !is(*op, SideEffect)) {
        op->erase();
        changed = true;
      }
      op = previous;
    }
    return changed;
  }
};

} // namespace

std::unique_ptr<Pass> passes::createFold() { return std::make_unique<Fold>(); }
