//===- FuseElementwise.cpp - clusters of elementwise ops become one ------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

///
/// \file
/// The law, for elementwise f and g where nothing else uses g's result:
///
///   f(g(x...), y...)  ->  map(x..., y...) { f(g(x), y) }
///
/// grown from the last op of a cluster towards its operands. g joins only where
/// its result has f's shape, so that nothing is computed more often than
/// before. A single op stays as it is. Values that several ops of one cluster
/// use are computed once, inside.
///
/// Not matched: producers that are used outside of the cluster, broadcasts, and
/// casts from and to types that are only stored.

#include "passes/Pass.h"
#include "passes/analysis/ByteProducts.h"
#include "passes/analysis/PackedWeights.h"
#include "passes/fusion/ScalarRegion.h"
#include "llvm/ADT/SetVector.h"

using namespace tenon;
using namespace tenon::ir;

namespace {

constexpr llvm::StringLiteral passName = "fuse-elementwise";
/// A cluster's loop keeps its operands in registers; more spill.
constexpr unsigned maxOps = 48, maxOperands = 12;

/// A cast that unpacks or packs elements is a step of its own.
bool changesStorage(const Op &op) {
  auto isStored = [](const Value *value) {
    return isStorageOnly(value->element());
  };
  return isStored(op.result()) || llvm::any_of(op.operands(), isStored);
}

bool isScalarWork(const Op &op) {
  return is(op, ElementwiseOp) && op.kind() != OpKind::Const &&
         !passes::unpacksWeight(op) && !passes::widensBytes(op) &&
         !changesStorage(op);
}

using Cluster = llvm::SmallSetVector<Op *, 16>;

/// The tensors that the cluster reads.
unsigned countOperands(const Cluster &cluster) {
  llvm::SmallSetVector<Value *, 16> operands;
  for (Op *op : cluster)
    for (Value *operand : op->operands())
      if (!(operand->def() && cluster.contains(operand->def())) &&
          !passes::scalarConstant(operand))
        operands.insert(operand);
  return operands.size();
}

bool mayJoin(Op *producer, const Cluster &cluster, const Op &root) {
  if (!producer || !isScalarWork(*producer) || cluster.contains(producer) ||
      producer->block() != root.block() ||
      producer->result()->shape() != root.result()->shape())
    return false;
  return llvm::all_of(producer->result()->uses(),
                      [&](const Use &use) { return cluster.contains(use.op); });
}

Cluster growFrom(Op &root) {
  Cluster cluster;
  cluster.insert(&root);
  // A producer becomes eligible once its last user has joined, so look again at
  // all of the cluster's operands until nothing joins.
  bool grew = true;
  while (grew && cluster.size() < maxOps) {
    grew = false;
    for (unsigned i = 0; i < cluster.size() && cluster.size() < maxOps; ++i)
      for (Value *operand : cluster[i]->operands()) {
        if (!mayJoin(operand->def(), cluster, root))
          continue;
        cluster.insert(operand->def());
        if (countOperands(cluster) > maxOperands) {
          cluster.pop_back();
          continue;
        }
        grew = true;
      }
  }
  return cluster;
}

void fuse(Op &root, const Cluster &cluster, Rewriter &rewriter) {
  llvm::SmallVector<Op *, 16> ordered(cluster.begin(), cluster.end());
  llvm::sort(ordered, [](const Op *a, const Op *b) { return a->isBefore(b); });
  Block *block = root.block();
  Op *map = block->insert(OpKind::Map, std::make_unique<NoAttrs>(), {},
                          {root.result()->type}, &root);
  map->loc = Rewriter::mergedLocation(ordered);
  passes::ScalarRegion region(*map->makeRegion());
  for (Op *op : ordered)
    region.append(*op);
  region.yield({root.result()});
  map->setOperands(region.operands());
  // A constant that went inside may be what gave the root its rank.
  InferContext context;
  llvm::cantFail(inferOp(*map, context));
  map->result()->type = context.results[0];
  rewriter.replace(root.result(), rewriter.inShapeOf(root, map->result()));
}

struct FuseElementwise final : passes::FuncPass {
  llvm::Expected<bool> runOnFunc(Module &module, Func &func,
                                 passes::PassContext &context) override {
    Rewriter rewriter(module, func);
    bool changed = false;
    // From the end, so that a cluster starts at its last op.
    llvm::SmallVector<Op *, 64> roots;
    for (Op &op : func.body)
      if (isScalarWork(op))
        roots.push_back(&op);
    llvm::DenseSet<Op *> gone;
    for (Op *root : llvm::reverse(roots)) {
      if (gone.contains(root))
        continue;
      Cluster cluster = growFrom(*root);
      if (cluster.size() < 2 || countOperands(cluster) == 0 ||
          !context.allow(passName, *root))
        continue;
      context.applied(passName, root->loc, cluster.getArrayRef());
      gone.insert(cluster.begin(), cluster.end());
      fuse(*root, cluster, rewriter);
      changed = true;
    }
    return changed;
  }
};

} // namespace

std::unique_ptr<passes::Pass> passes::createFuseElementwise() {
  return std::make_unique<FuseElementwise>();
}
