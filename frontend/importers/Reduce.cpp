//===- Reduce.cpp - importers of reductions ------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/Emitter.h"
#include "frontend/NodeView.h"
#include "frontend/OnnxOps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

using namespace llvm;
using namespace tenon::ir;

namespace tenon::frontend {

namespace {

/// \p axesAsInput: the version from which on the axes are an input.
Value *reduce(NodeView &node, Emitter &emit, OpKind kind,
              int64_t axesAsInput = 18) {
  Value *x = node.input(0);
  std::optional<SmallVector<int64_t, 4>> axes;
  bool noopWithoutAxes = false;
  if (node.version() < axesAsInput) {
    axes = node.findInts("axes");
  } else {
    if (Value *given = node.input(1))
      axes = emit.constantInts(given, "axes");
    noopWithoutAxes = node.flagAttr("noop_with_empty_axes", false);
  }
  bool keepdims = node.flagAttr("keepdims", true);
  bool all = (!axes || axes->empty()) && !noopWithoutAxes;
  SmallVector<int64_t, 4> checked;
  if (all)
    checked = llvm::to_vector<4>(llvm::seq<int64_t>(0, x->rank()));
  else if (axes)
    for (int64_t axis : *axes)
      checked.push_back(node.checkedAxis(axis, x->rank(), "axes: axis"));
  llvm::sort(checked);
  if (std::adjacent_find(checked.begin(), checked.end()) != checked.end())
    return node.fail("an axis is given twice");
  // Of bools, the largest is "any" and the smallest "all".
  bool isBool = x->element() == ElementType::Bool;
  if (isBool)
    x = emit.cast(x, ElementType::U8);
  Value *y = emit.reduce(kind, x, checked, keepdims);
  return isBool ? emit.cast(y, ElementType::Bool) : y;
}

Value *argReduce(NodeView &node, Emitter &emit, OpKind kind) {
  Value *x = node.input(0);
  ArgReduceAttrs attrs;
  attrs.axis = node.checkedAxis(node.intAttr("axis", 0), x->rank());
  attrs.keepdims = node.flagAttr("keepdims", true);
  attrs.selectLast = node.flagAttr("select_last_index", false);
  return emit.op(kind, {x}, attrs);
}

} // namespace

Value *importReduceSum(NodeView &node, Emitter &emit) {
  return reduce(node, emit, OpKind::ReduceSum, 13);
}
Value *importReduceMean(NodeView &node, Emitter &emit) {
  return reduce(node, emit, OpKind::ReduceMean);
}
Value *importReduceMax(NodeView &node, Emitter &emit) {
  return reduce(node, emit, OpKind::ReduceMax);
}
Value *importReduceMin(NodeView &node, Emitter &emit) {
  return reduce(node, emit, OpKind::ReduceMin);
}
Value *importReduceProd(NodeView &node, Emitter &emit) {
  return reduce(node, emit, OpKind::ReduceProd);
}
Value *importReduceL1(NodeView &node, Emitter &emit) {
  return reduce(node, emit, OpKind::ReduceL1);
}
Value *importReduceL2(NodeView &node, Emitter &emit) {
  return reduce(node, emit, OpKind::ReduceL2);
}
Value *importReduceSumSquare(NodeView &node, Emitter &emit) {
  return reduce(node, emit, OpKind::ReduceSumSquare);
}
Value *importReduceLogSum(NodeView &node, Emitter &emit) {
  return reduce(node, emit, OpKind::ReduceLogSum);
}
Value *importReduceLogSumExp(NodeView &node, Emitter &emit) {
  return reduce(node, emit, OpKind::ReduceLogSumExp);
}
Value *importArgMax(NodeView &node, Emitter &emit) {
  return argReduce(node, emit, OpKind::ArgMax);
}
Value *importArgMin(NodeView &node, Emitter &emit) {
  return argReduce(node, emit, OpKind::ArgMin);
}

} // namespace tenon::frontend
