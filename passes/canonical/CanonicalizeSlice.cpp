//===- CanonicalizeSlice.cpp - laws of slices
//--------------------------------===//
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

namespace {

bool isStepOne(const SliceAttrs &attrs) {
  return llvm::all_of(attrs.steps, [](int64_t step) { return step == 1; });
}

// slice(x) that is all of x = x
Value *sliceOfAll(Op &op, Rewriter &) {
  const auto &attrs = op.attrs<SliceAttrs>();
  if (!isStepOne(attrs) || op.operand(0)->type != op.result()->type)
    return nullptr;
  return op.operand(0);
}

// slice(slice(x)) = slice(x)
Value *sliceTwice(Op &op, Rewriter &rewriter) {
  Op *inner = op.operand(0)->def(OpKind::Slice);
  if (!inner)
    return nullptr;
  const auto &a = inner->attrs<SliceAttrs>(), &b = op.attrs<SliceAttrs>();
  SliceAttrs attrs;
  for (size_t i = 0; i != a.steps.size(); ++i) {
    int64_t step;
    if (__builtin_mul_overflow(a.steps[i], b.steps[i], &step))
      return nullptr;
    attrs.starts.push_back(a.starts[i] + b.starts[i] * Dim(a.steps[i]));
    attrs.steps.push_back(step);
  }
  attrs.sizes = b.sizes;
  return rewriter.before(op).buildSlice({inner->operand(0)}, attrs);
}

/// The only dimension that \p op really slices, or nullopt.
std::optional<unsigned> slicedDim(const Op &op) {
  std::optional<unsigned> found;
  for (unsigned i = 0; i != op.result()->rank(); ++i) {
    if (op.operand(0)->shape()[i] == op.result()->shape()[i])
      continue;
    if (found)
      return std::nullopt;
    found = i;
  }
  return found;
}

// slice(concat(a, b)) = a, where the slice is exactly one input or within it
Value *sliceOfConcat(Op &op, Rewriter &rewriter) {
  Op *concat = op.operand(0)->def(OpKind::Concat);
  const auto &attrs = op.attrs<SliceAttrs>();
  std::optional<unsigned> dim = concat ? slicedDim(op) : std::nullopt;
  if (!dim || concat->attrs<AxisAttrs>().axis != *dim || !isStepOne(attrs))
    return nullptr;
  Dim begin = 0, start = attrs.starts[*dim], end = start + attrs.sizes[*dim];
  for (Value *input : concat->operands()) {
    Dim next = begin + input->shape()[*dim];
    if ((start - begin).isAtLeast(0) && (next - end).isAtLeast(0)) {
      SliceAttrs inside = attrs;
      inside.starts[*dim] = start - begin;
      if (input->type == op.result()->type)
        return input;
      return rewriter.before(op).buildSlice({input}, inside);
    }
    begin = next;
  }
  return nullptr;
}

// slice(broadcast(x)) = broadcast(slice(x))
Value *sliceOfBroadcast(Op &op, Rewriter &rewriter) {
  Op *broadcast = op.operand(0)->def(OpKind::Broadcast);
  if (!broadcast)
    return nullptr;
  Value *x = broadcast->operand(0);
  const auto &attrs = op.attrs<SliceAttrs>();
  if (!broadcastsSurely(x->shape(), op.operand(0)->shape()))
    return nullptr;
  unsigned lead = op.result()->rank() - x->rank();
  SliceAttrs inside;
  for (unsigned i = 0; i != x->rank(); ++i) {
    bool repeats = x->shape()[i].isConstant(1);
    inside.starts.push_back(repeats ? Dim(0) : attrs.starts[lead + i]);
    inside.sizes.push_back(repeats ? Dim(1) : attrs.sizes[lead + i]);
    inside.steps.push_back(repeats ? 1 : attrs.steps[lead + i]);
  }
  Builder builder = rewriter.before(op);
  Value *small = builder.buildSlice({x}, inside);
  return buildBroadcast(builder, small, op.result()->shape());
}

// concat(x) = x
Value *concatOfOne(Op &op, Rewriter &) {
  return op.numOperands() == 1 ? op.operand(0) : nullptr;
}

// concat(concat(a, b), c) = concat(a, b, c)
Value *concatOfConcat(Op &op, Rewriter &rewriter) {
  llvm::SmallVector<Value *, 4> inputs;
  for (Value *input : op.operands()) {
    Op *inner = input->def(OpKind::Concat);
    if (inner && input->hasOneUse() &&
        inner->attrs<AxisAttrs>().axis == op.attrs<AxisAttrs>().axis)
      llvm::append_range(inputs, inner->operands());
    else
      inputs.push_back(input);
  }
  if (inputs.size() == op.numOperands())
    return nullptr;
  return rebuild(op, inputs, rewriter);
}

// concat(x[..a], x[a..b]) = x[..b]
Value *concatOfSlices(Op &op, Rewriter &rewriter) {
  unsigned axis = op.attrs<AxisAttrs>().axis;
  Op *first = op.operand(0)->def(OpKind::Slice);
  if (!first || op.numOperands() < 2)
    return nullptr;
  SliceAttrs attrs = first->attrs<SliceAttrs>();
  if (!isStepOne(attrs))
    return nullptr;
  for (Value *input : op.operands().drop_front()) {
    Op *slice = input->def(OpKind::Slice);
    if (!slice || slice->operand(0) != first->operand(0) ||
        !isStepOne(slice->attrs<SliceAttrs>()))
      return nullptr;
    const auto &next = slice->attrs<SliceAttrs>();
    for (unsigned i = 0; i != attrs.starts.size(); ++i) {
      Dim expected =
          i == axis ? attrs.starts[i] + attrs.sizes[i] : attrs.starts[i];
      if (next.starts[i] != expected ||
          (i != axis && next.sizes[i] != attrs.sizes[i]))
        return nullptr;
    }
    attrs.sizes[axis] = attrs.sizes[axis] + next.sizes[axis];
  }
  return rewriter.before(op).buildSlice({first->operand(0)}, attrs);
}

/// The indices of a gather where they are consecutive and known.
struct Run {
  Dim start;
  int64_t count;
};
std::optional<Run> knownIndices(Value *indices, Dim size) {
  if (Op *dims = indices->def(OpKind::Dims)) {
    const Dims &values = dims->attrs<DimsAttrs>().values;
    if (values.size() != 1 || !values[0].isAtLeast(0))
      return std::nullopt;
    return Run{values[0], 1};
  }
  const Constant *constant = constantOf(indices);
  if (!constant || !constant->numElements() ||
      constant->numElements() > (1 << 16))
    return std::nullopt;
  int64_t first = constant->intAt(0), count = constant->numElements();
  if (first > INT64_MAX - count)
    return std::nullopt;
  for (int64_t i = 1; i != count; ++i)
    if (constant->intAt(i) != first + i)
      return std::nullopt;
  if (first < 0 && first + count > 0)
    return std::nullopt;
  return Run{first < 0 ? size + Dim(first) : Dim(first), count};
}

// gather(x, c) = reshape(slice(x)), for consecutive positions
Value *gatherKnown(Op &op, Rewriter &rewriter) {
  Value *x = op.operand(0);
  unsigned axis = op.attrs<AxisAttrs>().axis;
  std::optional<Run> run = knownIndices(op.operand(1), x->shape()[axis]);
  if (!run)
    return nullptr;
  std::optional<int64_t> start = run->start.constant(),
                         size = x->shape()[axis].constant();
  if (start && size && (*start < 0 || *start + run->count > *size))
    return nullptr;
  SliceAttrs attrs;
  for (Dim dim : x->shape()) {
    attrs.starts.push_back(0);
    attrs.sizes.push_back(dim);
    attrs.steps.push_back(1);
  }
  attrs.starts[axis] = run->start;
  attrs.sizes[axis] = run->count;
  Builder builder = rewriter.before(op);
  return buildReshape(builder, builder.buildSlice({x}, attrs),
                      op.result()->shape());
}

} // namespace

void passes::addSliceLaws(PeepholeSet &laws) {
  laws.add(OpKind::Slice, "slice that is everything", sliceOfAll);
  laws.add(OpKind::Slice, "slice(slice(x)) = slice(x)", sliceTwice);
  laws.add(OpKind::Slice, "slice(concat(a, b)) = a", sliceOfConcat);
  laws.add(OpKind::Slice, "slice(broadcast(x)) = broadcast(slice(x))",
           sliceOfBroadcast);
  laws.add(OpKind::Concat, "concat(x) = x", concatOfOne);
  laws.add(OpKind::Concat, "concat(concat(a, b), c) = concat(a, b, c)",
           concatOfConcat);
  laws.add(OpKind::Concat, "concat(x[..a], x[a..]) = x", concatOfSlices);
  laws.add(OpKind::Gather, "gather(x, c) = slice(x)", gatherKnown);
}
