//===- Indexing.cpp - importers of gathers, scatters and searches --------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/Emitter.h"
#include "frontend/NodeView.h"
#include "frontend/OnnxOps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;
using namespace tenon::ir;

namespace tenon::frontend {

namespace {

/// Indices may be i32 or i64.
bool checkIndices(NodeView &node, Value *indices) {
  if (indices->element() == ElementType::I32 ||
      indices->element() == ElementType::I64)
    return true;
  node.fail("the indices are {0}; expected i32 or i64", indices->type);
  return false;
}

/// Refuses constant indices that \p x does not have: the node can only fail.
/// Index i of the list is one of dimension \p axisOf(i). What is not known here
/// is checked when running.
bool checkRange(NodeView &node, Emitter &emit, Value *x, Value *indices,
                function_ref<int64_t(uint64_t)> axisOf) {
  constexpr uint64_t most = 1 << 20;
  const Op *def = indices->def(OpKind::Const);
  if (emit.failed() || !def || emit.branches != 0)
    return !emit.failed();
  const Constant &list = *def->attrs<ConstAttrs>().value;
  for (uint64_t i = 0; i < list.numElements() && i < most; ++i) {
    int64_t axis = axisOf(i), at = list.intAt(i);
    if (axis >= int64_t(x->rank()))
      return true; // inference says more of that
    std::optional<int64_t> size = x->shape()[axis].constant();
    if (size && (at < -*size || at >= *size)) {
      node.fail("index {0} is out of range: axis {1} has {2} entries", at, axis,
                *size);
      return false;
    }
  }
  return true;
}

/// The same of lists of positions, the last dimension of \p indices, in the
/// dimensions from \p first on.
bool checkPositions(NodeView &node, Emitter &emit, Value *x, Value *indices,
                    int64_t first) {
  if (indices->rank() == 0)
    return true;
  int64_t depth = indices->shape().back().constant().value_or(0);
  return depth < 1 ||
         checkRange(
             node, emit, x, indices,
             [&](uint64_t i) { return first + int64_t(i % uint64_t(depth)); });
}

ScatterReduction reduction(NodeView &node) {
  StringRef name = node.strAttr("reduction", "none");
  auto found = StringSwitch<std::optional<ScatterReduction>>(name)
                   .Case("none", ScatterReduction::None)
                   .Case("add", ScatterReduction::Add)
                   .Case("mul", ScatterReduction::Mul)
                   .Case("min", ScatterReduction::Min)
                   .Case("max", ScatterReduction::Max)
                   .Default(std::nullopt);
  if (!found)
    node.fail("attribute 'reduction' is '{0}'; expected none, add, mul, min or "
              "max",
              name);
  return found.value_or(ScatterReduction::None);
}

} // namespace

Value *importGather(NodeView &node, Emitter &emit) {
  Value *x = node.input(0), *indices = node.input(1);
  int64_t axis = node.checkedAxis(node.intAttr("axis", 0), x->rank());
  if (!checkIndices(node, indices) ||
      !checkRange(node, emit, x, indices, [&](uint64_t) { return axis; }))
    return nullptr;
  return emit.gather(x, indices, axis);
}

Value *importGatherElements(NodeView &node, Emitter &emit) {
  Value *x = node.input(0), *indices = node.input(1);
  AxisAttrs attrs;
  attrs.axis = node.checkedAxis(node.intAttr("axis", 0), x->rank());
  if (!checkIndices(node, indices) ||
      !checkRange(node, emit, x, indices, [&](uint64_t) { return attrs.axis; }))
    return nullptr;
  return emit.op(OpKind::GatherElements, {x, indices}, attrs);
}

Value *importGatherNd(NodeView &node, Emitter &emit) {
  Value *x = node.input(0), *indices = node.input(1);
  GatherNdAttrs attrs;
  attrs.batchDims = node.intAttr("batch_dims", 0);
  if (attrs.batchDims < 0)
    return node.fail("attribute 'batch_dims' is {0}", attrs.batchDims);
  if (!checkIndices(node, indices) ||
      !checkPositions(node, emit, x, indices, attrs.batchDims))
    return nullptr;
  return emit.op(OpKind::GatherNd, {x, indices}, attrs);
}

Value *importScatterNd(NodeView &node, Emitter &emit) {
  Value *x = node.input(0), *indices = node.input(1), *updates = node.input(2);
  ScatterNdAttrs attrs;
  attrs.reduction = reduction(node);
  if (!checkIndices(node, indices) ||
      !checkPositions(node, emit, x, indices, 0))
    return nullptr;
  return emit.op(OpKind::ScatterNd, {x, indices, updates}, attrs);
}

Value *importScatterElements(NodeView &node, Emitter &emit) {
  Value *x = node.input(0), *indices = node.input(1), *updates = node.input(2);
  ScatterElementsAttrs attrs;
  attrs.axis = node.checkedAxis(node.intAttr("axis", 0), x->rank());
  attrs.reduction = reduction(node);
  if (!checkIndices(node, indices) ||
      !checkRange(node, emit, x, indices, [&](uint64_t) { return attrs.axis; }))
    return nullptr;
  return emit.op(OpKind::ScatterElements, {x, indices, updates}, attrs);
}

Value *importOneHot(NodeView &node, Emitter &emit) {
  Value *indices = node.input(0), *depth = node.input(1),
        *values = node.input(2);
  OneHotAttrs attrs;
  attrs.axis = node.checkedAxis(node.intAttr("axis", -1), indices->rank() + 1);
  if (numElements(depth->shape()).constant() != 1)
    return node.fail("'depth' is {0}; expected a scalar", depth->type);
  depth = emit.reshape(emit.cast(depth, ElementType::I64), {});
  if (emit.failed())
    return nullptr;
  attrs.depth = emit.size(depth, "depth");
  // Indices may be of any type; they are whole numbers all the same.
  if (indices->element() != ElementType::I32)
    indices = emit.cast(indices, ElementType::I64);
  return emit.op(OpKind::OneHot, {indices, values}, attrs);
}

Value *importNonZero(NodeView &node, Emitter &emit) {
  Value *x = node.input(0);
  DimRange range;
  range.high = numElements(x->shape()).constant().value_or(INT64_MAX);
  CountAttrs attrs;
  attrs.count = emit.freshSymbol((node.outputName(0) + ".count").str(), range);
  return emit.op(OpKind::NonZero, {x}, attrs);
}

namespace {

/// A running sum or product.
Value *running(NodeView &node, Emitter &emit, OpKind kind) {
  Value *x = node.input(0), *axis = node.input(1);
  CumSumAttrs attrs;
  attrs.exclusive = node.flagAttr("exclusive", false);
  attrs.reverse = node.flagAttr("reverse", false);
  if (!isInteger(axis->element()) ||
      numElements(axis->shape()).constant() != 1 || x->rank() == 0)
    return node.fail("its input is {0} and 'axis' is {1}; expected rank 1 or "
                     "more and one integer",
                     x->type, axis->type);
  if (std::optional<double> known = emit.constantScalar(axis)) {
    attrs.axis = node.checkedAxis(int64_t(*known), x->rank());
    return emit.op(kind, {x}, attrs);
  }
  // An axis that depends on data selects among the sums along each.
  axis = emit.cast(emit.reshape(axis, {}), ElementType::I64);
  Value *result = nullptr;
  for (int64_t i = 0; i < int64_t(x->rank()); ++i) {
    attrs.axis = i;
    Value *sum = emit.op(kind, {x}, attrs);
    auto is = [&](int64_t number) {
      return emit.op(OpKind::Equal,
                     {axis, emit.scalar(ElementType::I64, number)});
    };
    Value *chosen = emit.op(OpKind::Or, {is(i), is(i - int64_t(x->rank()))});
    result = result ? emit.where(chosen, sum, result) : sum;
  }
  return result;
}

} // namespace

Value *importCumSum(NodeView &node, Emitter &emit) {
  return running(node, emit, OpKind::CumSum);
}

Value *importCumProd(NodeView &node, Emitter &emit) {
  return running(node, emit, OpKind::CumProd);
}

Value *importTopK(NodeView &node, Emitter &emit) {
  Value *x = node.input(0);
  TopKAttrs attrs;
  attrs.axis = node.checkedAxis(node.intAttr("axis", -1), x->rank());
  attrs.k = node.version() < 10 ? Dim(node.requireInt("k"))
                                : emit.size(node.input(1), "K");
  if (node.version() >= 11) {
    attrs.largest = node.flagAttr("largest", true);
    attrs.sorted = node.flagAttr("sorted", true);
  }
  if (attrs.k.constant().value_or(0) < 0)
    return node.fail("K is {0}", attrs.k);
  Op *op = emit.create(OpKind::TopK, {x}, std::make_unique<TopKAttrs>(attrs));
  if (!op)
    return nullptr;
  if (node.numOutputs() > 1)
    node.setOutput(1, op->result(1));
  return op->result(0);
}

/// A cache with `update` written at write_indices[b] along one axis.
Value *importTensorScatter(NodeView &node, Emitter &emit) {
  Value *cache = node.input(0), *update = node.input(1),
        *starts = node.input(2);
  int64_t axis =
      node.checkedAxis(node.intAttr("axis", -2), int64_t(cache->rank()));
  StringRef mode = node.strAttr("mode", "linear");
  if (emit.failed())
    return nullptr;
  if (mode != "linear" && mode != "circular")
    return node.fail("attribute 'mode' is '{0}'; expected 'linear' or "
                     "'circular'",
                     mode);
  if (axis == 0 || update->rank() != cache->rank())
    return node.fail("'past_cache' is {0} and 'update' {1}; expected equal "
                     "ranks, and an axis behind the batch",
                     cache->type, update->type);
  unsigned rank = cache->rank();
  Value *rows = emit.iota(update->shape()[axis], rank, unsigned(axis));
  if (starts) {
    Shape perEntry(rank, Dim(1));
    perEntry[0] = cache->shape()[0];
    rows = emit.add(
        rows, emit.reshape(emit.cast(starts, ElementType::I64), perEntry));
  }
  if (mode == "circular")
    rows = emit.op(OpKind::Mod, {rows, emit.dimScalar(cache->shape()[axis])});
  if (emit.failed())
    return nullptr;
  ScatterElementsAttrs attrs;
  attrs.axis = axis;
  return emit.op(OpKind::ScatterElements,
                 {cache, emit.broadcast(rows, update->shape()), update}, attrs);
}

} // namespace tenon::frontend
