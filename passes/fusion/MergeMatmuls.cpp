//===- MergeMatmuls.cpp - parallel products become one -------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

///
/// \file
/// The law, for constant weights of one input:
///
///   x A, x B, x C            -> slices of x [A | B | C]
///   x A + a, x B + b, ...    -> slices of x [A | B | C] + [a | b | c]
///
/// The input is read once and one kernel does the work of three: query, key and
/// value projections, gate and up. The merged weight refers to its parts, whose
/// bytes are copied when the artifact is written; of matrices of codes
/// (CodesWeight.h) codes, scales and zero points are put side by side. Where
/// some products have a bias and others don't, zeros stand in. Not matched:
/// weights that are neither constants of rank 2 nor codes, codes that are
/// decoded in different ways, products that are outputs of the model.

#include "ir/match/Rewriter.h"
#include "passes/Pass.h"
#include "passes/fusion/CodesWeight.h"
#include "llvm/ADT/MapVector.h"

using namespace tenon;
using namespace tenon::ir;

namespace {

constexpr llvm::StringLiteral passName = "merge-matmuls";

struct Branch {
  Op *product;
  /// The add of a constant bias [N] behind it, or null.
  Op *biasAdd = nullptr;
  Value *bias = nullptr;

  Value *result() const { return (biasAdd ? biasAdd : product)->result(); }
  ConstantRef weight() const { return constantOf(product->operand(1)); }
  Dim width() const { return product->operand(1)->shape()[1]; }

  static ConstantRef constantOf(Value *value) {
    Op *op = value->def(OpKind::Const);
    return op ? op->attrs<ConstAttrs>().value : nullptr;
  }
};

bool isCandidate(const Op &op) {
  if (op.kind() != OpKind::MatMul || op.region() || op.operand(0)->rank() < 2)
    return false;
  Value *weight = op.operand(1);
  return weight->rank() == 2 &&
         (weight->def(OpKind::Const) || passes::codesWeight(weight));
}

/// The weights of branches that all have codes.
llvm::SmallVector<passes::CodesWeight, 4>
codesOf(llvm::ArrayRef<Branch> branches) {
  llvm::SmallVector<passes::CodesWeight, 4> codes;
  for (const Branch &branch : branches)
    if (auto found = passes::codesWeight(branch.product->operand(1)))
      codes.push_back(std::move(*found));
  return codes;
}

Branch branchOf(Op &product) {
  Branch branch{&product};
  Value *y = product.result();
  if (!y->hasOneUse())
    return branch;
  Op *user = y->uses().front().op;
  if (user->kind() != OpKind::Add || user->block() != product.block())
    return branch;
  Value *bias = user->operand(user->operand(0) == y ? 1 : 0);
  if (bias->rank() == 1 && bias->shape()[0] == branch.width() &&
      Branch::constantOf(bias)) {
    branch.biasAdd = user;
    branch.bias = bias;
  }
  return branch;
}

std::optional<std::string> notMergeable(llvm::ArrayRef<Branch> branches) {
  for (const Branch &branch : branches)
    for (const Use &use : branch.result()->uses())
      if (use.op->kind() == OpKind::Return)
        return "the product '" + branch.product->loc.name().str() +
               "' is an output of the model";
  return passes::notJoinable(codesOf(branches));
}

/// [a | b | c], zeros where a branch has no bias.
ConstantRef mergedBias(llvm::ArrayRef<Branch> branches) {
  llvm::SmallVector<ConstantRef, 4> parts;
  for (const Branch &branch : branches)
    parts.push_back(branch.bias
                        ? Branch::constantOf(branch.bias)
                        : Constant::splat(branch.product->result()->element(),
                                          *branch.width().constant(), 0));
  return Constant::concat(parts, 0);
}

Value *sliceColumns(Value *y, Dim start, Dim width, Builder &builder) {
  SliceAttrs attrs;
  attrs.starts.assign(y->rank(), Dim(0));
  attrs.sizes.assign(y->shape().begin(), y->shape().end());
  attrs.steps.assign(y->rank(), 1);
  attrs.starts.back() = start;
  attrs.sizes.back() = width;
  return builder.buildSlice({y}, attrs);
}

/// The columns of all weights.
Value *weightOf(llvm::ArrayRef<Branch> branches, Builder &builder) {
  llvm::SmallVector<passes::CodesWeight, 4> codes = codesOf(branches);
  if (!codes.empty())
    return passes::joinColumns(codes, builder);
  llvm::SmallVector<ConstantRef, 4> weights;
  for (const Branch &branch : branches)
    weights.push_back(branch.weight());
  return builder.constant(Constant::concat(weights, 1));
}

void merge(llvm::ArrayRef<Branch> branches, Rewriter &rewriter) {
  llvm::SmallVector<Op *, 8> merged;
  for (const Branch &branch : branches) {
    merged.push_back(branch.product);
    if (branch.biasAdd)
      merged.push_back(branch.biasAdd);
  }
  Builder builder = rewriter.before(*branches.front().product);
  builder.loc = Rewriter::mergedLocation(merged);
  Value *y = builder.buildMatMul(
      {branches.front().product->operand(0), weightOf(branches, builder)},
      branches.front().product->attrs<MatMulAttrs>());
  if (llvm::any_of(branches, [](const Branch &b) { return b.bias; }))
    y = builder.buildAdd({y, builder.constant(mergedBias(branches))});
  Dim start = 0;
  llvm::SmallVector<Value *, 4> slices;
  for (const Branch &branch : branches) {
    builder.loc = branch.product->loc;
    slices.push_back(sliceColumns(y, start, branch.width(), builder));
    start = start + branch.width();
  }
  // Replacing erases the products, and with them the builder's place.
  for (auto [branch, slice] : llvm::zip(branches, slices))
    rewriter.replace(branch.result(), slice);
}

struct MergeMatmuls final : passes::FuncPass {
  llvm::Expected<bool> runOnFunc(Module &module, Func &func,
                                 passes::PassContext &context) override {
    llvm::MapVector<std::tuple<Value *, unsigned, unsigned, unsigned>,
                    llvm::SmallVector<Op *, 4>>
        groups;
    for (Op &op : func.body)
      if (isCandidate(op))
        groups[{op.operand(0), unsigned(op.result()->element()),
                unsigned(op.attrs<MatMulAttrs>().eightBitRows),
                unsigned(op.operand(1)->def(OpKind::Const) != nullptr)}]
            .push_back(&op);
    Rewriter rewriter(module, func);
    bool changed = false;
    for (auto &[key, products] : groups) {
      if (products.size() < 2)
        continue;
      llvm::SmallVector<Branch, 4> branches;
      for (Op *product : products)
        branches.push_back(branchOf(*product));
      Location loc = Rewriter::mergedLocation(products);
      if (auto reason = notMergeable(branches)) {
        context.missed(passName, loc, *reason);
        continue;
      }
      if (!context.allow(passName, *products.front()))
        continue;
      context.applied(passName, loc, products);
      merge(branches, rewriter);
      changed = true;
    }
    return changed;
  }
};

} // namespace

std::unique_ptr<passes::Pass> passes::createMergeMatmuls() {
  return std::make_unique<MergeMatmuls>();
}
