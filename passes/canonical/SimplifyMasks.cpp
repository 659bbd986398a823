//===- SimplifyMasks.cpp - index arithmetic over masks
//-----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
/// \file
/// Exporters fetch a padding mask's elements with index arithmetic: Range, Mul,
/// Add and a Gather from the flattened mask, or Expand, Concat and GatherND. By
/// what each element is (IndexExpr), such a gather is a slice, transpose and
/// reshape; a condition that holds at every index is a constant. A part of a
/// constant that is added to scores, 0 in a triangle or band and as low as can
/// be elsewhere, is a choice by a comparison of indices. Where a mask's
/// row length has a name of its own (a cache's `total`) and the gather only
/// makes sense if it is the length of what indexes it, that becomes a
/// constraint of the function, checked at run time.

#include "passes/Pass.h"
#include "passes/analysis/IndexExpr.h"
#include "passes/canonical/LawUtil.h"
#include "llvm/ADT/STLExtras.h"

using namespace tenon;
using namespace tenon::ir;
using namespace tenon::passes;

namespace {

bool isBoundByInput(const Func &func, llvm::StringRef symbol) {
  for (unsigned i = 0; i != func.body.numArguments(); ++i)
    for (Dim dim : func.body.argument(i)->shape())
      if (dim.symbolName() == symbol)
        return true;
  return false;
}

/// What has to hold for slices in place of a gather to stay inside, which the
/// gather would have checked itself.
class Bounds {
public:
  /// Finds what the loads of \p expr ask for; false when it cannot be demanded
  /// of a call.
  bool collect(const IndexExpr *expr, ShapeRef shape,
               const IndexAnalysis &analysis, const Module &module,
               const Func &func) {
    llvm::SmallVector<const IndexExpr *, 4> pending{expr};
    while (!pending.empty()) {
      const IndexExpr *next = pending.pop_back_val();
      llvm::append_range(pending, next->operands);
      if (next->kind != IndexExpr::Load)
        continue;
      for (auto [index, size] : llvm::zip(next->indices, next->value->shape()))
        if (!analysis.atLeast(size - index, 1, shape) &&
            !add(index, size, shape, module, func))
          return false;
    }
    return true;
  }

  void demand(Module &module, Func &func, const Location &loc) {
    for (auto [a, b] : equal)
      if (llvm::none_of(func.constraints, [a = a, b = b](const auto &c) {
            return c.a == a && c.b == b;
          }))
        func.constraints.push_back({a, b, loc});
    for (auto [name, limit] : limits)
      for (Module::Symbol &symbol : module.symbols)
        if (symbol.name == name)
          symbol.range.high = std::min(symbol.range.high, limit);
  }

private:
  /// An \p index that is not known to be less than \p size.
  bool add(Dim index, Dim size, ShapeRef shape, const Module &module,
           const Func &func) {
    std::optional<unsigned> i = IndexAnalysis::asIndex(index);
    if (!i)
      return false;
    Dim extent = shape[*i];
    std::optional<int64_t> limit = size.constant();
    if (!limit) {
      // A few rows of many are no mask's row.
      if (extent.constant())
        return false;
      equal.push_back({size, extent});
      return true;
    }
    std::optional<llvm::StringRef> symbol = extent.symbolName();
    if (!symbol)
      return false;
    if (module.rangeOf(*symbol).high <= *limit)
      return true;
    limits.push_back({*symbol, *limit});
    return isBoundByInput(func, *symbol);
  }

