//===- WidenHalf.cpp - graphs of f16 and bf16 become graphs of f32 --------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

///
/// \file
/// The law, for T one of f16 and bf16, in models whose weights are in halves,
/// where nothing else is to be (CPUs compute in f32 whatever memory holds):
///
///   input : T       ->  cast(input) : f32
///   op : T          ->  the same op : f32
///   cast(x) : T     ->  x, in f32
///   output : T      ->  cast(output) : T
///
/// Constants are converted, which is exact. Nothing between the model's inputs
/// and outputs is rounded to T, so the graph is that of an f32 model and has
/// its fusions; what overflows T in the original is finite here. Weights become
/// halves again in narrow-weights.
///
/// Not matched: functions with caches of T as inputs (of rank 4 and more): to
/// cast them would be to copy them in every run. promote-half does those.

#include "passes/Pass.h"
#include "passes/precision/Half.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

using namespace tenon;
using namespace tenon::ir;

namespace {

constexpr llvm::StringLiteral passName = "widen-half";
constexpr llvm::StringLiteral law = "half-precision values are f32 inside";

using passes::castTo, passes::isHalf;

bool isHalf(const Value *value) { return value && isHalf(value->element()); }

class Widening {
public:
  explicit Widening(Func &func) : func(func) {}

  bool run(passes::PassContext &context) {
    bool any = false;
    for (unsigned i = 0; i < func.body.numArguments(); ++i)
      any |= isHalf(func.body.argument(i));
    for (Op &op : func.body)
      any |= llvm::any_of(op.results(),
                          [](const Value *value) { return isHalf(value); });
    if (!any)
      return false;
    Op *end = func.body.terminator();
    llvm::SmallVector<ElementType, 8> outputs;
    for (Value *value : end->operands())
      outputs.push_back(value->element());
    widenInputs();
    llvm::SmallVector<Op *, 64> ops;
    for (Op &op : func.body)
      ops.push_back(&op);
    for (Op *op : ops)
      if (op != end)
        widen(*op);
    for (auto [i, element] : llvm::enumerate(outputs))
      if (end->operand(i)->element() != element)
        end->setOperand(i,
                        castTo(Builder::before(end), end->operand(i), element));
    context.simplified(law, end->loc);
    return true;
  }

private:
  void widenInputs() {
    for (unsigned i = 0; i < func.body.numArguments(); ++i) {
      Value *argument = func.body.argument(i);
      if (!isHalf(argument))
        continue;
      llvm::SmallVector<Use, 4> uses(argument->uses());
      Value *single = castTo(Builder::before(&func.body.front()), argument,
                             ElementType::F32);
      for (Use use : uses)
        use.op->setOperand(use.index, single);
    }
  }

  /// Its operands are f32 by now.
  void widen(Op &op) {
    if (op.kind() == OpKind::Const) {
      if (isHalf(op.result()))
        widenConstant(op);
      return;
    }
    if (op.kind() == OpKind::Cast) {
      if (!isHalf(op.attrs<CastAttrs>().to))
        return;
      op.attrs<CastAttrs>().to = ElementType::F32;
      op.result()->type.element = ElementType::F32;
      if (op.operand(0)->element() == ElementType::F32)
        op.result()->replaceAllUsesWith(op.operand(0));
      return;
    }
    if (op.region())
      widenRegion(op);
    for (Value *result : op.results())
      if (isHalf(result))
        result->type.element = ElementType::F32;
  }

  void widenConstant(Op &op) {
    const ConstantRef &constant = op.attrs<ConstAttrs>().value;
    ConstantRef &single = constants[constant.get()];
    if (!single)
      single = Constant::converted(constant, ElementType::F32);
    Builder builder = Builder::before(&op);
    builder.loc = op.loc;
    op.result()->replaceAllUsesWith(builder.constant(single));
  }

  void widenRegion(Op &op) {
    Block &body = *op.region();
    for (unsigned i = 0; i < body.numArguments(); ++i)
      if (isHalf(body.argument(i)))
        body.argument(i)->type.element = ElementType::F32;
    llvm::SmallVector<Op *, 16> ops;
    for (Op &inner : body)
      ops.push_back(&inner);
    for (Op *inner : ops)
      widen(*inner);
  }

  Func &func;
  /// One for each constant, so that a weight with two uses stays one.
  llvm::DenseMap<const Constant *, ConstantRef> constants;
};

bool hasHalfCache(const Func &func) {
  for (unsigned i = 0; i < func.body.numArguments(); ++i)
    if (isHalf(func.body.argument(i)) && func.body.argument(i)->rank() >= 4)
      return true;
  return false;
}

struct WidenHalf final : passes::FuncPass {
  llvm::Expected<bool> runOnFunc(Module &, Func &func,
                                 passes::PassContext &context) override {
    if (hasHalfCache(func)) {
      context.missed(passName, func.body.terminator()->loc,
                     "it has caches of half precision");
      return false;
    }
    return Widening(func).run(context);
  }
};

} // namespace

std::unique_ptr<passes::Pass> passes::createWidenHalf() {
  return std::make_unique<WidenHalf>();
}
