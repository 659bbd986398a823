//===- AssignPrecision.cpp - values in half, arithmetic in f32 ------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

///
/// \file
/// The law, for T the f16 or bf16 that --precision names, and every op f of a
/// model's bulk (contractions, attention, norms, elementwise work):
///
///   y = f(x, w) : f32   ->   y' = cast(f(cast(x') : f32, cast(w') : f32)) : T
///
/// What lies in memory, activations and weights, is T; sums, statistics and
/// everything else between loading and storing stay f32. In maps and epilogues
/// the casts are part of the body; those at the operands of other ops, and a
/// cast that is the only use of a result, are a kernel's business
/// (codegen/select): it reads and writes T. Ops that only move elements move T.
///
/// With --max-context caches (an output that is an input with more behind it)
/// are memory of the session, and T as well.
///
/// Not matched: what layers add to and hand on, which would be rounded once for
/// each (a sum with a tensor of its own shape that norms read, and beside them
/// only further sums): it stays f32. Other inputs and outputs of the model,
/// which keep their types: what is an output, perhaps moved, is stored in f32
/// as it was computed; scalars; ops outside the list; and values that follow
/// from integers and constants alone: positions, angles and masks have too many
/// values for T.

#include "passes/Pass.h"
#include "passes/analysis/ByteProducts.h"
#include "passes/analysis/PackedWeights.h"
#include "passes/fusion/ScalarRegion.h"
#include "passes/precision/Half.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

using namespace tenon;
using namespace tenon::ir;

namespace {

constexpr llvm::StringLiteral passName = "assign-precision";
constexpr llvm::StringLiteral law = "values are stored in half precision";

bool isSingle(const Value *value) {
  return value && value->element() == ElementType::F32;
}

using passes::castTo;

/// Ops whose kernels read and write halves where a cast stands beside them.
bool isBulk(OpKind kind) {
  return kind == OpKind::MatMul || kind == OpKind::Conv ||
         kind == OpKind::Attention || kind == OpKind::LayerNorm ||
         kind == OpKind::RmsNorm || kind == OpKind::Softmax ||
         kind == OpKind::Rotary;
}

/// Ops that move elements of operand 0 (concat: of all).
bool isMove(OpKind kind) {
  return kind == OpKind::Reshape || kind == OpKind::Transpose ||
         kind == OpKind::Slice || kind == OpKind::Broadcast ||
         kind == OpKind::Concat || kind == OpKind::Gather;
}

class Assignment {
public:
  Assignment(Func &func, ElementType half) : func(func), half(half) {}

  bool run(passes::PassContext &context) {
    llvm::SmallVector<Op *, 64> ops;
    for (Op &op : func.body)
      ops.push_back(&op);
    if (context.options.maxContext > 0)
      narrowCaches();
    for (unsigned i = 0; i < func.body.numArguments(); ++i) {
      Value *argument = func.body.argument(i);
      if (isSingle(argument) && feedsBulk(argument))
        round(argument, Builder::before(&func.body.front()));
    }
    for (Op *op : ops) {
      if (followsIntegers(*op) || passes::widensBytes(*op)) {
        for (const Value *result : op->results())
          exact.insert(result);
        continue;
      }
      // A weight's codes are a kernel's business.
      if (passes::unpacksWeight(*op))
        continue;
      if (isCandidate(*op) && context.allow(passName, *op))
        if (visit(*op))
          context.simplified(law, op->loc);
    }
    finishCaches();
    return edits != 0;
  }

private:
  static bool isCandidate(const Op &op) {
    return isBulk(op.kind()) || isMove(op.kind()) || op.kind() == OpKind::Map ||
           (is(op, ElementwiseOp) && op.kind() != OpKind::Cast);
  }

  /// Whether some contraction reads \p value, perhaps moved.
  static bool feedsBulk(const Value *value) {
    return llvm::any_of(value->uses(), [](const Use &use) {
      return isBulk(use.op->kind()) ||
             (isMove(use.op->kind()) && use.op->numResults() == 1 &&
              llvm::any_of(use.op->result()->uses(), [](const Use &next) {
                return isBulk(next.op->kind());
              }));
    });
  }

  /// Whether every operand that is no constant holds integers or follows from
  /// them. A gather's table is data.
  bool followsIntegers(const Op &op) const {
    if (op.kind() == OpKind::Gather || op.kind() == OpKind::Const)
      return false;
    bool any = false;
    for (const Value *operand : op.operands()) {
      if (!operand || operand->def(OpKind::Const))
        continue;
      any = true;
      if (isFloat(operand->element()) && !exact.contains(operand))
        return false;
    }
    return any;
  }