  llvm::SmallVector<std::pair<Dim, Dim>, 1> equal;
  llvm::SmallVector<std::pair<llvm::StringRef, int64_t>, 1> limits;
};

class SimplifyMasks final : public FuncPass {
public:
  llvm::Expected<bool> runOnFunc(Module &module, Func &func,
                                 PassContext &context) override {
    // Replaced values are left to be erased at the end, so that the analysis
    // never sees an op that is gone, and it sees all before any is replaced.
    IndexAnalysis analysis(module);
    llvm::SmallVector<Op *, 32> ops, replaced;
    for (Op &op : func.body)
      if (isCandidate(op)) {
        ops.push_back(&op);
        analysis.elementOf(op.result());
      }
    for (Op *op : ops) {
      Value *result = op->result();
      const IndexExpr *expr = analysis.elementOf(result);
      llvm::SmallVector<IndexAnalysis::Assumption, 2> assumed;
      IndexAnalysis assuming(module);
      if (isGather(*op) && !isSimpler(*op, expr, analysis)) {
        assuming.allowAssumptions(assumed);
        expr = assuming.elementOf(result);
      }
      Bounds bounds;
      if (!isSimpler(*op, expr, analysis) ||
          (isGather(*op) &&
           !bounds.collect(expr, result->shape(), analysis, module, func)) ||
          !context.allow("simplify-masks", *op))
        continue;
      explain(*op, expr, analysis, context);
      for (auto [size, extent] : assumed)
        func.constraints.push_back({size, extent, op->loc});
      bounds.demand(module, func, op->loc);
      Builder builder = Builder::before(op);
      builder.func = &func;
      Value *value = analysis.materialize(expr, result->shape(), builder);
      if (value->shape() != result->shape())
        value = buildBroadcast(builder, value, result->shape());
      result->replaceAllUsesWith(value);
      replaced.push_back(op);
    }
    Rewriter rewriter(module, func);
    for (Op *op : llvm::reverse(replaced))
      rewriter.eraseIfDead(*op);
    return !replaced.empty();
  }

private:
  static bool isGather(const Op &op) {
    return op.kind() == OpKind::Gather || op.kind() == OpKind::GatherNd;
  }

  static bool isCandidate(Op &op) {
    if (op.numResults() != 1 || !op.hasUses())
      return false;
    if (isGather(op) || mayBeStored(op))
      return true;
    return op.result()->element() == ElementType::Bool && is(op, ElementwiseOp);
  }

  /// What is added to scores may be a part of a constant.
  static bool mayBeStored(const Op &op) {
    return isFloat(op.result()->element()) && op.result()->rank() >= 2 &&
           (op.kind() == OpKind::Const || is(op, ViewLike));
  }

  /// 0 or something that hides a key, by a condition on indices.
  static bool isStoredMask(const Op &op, const IndexExpr *expr,
                           IndexAnalysis &analysis) {
    // Scores this low lose against any other by all of f32's precision.
    constexpr double hidden = -1e9;
    if (!mayBeStored(op) || !expr->applies(OpKind::Where))
      return false;
    const IndexExpr *yes = expr->operands[1], *no = expr->operands[2];
    return yes->kind == IndexExpr::Real && no->kind == IndexExpr::Real &&
           std::max(yes->number, no->number) == 0 &&
           std::min(yes->number, no->number) <= hidden &&
           analysis.isPlain(expr, op.result()->shape());
  }

  static bool isSimpler(Op &op, const IndexExpr *expr,
                        IndexAnalysis &analysis) {
    if (expr->kind == IndexExpr::Boolean)
      return true;
    if (isStoredMask(op, expr, analysis))
      return true;
    return isGather(op) &&
           !(expr->kind == IndexExpr::Load && expr->value == op.result()) &&
           analysis.isPlain(expr, op.result()->shape());
  }

  static void explain(Op &op, const IndexExpr *expr, IndexAnalysis &analysis,
                      PassContext &context) {
    if (!context.isExplained())
      return;
    std::string text = describe(op) + " is ";
    llvm::raw_string_ostream os(text);
    analysis.print(expr, os);
    context.simplified(text, op.loc);
  }
};

} // namespace

std::unique_ptr<Pass> passes::createSimplifyMasks() {
  return std::make_unique<SimplifyMasks>();
}
