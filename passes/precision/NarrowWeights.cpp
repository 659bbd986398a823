//===- NarrowWeights.cpp - matrices are stored in halves ------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

///
/// \file
/// The law, for T the f16 or bf16 that --precision names or the model has:
///
///   x W           ->  x cast(W : T) : f32
///   gather(W, i)  ->  cast(gather(W : T, i)) : f32
///
/// for constants W of rank 2: half the bytes, widened in registers. Products,
/// sums and everything else stay f32. A weight of a model in T loses nothing;
/// another is rounded to nearest even.
///
/// Not matched: tables of fewer than 4096 elements, which cost nothing, as
/// splats do; and a matrix with an element that T cannot hold as a finite
/// number.

#include "passes/Pass.h"
#include "passes/Pipelines.h"
#include "passes/precision/Half.h"
#include "llvm/ADT/DenseMap.h"
#include <cmath>

using namespace tenon;
using namespace tenon::ir;

namespace {

constexpr llvm::StringLiteral passName = "narrow-weights";
constexpr uint64_t leastElements = 4096;

using passes::castTo;

class Narrowing {
public:
  Narrowing(ElementType half, passes::PassContext &context)
      : half(half), context(context) {}

  bool visit(Op &op) {
    if (op.kind() == OpKind::MatMul)
      return narrowOperand(op, 1);
    if (op.kind() == OpKind::Gather)
      return narrowTable(op);
    return false;
  }

private:
  /// The constant behind \p value, perhaps transposed, if it is to be narrowed.
  Op *tableOf(Value *value, const Op &user) {
    if (Op *transpose = value->def(OpKind::Transpose))
      value = transpose->operand(0);
    Op *def = value->def(OpKind::Const);
    if (!def || value->rank() != 2 || value->element() != ElementType::F32 ||
        def->attrs<ConstAttrs>().value->numElements() < leastElements ||
        def->attrs<ConstAttrs>().value->form() == Constant::Form::Splat)
      return nullptr;
    if (!fits(def->attrs<ConstAttrs>().value)) {
      context.missed(passName, user.loc,
                     "its matrix has numbers that are infinite in half "
                     "precision");
      return nullptr;
    }
    return context.allow(passName, user) ? def : nullptr;
  }

  bool narrowOperand(Op &op, unsigned index) {
    Value *value = op.operand(index);
    Op *def = tableOf(value, op);
    if (!def)
      return false;
    Builder builder = Builder::before(&op);
    builder.loc = op.loc;
    Value *narrow = builder.constant(halfOf(def->attrs<ConstAttrs>().value));
    if (Op *transpose = value->def(OpKind::Transpose))
      narrow =
          builder.buildTranspose({narrow}, transpose->attrs<TransposeAttrs>());
    op.setOperand(index, castTo(builder, narrow, ElementType::F32));
    context.applied(passName, op.loc, {&op});
    return true;
  }

  bool narrowTable(Op &op) {
    Op *def = tableOf(op.operand(0), op);
    if (!def || def != op.operand(0)->def())
      return false;
    Builder before = Builder::before(&op);
    before.loc = op.loc;
    op.setOperand(0, before.constant(halfOf(def->attrs<ConstAttrs>().value)));
    op.result()->type.element = half;
    llvm::SmallVector<Use, 4> uses(op.result()->uses());
    Builder after = Builder::after(&op);
    after.loc = op.loc;
    Value *single = castTo(after, op.result(), ElementType::F32);
    for (Use use : uses)
      use.op->setOperand(use.index, single);
    context.applied(passName, op.loc, {&op});
    return true;
  }

  const ConstantRef &halfOf(const ConstantRef &constant) {
    ConstantRef &known = halves[constant.get()];
    if (!known)
      known = Constant::converted(constant, half);
    return known;
  }

  /// bf16 has the range of f32.
  bool fits(const ConstantRef &constant) {
    if (half == ElementType::BF16)
      return true;
    auto [entry, isNew] = fitting.try_emplace(constant.get(), true);
    if (!isNew)
      return entry->second;
    constexpr uint64_t piece = 1 << 16;
    std::vector<float> some(piece);
    float most = 0;
    for (uint64_t at = 0; at < constant->numElements(); at += piece) {
      uint64_t count = std::min(piece, constant->numElements() - at);
      constant->read(at, count, reinterpret_cast<uint8_t *>(some.data()));
      for (uint64_t i = 0; i < count; ++i)
        if (std::isfinite(some[i]))
          most = std::max(most, std::fabs(some[i]));
    }
    return entry->second = most < 65520; // rounds to infinity from there on
  }

  ElementType half;
  passes::PassContext &context;
  /// One for each constant, so that a weight with two uses stays one.
  llvm::DenseMap<const Constant *, ConstantRef> halves;
  llvm::DenseMap<const Constant *, bool> fitting;
};

struct NarrowWeights final : passes::FuncPass {
  llvm::Expected<bool> runOnFunc(Module &, Func &func,
                                 passes::PassContext &context) override {
    std::optional<ElementType> half =
        passes::storageOf(context.options.precision);
    if (!half)
      return false;
    llvm::SmallVector<Op *, 64> ops;
    for (Op &op : func.body)
      ops.push_back(&op);
    Narrowing narrowing(*half, context);
    bool changed = false;
    for (Op *op : ops)
      changed |= narrowing.visit(*op);
    return changed;
  }
};

} // namespace

std::unique_ptr<passes::Pass> passes::createNarrowWeights() {
  return std::make_unique<NarrowWeights>();
}
