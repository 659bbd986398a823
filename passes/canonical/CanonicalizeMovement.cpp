//===- CanonicalizeMovement.cpp - laws of moving elements
//--------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/canonical/LawUtil.h"
#include "passes/canonical/Laws.h"
#include "llvm/ADT/STLExtras.h"

using namespace tenon;
using namespace tenon::ir;
using namespace tenon::passes;
using llvm::ArrayRef;

namespace {

// reshape(x) to its own shape = x, broadcast(x) to its own shape = x
Value *sameShape(Op &op, Rewriter &) {
  return op.operand(0)->type == op.result()->type ? op.operand(0) : nullptr;
}

// reshape(reshape(x)) = reshape(x)
Value *reshapeTwice(Op &op, Rewriter &rewriter) {
  Op *inner = op.operand(0)->def(OpKind::Reshape);
  return inner ? rebuild(op, {inner->operand(0)}, rewriter) : nullptr;
}

// broadcast(broadcast(x)) = broadcast(x)
Value *broadcastTwice(Op &op, Rewriter &rewriter) {
  Op *inner = op.operand(0)->def(OpKind::Broadcast);
  if (!inner ||
      !broadcastsSurely(inner->operand(0)->shape(), op.result()->shape()))
    return nullptr;
  return rebuild(op, {inner->operand(0)}, rewriter);
}

// broadcast(reshape(x)) = broadcast(x) when the reshape adds leading ones;
// broadcast(x) = reshape(x) when it only adds leading ones
Value *broadcastOnes(Op &op, Rewriter &rewriter) {
  Value *x = op.operand(0);
  if (movesOnlyOnes(x->shape(), op.result()->shape())) {
    Builder builder = rewriter.before(op);
    return buildReshape(builder, x, op.result()->shape());
  }
  Op *inner = x->def(OpKind::Reshape);
  if (!inner)
    return nullptr;
  Value *source = inner->operand(0);
  if (source->rank() >= x->rank() ||
      x->shape().take_back(source->rank()) != source->shape() ||
      !broadcastsSurely(source->shape(), op.result()->shape()))
    return nullptr;
  return rebuild(op, {source}, rewriter);
}

// transpose(x) by the identity = x; one that moves only ones = reshape(x)
Value *transposeTrivial(Op &op, Rewriter &rewriter) {
  ArrayRef<int64_t> perm = op.attrs<TransposeAttrs>().perm;
  ShapeRef shape = op.operand(0)->shape();
  int64_t last = -1;
  bool ordered = true, identity = true;
  for (auto [i, axis] : llvm::enumerate(perm)) {
    identity &= static_cast<int64_t>(i) == axis;
    if (shape[axis].isConstant(1))
      continue;
    ordered &= axis > last;
    last = axis;
  }
  if (identity)
    return op.operand(0);
  if (!ordered)
    return nullptr;
  Builder builder = rewriter.before(op);
  return buildReshape(builder, op.operand(0), op.result()->shape());
}

// transpose(transpose(x)) = transpose(x)
Value *transposeTwice(Op &op, Rewriter &rewriter) {
  Op *inner = op.operand(0)->def(OpKind::Transpose);
  if (!inner)
    return nullptr;
  Ints perm;
  for (int64_t axis : op.attrs<TransposeAttrs>().perm)
    perm.push_back(inner->attrs<TransposeAttrs>().perm[axis]);
  Builder builder = rewriter.before(op);
  return buildTranspose(builder, inner->operand(0), perm);
}

// transpose(reshape(x)) = reshape(transpose(x)) when the reshape only merges
// dimensions or moves ones: that can wait until after the transpose
Value *transposeOfMerge(Op &op, Rewriter &rewriter) {
  Op *inner = op.operand(0)->def(OpKind::Reshape);
  if (!inner)
    return nullptr;
  Value *x = inner->operand(0);
  auto groups = groupDims(x->shape(), inner->result()->shape());
  if (!groups)
    return nullptr;
  // For each dimension behind the reshape, the dimensions of x it holds.
  llvm::SmallVector<Ints, 4> held(inner->result()->rank());
  Ints waiting;
  for (const DimGroup &group : *groups) {
    if (group.numOut() > 1)
      return nullptr;
    Ints &dims = group.numOut() ? held[group.outBegin] : waiting;
    for (unsigned i = group.inBegin; i != group.inEnd; ++i)
      dims.push_back(i);
  }
  // Dimensions of 1 that the reshape drops may stand anywhere.
  Ints perm = waiting;
  for (int64_t axis : op.attrs<TransposeAttrs>().perm)
    llvm::append_range(perm, held[axis]);
  Builder builder = rewriter.before(op);
  return buildReshape(builder, buildTranspose(builder, x, perm),
                      op.result()->shape());
}

// transpose(broadcast(x)) = broadcast(transpose(x)), for x of the same rank
Value *transposeOfBroadcast(Op &op, Rewriter &rewriter) {
  Op *inner = op.operand(0)->def(OpKind::Broadcast);
  if (!inner || inner->operand(0)->rank() != op.result()->rank() ||
      !op.operand(0)->hasOneUse())
    return nullptr;
  Builder builder = rewriter.before(op);
  Value *small = buildTranspose(builder, inner->operand(0),
                                op.attrs<TransposeAttrs>().perm);
  return buildBroadcast(builder, small, op.result()->shape());
}

// A reduction over dimensions of 1, or over none, moves nothing.
Value *reduceOnes(Op &op, Rewriter &rewriter) {
  ShapeRef shape = op.operand(0)->shape();
  if (!llvm::all_of(op.attrs<ReduceAttrs>().axes,
                    [&](int64_t axis) { return shape[axis].isConstant(1); }))
    return nullptr;
  Builder builder = rewriter.before(op);
  return buildReshape(builder, op.operand(0), op.result()->shape());
}

} // namespace

void passes::addTransposeLaws(PeepholeSet &laws) {
  laws.add(OpKind::Transpose, "transpose of ones is a reshape",
           transposeTrivial);
  laws.add(OpKind::Transpose, "transpose(transpose(x)) = transpose(x)",
           transposeTwice);
}

void passes::addMovementLaws(PeepholeSet &laws) {
  laws.add({OpKind::Reshape, OpKind::Broadcast}, "reshape to the same shape",
           sameShape);
  laws.add(OpKind::Reshape, "reshape(reshape(x)) = reshape(x)", reshapeTwice);
  laws.add(OpKind::Broadcast, "broadcast(broadcast(x)) = broadcast(x)",
           broadcastTwice);
  laws.add(OpKind::Broadcast, "broadcast of leading ones", broadcastOnes);
  addTransposeLaws(laws);
  laws.add(OpKind::Transpose, "transpose(merge(x)) = merge(transpose(x))",
           transposeOfMerge);
  laws.add(OpKind::Transpose,
           "transpose(broadcast(x)) = broadcast(transpose(x))",
           transposeOfBroadcast);
  laws.add({OpKind::ReduceSum, OpKind::ReduceMean, OpKind::ReduceMax,
            OpKind::ReduceMin, OpKind::ReduceProd},
           "reduction over ones is a reshape", reduceOnes);
}