  /// The concatenation of an input, which nothing else uses, and new rows.
  static Op *growthOf(Value *output) {
    Op *concat = output->def(OpKind::Concat);
    bool grows = concat && concat->numOperands() == 2 && isSingle(output) &&
                 !concat->operand(0)->def() && concat->operand(0)->hasOneUse();
    return grows ? concat : nullptr;
  }

  void narrowCaches() {
    for (Value *output : func.body.terminator()->operands())
      if (Op *concat = growthOf(output)) {
        widenUses(concat->operand(0), Builder::before(concat));
        caches.push_back(concat);
      }
  }

  /// Caches go out as they are; one whose new rows are no halves stays f32.
  void finishCaches() {
    for (Op *concat : caches) {
      if (isSingle(concat->result())) {
        Value *past = concat->operand(0)->def()->operand(0);
        past->type.element = ElementType::F32;
        concat->setOperand(0, past);
        continue;
      }
      llvm::SmallVector<Use, 4> uses(concat->result()->uses());
      for (const Use &use : uses) {
        if (use.op->kind() != OpKind::Cast)
          continue;
        llvm::SmallVector<Use, 4> outside(use.op->result()->uses());
        for (const Use &next : outside)
          if (isOutput(next))
            next.op->setOperand(next.index, concat->result());
      }
    }
  }

  bool visit(Op &op) {
    unsigned before = edits;
    if (isMove(op.kind()))
      move(op);
    else if (op.kind() == OpKind::Map)
      assignRegion(op, 0);
    else if (isBulk(op.kind()))
      assignBulk(op);
    else
      assignElementwise(op);
    return edits != before;
  }

  /// \p value as it lies in memory: what it was cast from, or a constant; null
  /// if it is neither.
  Value *narrow(Value *value) {
    if (!isSingle(value) || exact.contains(value))
      return nullptr;
    Op *def = value->def();
    if (!def)
      return nullptr;
    if (def->kind() == OpKind::Cast && def->operand(0)->element() == half)
      return def->operand(0);
    if (def->kind() != OpKind::Const)
      return nullptr;
    const ConstantRef &constant = def->attrs<ConstAttrs>().value;
    if (constant->numElements() < 2 || constant->splatValue())
      return nullptr;
    Value *&known = constants[constant.get()];
    if (!known)
      known = Builder::after(def).constant(Constant::converted(constant, half));
    return known;
  }

  /// Whether \p use makes its value an output of the model.
  static bool isOutput(const Use &use) {
    return use.op->kind() == OpKind::Return;
  }

  /// Whether \p value is only an output of the model, perhaps moved.
  static bool goesOut(const Value *value) {
    while (value->uses().size() == 1) {
      const Op &op = *value->uses()[0].op;
      if (op.kind() == OpKind::Return)
        return true;
      if (!isMove(op.kind()) || op.numResults() != 1)
        return false;
      value = op.result();
    }
    return false;
  }

  /// Has the uses of \p value, which is f32, see it rounded to half.
  void round(Value *value, Builder builder) {
    llvm::SmallVector<Use, 4> uses(value->uses());
    llvm::erase_if(uses, isOutput);
    if (uses.empty() || goesOut(value))
      return;
    ++edits;
    Value *single =
        castTo(builder, castTo(builder, value, half), ElementType::F32);
    for (Use use : uses)
      use.op->setOperand(use.index, single);
  }

  /// Has the uses of \p value, which is half from now on, see it as f32.
  void widenUses(Value *value, Builder builder) {
    llvm::SmallVector<Use, 4> uses(value->uses());
    ++edits;
    value->type.element = half;
    if (uses.empty())
      return;
    Value *single = castTo(builder, value, ElementType::F32);
    for (Use use : uses)
      use.op->setOperand(use.index, single);
  }

  void move(Op &op) {
    if (!isSingle(op.result()))
      return;
    unsigned count = op.kind() == OpKind::Concat ? op.numOperands() : 1;
    llvm::SmallVector<Value *, 4> halves;
    for (Value *operand : op.operands().take_front(count))
      halves.push_back(narrow(operand));
    if (llvm::is_contained(halves, nullptr))
      return;
    for (auto [i, value] : llvm::enumerate(halves))
      op.setOperand(i, value);
    widenUses(op.result(), Builder::after(&op));
  }

  /// Whether body value \p sum adds an operand of \p op that has \p shape.
  static bool addsTensor(const Op &op, const Value *sum, ShapeRef shape) {
    llvm::SmallVector<const Value *, 4> terms{sum};
    while (!terms.empty()) {
      const Value *term = terms.pop_back_val();
      const Op *def = term->def();
      if (def && (def->kind() == OpKind::Add || def->kind() == OpKind::Cast)) {
        llvm::append_range(terms, def->operands());
        continue;
      }
      for (unsigned i = op.kind() == OpKind::Map ? 0 : 2; i < op.numOperands();
           ++i)
        if (op.region()->argument(argumentOf(op, i)) == term &&
            ShapeRef(op.operand(i)->shape()) == shape)
          return true;
    }
    return false;
  }

