//===- Loss.cpp - importers of losses -------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/Emitter.h"
#include "frontend/NodeView.h"
#include "frontend/OnnxOps.h"
#include "llvm/ADT/Sequence.h"

using namespace llvm;
using namespace tenon::ir;

namespace tenon::frontend {

namespace {

/// -weight[target] * x[n, target, ...], reduced as the attributes say; x[N, C,
/// ...] holds logarithms of probabilities. Targets that are to be ignored count
/// neither in the sum nor in the mean's weight.
Value *negativeLogLikelihood(NodeView &node, Emitter &emit, Value *x,
                             Value *target, Value *weight) {
  std::optional<int64_t> ignored = node.findInt("ignore_index");
  StringRef reduction = node.strAttr("reduction", "mean");
  if (emit.failed())
    return nullptr;
  if (reduction != "none" && reduction != "sum" && reduction != "mean")
    return node.fail("attribute 'reduction' is '{0}'; expected none, sum or "
                     "mean",
                     reduction);
  if (x->rank() < 2 || target->rank() + 1 != x->rank())
    return node.fail("its operands are {0} and {1}; expected [N, C, ...] and "
                     "[N, ...]",
                     x->type, target->type);
  target = emit.cast(target, ElementType::I64);
  Value *isIgnored = nullptr, *zero = emit.scalar(x->element(), 0);
  if (ignored) {
    isIgnored =
        emit.op(OpKind::Equal,
                {target, emit.scalar(ElementType::I64, double(*ignored))});
    target = emit.where(isIgnored, emit.scalar(ElementType::I64, 0), target);
  }
  if (emit.failed())
    return nullptr;
  Shape column(target->shape()), shape(target->shape());
  column.insert(column.begin() + 1, Dim(1));
  AxisAttrs classes;
  classes.axis = 1;
  Value *picked = emit.op(OpKind::GatherElements,
                          {x, emit.reshape(target, column)}, classes);
  Value *loss = emit.op(OpKind::Neg, {emit.reshape(picked, shape)});
  Value *weights = weight ? emit.gather(weight, target, 0) : nullptr;
  if (weights)
    loss = emit.mul(loss, weights);
  if (isIgnored) {
    loss = emit.where(isIgnored, zero, loss);
    weights = emit.where(isIgnored, zero,
                         weights ? weights : emit.scalar(x->element(), 1));
  }
  if (reduction == "none" || emit.failed())
    return loss;
  auto all = llvm::to_vector(llvm::seq<int64_t>(0, loss->rank()));
  if (reduction == "mean" && !weights)
    return emit.reduce(OpKind::ReduceMean, loss, all, false);
  Value *sum = emit.reduce(OpKind::ReduceSum, loss, all, false);
  return reduction == "sum" ? sum
                            : emit.div(sum, emit.reduce(OpKind::ReduceSum,
                                                        weights, all, false));
}

} // namespace

Value *importNllLoss(NodeView &node, Emitter &emit) {
  return negativeLogLikelihood(node, emit, node.input(0), node.input(1),
                               node.input(2));
}

Value *importSoftmaxCrossEntropy(NodeView &node, Emitter &emit) {
  Value *scores = node.input(0);
  if (scores->rank() < 2)
    return node.fail("'scores' is {0}; expected [N, C, ...]", scores->type);
  Value *logarithms = emit.softmax(scores, 1, OpKind::LogSoftmax);
  if (node.wantsOutput(1))
    node.setOutput(1, logarithms);
  return emit.failed() ? nullptr
                       : negativeLogLikelihood(node, emit, logarithms,
                                               node.input(1), node.input(2));
}

} // namespace tenon::frontend
