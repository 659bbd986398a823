//===- Control.cpp - importers of control flow ---------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/Emitter.h"
#include "frontend/NodeView.h"
#include "frontend/OnnxOps.h"
#include "frontend/importers/Branches.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace tenon::ir;

namespace tenon::frontend {

Value *giveOutputs(NodeView &node, ArrayRef<Value *> results) {
  if (results.size() < node.numOutputs())
    return node.fail("has {0} outputs; what it runs gives {1}",
                     node.numOutputs(), results.size());
  for (unsigned i = 0; i < node.numOutputs(); ++i)
    node.setOutput(i, results[i]);
  return results.empty() ? nullptr : results.front();
}

bool hasSideEffectAfter(const Block &block, Op *last) {
  for (Op *op = last            ? last->next()
                : block.empty() ? nullptr
                                : &block.front();
       op; op = op->next())
    if (is(*op, Trait::SideEffect))
      return true;
  return false;
}

namespace {

bool hasIndices(OpKind kind) {
  return kind == OpKind::Gather || kind == OpKind::GatherElements ||
         kind == OpKind::GatherNd || kind == OpKind::ScatterElements ||
         kind == OpKind::ScatterNd;
}

/// Whether a gather's indices are constants that its operand has.
bool isSurelyInRange(const Op &op) {
  const Op *def = op.operand(1)->def(OpKind::Const);
  if (!def || op.kind() != OpKind::Gather)
    return false;
  const Constant *indices = def->attrs<ConstAttrs>().value.get();
  std::optional<int64_t> size =
      op.operand(0)->shape()[op.attrs<AxisAttrs>().axis].constant();
  if (!size || indices->numElements() > 1024)
    return false;
  for (uint64_t i = 0; i < indices->numElements(); ++i)
    if (int64_t at = indices->intAt(i); at < -*size || at >= *size)
      return false;
  return true;
}

} // namespace

void guardIndices(Emitter &emit, Op *last, Value *taken) {
  Op *op = last ? last->next() : &emit.func.body.front();
  for (; op; op = op->next()) {
    if (!hasIndices(op->kind()) || isSurelyInRange(*op))
      continue;
    Builder builder = Builder::before(op);
    builder.func = &emit.func;
    builder.loc = op->loc;
    Value *indices = op->operand(1);
    Value *zero = builder.scalar(indices->element(), 0);
    op->setOperand(1, builder.buildWhere({taken, indices, zero}));
  }
}

Op *lastOf(Block &block) { return block.empty() ? nullptr : &block.back(); }

namespace {

/// \p condition ? a : b, whose sizes need not agree: the sizes that differ are
/// bound when running, and the elements are a slice of both, one after another.
Value *select(NodeView &node, Emitter &emit, Value *condition, Value *a,
              Value *b) {
  if (a->type == b->type)
    return emit.where(condition, a, b);
  if (a->element() != b->element() || a->rank() != b->rank())
    return node.fail("its condition depends on data and its branches give {0} "
                     "and {1}; expected one element type and rank",
                     a->type, b->type);
  Dim sizeA = numElements(a->shape()), sizeB = numElements(b->shape());
  Dims sizes = emit.sizes(
      emit.where(condition, emit.dims(a->shape()), emit.dims(b->shape())),
      "shape");
  Dim start = emit.size(
      emit.where(condition, emit.dimScalar(Dim(0)), emit.dimScalar(sizeA)),
      "start");
  if (emit.failed())
    return nullptr;
  for (auto [i, size] : llvm::enumerate(sizes))
    if (a->shape()[i] == b->shape()[i])
      size = a->shape()[i];
  Value *both =
      emit.concat({emit.reshape(a, {sizeA}), emit.reshape(b, {sizeB})}, 0);
  return emit.reshape(emit.slice(both, 0, start, numElements(sizes)), sizes);
}

} // namespace

/// A branch on a constant is followed. A branch on data computes both sides,
/// which are pure, and selects; their results must have the same ranks.
Value *importIf(NodeView &node, Emitter &emit) {
  Value *condition = node.input(0);
  const onnx::GraphProto *thenGraph = node.requireGraph("then_branch");
  const onnx::GraphProto *elseGraph = node.requireGraph("else_branch");
  if (emit.failed())
    return nullptr;
  if (condition->element() != ElementType::Bool ||
      numElements(condition->shape()).constant() != 1)
    return node.fail("its condition is {0}; expected one bool",
                     condition->type);
  Values results;
  if (std::optional<double> value = emit.constantScalar(condition)) {
    results =
        emit.services.importSubgraph(*value != 0 ? *thenGraph : *elseGraph);
  } else {
    condition = emit.reshape(condition, {});
    Value *otherwise = emit.op(OpKind::Not, {condition});
    if (emit.failed())
      return nullptr;
    Op *last = lastOf(emit.func.body);
    ++emit.branches;
    Values a = emit.services.importSubgraph(*thenGraph);
    if (emit.failed())
      return nullptr;
    guardIndices(emit, last, condition);
    Op *lastOfThen = lastOf(emit.func.body);
    Values b = emit.services.importSubgraph(*elseGraph);
    if (emit.failed())
      return nullptr;
    guardIndices(emit, lastOfThen, otherwise);
    --emit.branches;
    if (a.size() != b.size())
      return node.fail("its branches have {0} and {1} outputs", a.size(),
                       b.size());
    if (hasSideEffectAfter(emit.func.body, last))
      return node.fail("its condition depends on data and a branch computes "
                       "sizes from data, which is not supported");
    for (size_t i = 0; i < a.size(); ++i)
      results.push_back(select(node, emit, condition, a[i], b[i]));
  }
  if (emit.failed())
    return nullptr;
  return giveOutputs(node, results);
}

} // namespace tenon::frontend
