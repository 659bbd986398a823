//===- PromoteHalf.cpp - f16 and bf16 are computed in f32 ----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

///
/// \file
/// The law, for T one of f16 and bf16 and an op f that computes:
///
///   f(x: T, ...) : T  ->  cast(f(cast(x) : f32, ...) : f32) : T
///
/// Every result is rounded to T, as the model says; what f does inside, the
/// sums of a matmul above all, is f32. A constant operand becomes an f32
/// constant. Bodies of maps and epilogues are treated alike.
///
/// Not matched: ops that only move elements, casts, `where`, and scatters that
/// replace. cast(cast(x: f32) : T) : f32 stays: it rounds.

#include "passes/Pass.h"
#include "passes/precision/Half.h"
#include "llvm/ADT/STLExtras.h"

using namespace tenon;
using namespace tenon::ir;

namespace {

constexpr llvm::StringLiteral passName = "promote-half";
constexpr llvm::StringLiteral law = "half-precision ops compute in f32";

using passes::castTo, passes::isHalf;

/// Whether \p op does more with its elements than to move them.
bool computes(const Op &op) {
  static constexpr OpKind moving[] = {
      OpKind::Const,          OpKind::Cast,     OpKind::Where,
      OpKind::Concat,         OpKind::Pad,      OpKind::Gather,
      OpKind::GatherElements, OpKind::GatherNd, OpKind::Trilu};
  switch (op.kind()) {
  case OpKind::ScatterNd:
    return op.attrs<ScatterNdAttrs>().reduction != ScatterReduction::None;
  case OpKind::ScatterElements:
    return op.attrs<ScatterElementsAttrs>().reduction != ScatterReduction::None;
  case OpKind::OneHot: // compares its indices, moves its values
    return isHalf(op.operand(0)->element());
  default:
    return !is(op, ViewLike) && !is(op, HasBody) && !is(op, Terminator) &&
           !llvm::is_contained(moving, op.kind());
  }
}

/// Makes everything that uses \p value, which is f32 from now on, use it cast
/// to what it was.
void roundUses(Value *value, Builder builder) {
  ElementType was = value->element();
  llvm::SmallVector<Use, 4> uses(value->uses());
  value->type.element = ElementType::F32;
  if (uses.empty())
    return;
  Value *rounded = castTo(builder, value, was);
  for (Use use : uses)
    use.op->setOperand(use.index, rounded);
}

class Promotion {
public:
  bool promote(Op &op, passes::PassContext &context) {
    unsigned count = numTensors(op);
    auto operands = op.operands().take_front(count);
    bool matches = computes(op) && llvm::any_of(operands, [](Value *operand) {
                     return operand && isHalf(operand->element());
                   });
    if (!matches || !context.allow(passName, op))
      return false;
    context.simplified(law, op.loc);
    for (unsigned i = 0; i != count; ++i)
      if (op.operand(i) && isHalf(op.operand(i)->element()))
        op.setOperand(i, inSingle(op.operand(i), op));
    if (op.region())
      roundUses(op.region()->argument(0),
                Builder::before(&op.region()->front()));
    // Types as the op infers them now: not every result follows the operands.
    InferContext inferred;
    llvm::cantFail(inferOp(op, inferred));
    for (auto [result, type] : llvm::zip(op.results(), inferred.results))
      if (result->element() != type.element)
        roundUses(result, Builder::after(&op));
    return true;
  }

private:
  /// How many of \p op's operands are tensors that it computes with; those of
  /// an epilogue are the region's business.
  static unsigned numTensors(const Op &op) {
    return op.region() ? 2 : op.numOperands();
  }

  /// \p value as f32 for \p user.
  Value *inSingle(Value *value, Op &user) {
    Builder builder = Builder::before(&user);
    Op *def = value->def(OpKind::Const);
    if (!def)
      return castTo(builder, value, ElementType::F32);
    const ConstantRef &constant = def->attrs<ConstAttrs>().value;
    ConstantRef &single = constants[constant.get()];
    if (!single)
      single = Constant::converted(constant, ElementType::F32);
    return builder.constant(single);
  }

  /// One for each constant, so that a weight with two uses stays one.
  llvm::DenseMap<const Constant *, ConstantRef> constants;
};

struct PromoteHalf final : passes::FuncPass {
  llvm::Expected<bool> runOnFunc(Module &, Func &func,
                                 passes::PassContext &context) override {
    llvm::SmallVector<Op *, 64> ops;
    for (Op &op : func.body) {
      ops.push_back(&op);
      if (op.region())
        for (Op &inner : *op.region())
          ops.push_back(&inner);
    }
    Promotion promotion;
    bool changed = false;
    for (Op *op : ops)
      changed |= promotion.promote(*op, context);
    return changed;
  }
};

} // namespace

std::unique_ptr<passes::Pass> passes::createPromoteHalf() {
  return std::make_unique<PromoteHalf>();
}