  /// Whether norms read \p value, perhaps moved, and else only bodies do.
  static bool isNormed(const Value *value) {
    bool normed = false;
    llvm::SmallVector<const Value *, 4> values{value};
    while (!values.empty())
      for (const Use &use : values.pop_back_val()->uses()) {
        OpKind kind = use.op->kind();
        bool isNorm = kind == OpKind::LayerNorm || kind == OpKind::RmsNorm;
        bool inBody = kind == OpKind::Map || kind == OpKind::Add ||
                      (use.op->region() && use.index >= 2);
        normed |= isNorm && use.index == 0;
        if (isMove(kind) && use.op->numResults() == 1 && use.index == 0)
          values.push_back(use.op->result());
        else if (!inBody && !(isNorm && use.index == 0))
          return false;
      }
    return normed;
  }

  /// The body's arguments from \p first on, and its results.
  void assignRegion(Op &op, unsigned firstOperand) {
    Block &body = *op.region();
    for (unsigned i = firstOperand; i < op.numOperands(); ++i) {
      Value *argument = body.argument(argumentOf(op, i));
      Value *value = narrow(op.operand(i));
      if (!value)
        continue;
      op.setOperand(i, value);
      widenUses(argument, Builder::before(&body.front()));
    }
    Op *yield = body.terminator();
    for (auto [i, result] : llvm::enumerate(op.results())) {
      if (!isSingle(result) || !isSingle(yield->operand(i)))
        continue;
      if (addsTensor(op, yield->operand(i), result->shape()) &&
          isNormed(result))
        continue;
      if (goesOut(result) || llvm::any_of(result->uses(), isOutput)) {
        round(result, Builder::after(&op));
        continue;
      }
      yield->setOperand(
          i, castTo(Builder::before(yield), yield->operand(i), half));
      widenUses(result, Builder::after(&op));
    }
  }

  /// A contraction's first argument is its sum.
  static unsigned argumentOf(const Op &op, unsigned operand) {
    return op.kind() == OpKind::Map ? operand : operand - 1;
  }

  void assignBulk(Op &op) {
    // A mask's numbers may be too great for halves, an angle's sine too exact.
    unsigned tensors = op.region()                      ? 2
                       : op.kind() == OpKind::Attention ? 3
                       : op.kind() == OpKind::Rotary    ? 1
                                                        : op.numOperands();
    for (unsigned i = 0; i < tensors; ++i) {
      Value *operand = op.operand(i);
      if (!isSingle(operand) || !operand->def(OpKind::Const))
        continue;
      if (Value *value = narrow(operand)) {
        op.setOperand(i, castTo(Builder::before(&op), value, ElementType::F32));
        ++edits;
      }
    }
    if (op.region())
      return assignRegion(op, 2);
    for (Value *result : op.results())
      if (isSingle(result))
        round(result, Builder::after(&op));
  }

  /// Alone, it becomes a map, whose body has the casts.
  void assignElementwise(Op &op) {
    bool any = isSingle(op.result());
    for (Value *operand : op.operands())
      any |= operand && narrow(operand) != nullptr;
    bool hasTensor = llvm::any_of(op.operands(), [](const Value *operand) {
      return !passes::scalarConstant(operand);
    });
    if (!any || !hasTensor)
      return;
    Op *map = op.block()->insert(OpKind::Map, std::make_unique<NoAttrs>(), {},
                                 {op.result()->type}, &op);
    map->loc = op.loc;
    passes::ScalarRegion region(*map->makeRegion());
    region.append(op);
    region.yield({op.result()});
    map->setOperands(region.operands());
    llvm::SmallVector<Use, 4> uses(op.result()->uses());
    for (Use use : uses)
      use.op->setOperand(use.index, map->result());
    op.erase();
    ++edits;
    assignRegion(*map, 0);
  }

  Func &func;
  ElementType half;
  unsigned edits = 0;
  llvm::DenseSet<const Value *> exact;
  std::vector<Op *> caches;
  llvm::DenseMap<const Constant *, Value *> constants;
};

struct AssignPrecision final : passes::FuncPass {
  llvm::Expected<bool> runOnFunc(Module &, Func &func,
                                 passes::PassContext &context) override {
    std::optional<ElementType> half =
        passes::storageOf(context.options.precision);
    return half && Assignment(func, *half).run(context);
  }
};

} // namespace

std::unique_ptr<passes::Pass> passes::createAssignPrecision() {
  return std::make_unique<AssignPrecision>();
}
