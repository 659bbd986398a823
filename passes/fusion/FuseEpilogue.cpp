//===- FuseEpilogue.cpp - elementwise ops move into contractions ---------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

///
/// \file
/// The law, for a matmul or conv whose only use is the elementwise f:
///
///   f(matmul(a, b), e...)  ->  matmul(a, b, e...) epilogue(acc, e...) { f }
///
/// again and again: bias, activation, residual. What else f uses must broadcast
/// to the result without making it larger, along whole rows or columns, so that
/// a kernel finds it at (row, column): a scalar, a row vector [N], a column
/// [..., 1], or a tensor of the result's own shape. Of a convolution, whose
/// channels are dimension 1, also [M, 1, ...].
///
/// Not matched: values of other element types, a product that is used twice.

#include "passes/Pass.h"
#include "passes/fusion/ScalarRegion.h"

using namespace tenon;
using namespace tenon::ir;

namespace {

constexpr llvm::StringLiteral passName = "fuse-epilogue";

/// Whether a kernel that walks rows and columns of \p result finds \p extra
/// there: every dimension is the result's own or 1, and the dimensions before
/// the last are all of one kind.
bool hasRowColumnForm(const Value &extra, const Value &result) {
  ShapeRef from = extra.shape(), to = result.shape();
  if (from.size() > to.size())
    return false;
  bool anyOwn = false, anyOne = to.size() > from.size();
  for (auto [i, dim] : llvm::enumerate(from)) {
    size_t at = to.size() - from.size() + i;
    bool last = at + 1 == to.size();
    if (dim == to[at]) {
      anyOwn |= !last && !dim.isConstant(1);
    } else if (dim.isConstant(1)) {
      anyOne |= !last;
    } else {
      return false;
    }
  }
  return !(anyOwn && anyOne && to.size() > 1);
}

/// Whether \p extra has one element for each channel of a convolution.
bool isPerChannel(const Value &extra, const Value &result) {
  ShapeRef from = extra.shape(), to = result.shape();
  if (to.size() < 2 || from.size() < to.size() - 1 || from.size() > to.size())
    return false;
  size_t channel = from.size() - (to.size() - 1);
  for (auto [i, dim] : llvm::enumerate(from))
    if (i == channel ? dim != to[1] : !dim.isConstant(1))
      return false;
  return true;
}

std::optional<std::string> notAbsorbable(const Op &product, const Op &user) {
  Value *result = product.result();
  if (!is(user, ElementwiseOp))
    return "its use " + describe(user) + " is not elementwise";
  if (user.block() != product.block())
    return "its use is in another region";
  if (user.result()->type != result->type)
    return "the result of " + describe(user) + " has another type";
  for (Value *operand : user.operands()) {
    if (operand == result || passes::scalarConstant(operand))
      continue;
    if (operand->element() != result->element())
      return describe(*operand) + " has another element type";
    bool fits = product.kind() == OpKind::Conv
                    ? operand->shape() == result->shape() ||
                          isPerChannel(*operand, *result)
                    : hasRowColumnForm(*operand, *result);
    if (!fits)
      return describe(*operand) + " is not addressed by row and column";
  }
  return std::nullopt;
}

/// Makes \p product with \p user in its epilogue, in the user's place.
Op *absorb(Op &product, Op &user, Rewriter &rewriter) {
  Builder builder = rewriter.before(user);
  builder.loc = Rewriter::mergedLocation({&product, &user});
  Op *fused = llvm::cantFail(builder.clone(product, product.operands()));
  Block *old = product.region();
  passes::ScalarRegion region(*fused->makeRegion());
  Value *sum = region.addArgument(product.result());
  if (old) {
    // The region's arguments are the sum and the extras; the sum is no tensor,
    // the product's result stands for it until the region redefines it.
    llvm::SmallVector<Value *, 4> arguments{product.result()};
    arguments.append(product.operands().begin() + 2, product.operands().end());
    region.inlineRegion(*old, arguments, {product.result()});
  } else {
    region.define(product.result(), sum);
  }
  region.append(user);
  region.yield({user.result()});
  llvm::SmallVector<Value *, 8> operands{product.operand(0),
                                         product.operand(1)};
  operands.append(region.operands().begin(), region.operands().end());
  fused->setOperands(operands);
  rewriter.replace(user.result(), fused->result());
  return fused;
}

struct FuseEpilogue final : passes::FuncPass {
  llvm::Expected<bool> runOnFunc(Module &module, Func &func,
                                 passes::PassContext &context) override {
    llvm::SmallVector<Op *, 64> products;
    for (Op &op : func.body)
      if (is(op, HasEpilogue))
        products.push_back(&op);
    Rewriter rewriter(module, func);
    bool changed = false;
    for (Op *product : products)
      while ((product = absorbUse(*product, rewriter, context)))
        changed = true;
    return changed;
  }

  /// One step; null when nothing more can be absorbed.
  static Op *absorbUse(Op &product, Rewriter &rewriter,
                       passes::PassContext &context) {
    Value *result = product.result();
    if (result->uses().empty() ||
        result->uses().front().op->kind() == OpKind::Return)
      return nullptr;
    Op *user = result->uses().front().op;
    for (const Use &use : result->uses())
      if (use.op != user) {
        context.missed(passName, product.loc,
                       "the result is used by several ops");
        return nullptr;
      }
    if (auto reason = notAbsorbable(product, *user)) {
      context.missed(passName, product.loc, *reason);
      return nullptr;
    }
    if (!context.allow(passName, *user))
      return nullptr;
    context.applied(passName, Rewriter::mergedLocation({&product, user}),
                    {&product, user});
    return absorb(product, *user, rewriter);
  }
};

} // namespace

std::unique_ptr<passes::Pass> passes::createFuseEpilogue() {
  return std::make_unique<FuseEpilogue>();
}
