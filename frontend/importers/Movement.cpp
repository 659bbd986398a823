//===- Movement.cpp - importers of ops that rearrange elements -----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/DimMath.h"
#include "frontend/Emitter.h"
#include "frontend/NodeView.h"
#include "frontend/OnnxOps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

using namespace llvm;
using namespace tenon::ir;

namespace tenon::frontend {

//===----------------------------------------------------------------------===//
// Transpose, Concat, Split
//===----------------------------------------------------------------------===//

Value *importTranspose(NodeView &node, Emitter &emit) {
  Value *x = node.input(0);
  int64_t rank = x->rank();
  auto perm = node.findInts("perm");
  if (!perm) {
    auto reversed = llvm::to_vector(llvm::reverse(llvm::seq<int64_t>(0, rank)));
    return emit.transpose(x, reversed);
  }
  if (int64_t(perm->size()) != rank)
    return node.fail("perm has {0} entries; expected {1}, one for each axis of "
                     "{2}",
                     perm->size(), rank, x->type);
  SmallVector<int64_t> sorted(perm->begin(), perm->end());
  llvm::sort(sorted);
  if (!llvm::equal(sorted, llvm::seq<int64_t>(0, rank)))
    return node.fail(
        "perm = [{0}] is not a permutation of the axes 0 to {1} of "
        "{2}",
        llvm::make_range(perm->begin(), perm->end()), rank - 1, x->type);
  return emit.transpose(x, *perm);
}

Value *importConcat(NodeView &node, Emitter &emit) {
  ArrayRef<Value *> inputs = node.allInputs();
  int64_t axis =
      node.checkedAxis(node.requireInt("axis"), inputs.front()->rank());
  return emit.concat(inputs, axis);
}

namespace {

/// The sizes of Split's parts when neither an attribute nor an input gives
/// them. From opset 18 on the last part may be smaller.
Dims evenParts(NodeView &node, Dim total, int64_t count) {
  Dims parts;
  if (std::optional<Dim> part = Dim::divideExactly(total, Dim(count))) {
    parts.assign(count, *part);
    return parts;
  }
  if (node.version() < 18 && total.constant()) {
    node.fail("a size of {0} does not split into {1} equal parts", total,
              count);
    return parts;
  }
  Dim part = Dim::ceilDiv(total, Dim(count));
  Dim last = total - part * Dim(count - 1);
  if (last.constant().value_or(0) < 0)
    node.fail("a size of {0} does not split into {1} parts", total, count);
  parts.assign(count - 1, part);
  parts.push_back(last);
  return parts;
}

Dims splitParts(NodeView &node, Emitter &emit, Dim total) {
  int64_t outputs = node.numOutputs();
  if (node.version() < 13) {
    if (auto given = node.findInts("split"))
      return Dims(given->begin(), given->end());
  } else if (Value *given = node.input(1)) {
    if (node.hasAttr("num_outputs"))
      node.fail("both the input 'split' and the attribute 'num_outputs' are "
                "given; expected one");
    return emit.sizes(given, "split");
  }
  if (node.version() >= 18) {
    int64_t count = node.intAttr("num_outputs", outputs);
    if (count != outputs)
      node.fail("attribute 'num_outputs' is {0}, but the node has {1} outputs",
                count, outputs);
  }
  return evenParts(node, total, outputs);
}

} // namespace

Value *importSplit(NodeView &node, Emitter &emit) {
  Value *x = node.input(0);
  int64_t axis = node.checkedAxis(node.intAttr("axis", 0), x->rank());
  if (emit.failed())
    return nullptr;
  Dim total = x->shape()[axis];
  Dims parts = splitParts(node, emit, total);
  if (emit.failed())
    return nullptr;
  if (parts.size() != node.numOutputs())
    return node.fail("'split' has {0} sizes, but the node has {1} outputs",
                     parts.size(), node.numOutputs());
  Dim start(0);
  for (auto [i, part] : llvm::enumerate(parts)) {
    if (part.constant().value_or(0) < 0)
      return node.fail("'split' holds the negative size {0}", part);
    node.setOutput(i, emit.slice(x, axis, start, part));
    start = start + part;
  }
  if (start.constant() && total.constant() && start != total)
    return node.fail("the parts add up to {0}, but axis {1} has size {2}",
                     start, axis, total);
  emit.require(start, total, "sum of the parts");
  return node.output(0);
}

//===----------------------------------------------------------------------===//
// Slice
//===----------------------------------------------------------------------===//

namespace {

struct SliceRange {
  Dim start, size;
};

/// Numbers this large stand for "to the end", whatever the size.
bool isFarEnd(Dim x) { return x.constant().value_or(0) >= INT32_MAX; }
bool isFarBeginning(Dim x) { return x.constant().value_or(0) <= -INT32_MAX; }

/// ONNX's clamping of one axis.
SliceRange sliceRange(Dim size, Dim start, Dim end, int64_t step) {
  // A negative step starts at the last element and may run past the first.
  Dim low(step > 0 ? 0 : -1), high = step > 0 ? size : size - Dim(1);
  auto place = [&](Dim index, Dim lowest) {
    if (isFarEnd(index))
      return high;
    if (isFarBeginning(index))
      return lowest;
    return clampDim(fromEnd(index, size), lowest, high);
  };
  Dim from = place(start, Dim(0)), to = place(end, low);
  Dim count = stepsWithin(step > 0 ? to - from : from - to, std::abs(step));
  if (size.isConstant(0))
    count = Dim(0);
  return {count.isConstant(0) ? Dim(0) : from, count};
}

/// Whether \p x is (a view of) a weight.
bool isWeight(Value *x) {
  while (Op *op = x->def()) {
    if (op->kind() == OpKind::Const)
      return true;
    if (op->kind() != OpKind::Slice && op->kind() != OpKind::Reshape &&
        op->kind() != OpKind::Cast && op->kind() != OpKind::Transpose)
      return false;
    x = op->operand(0);
  }
  return false;
}

/// A table of positions or a causal mask that is cut to a length ends the
/// lengths that the model can do: the result would be too short for all that
/// comes after. Saying so keeps min(512, length) out of every later size.
Dim endWithinTable(Emitter &emit, Dim size, Dim end) {
  if (!size.constant() || end.constant() || !end.isAtLeast(0))
    return end;
  if (std::optional<StringRef> symbol = end.symbolName()) {
    DimRange range = emit.module.rangeOf(*symbol);
    range.high = std::min(range.high, *size.constant());
    if (range.low <= range.high)
      emit.module.declare(*symbol, range);
  } else {
    emit.require(Dim::min(end, size), end, "length of a table");
  }
  return end;
}

/// A bound of a slice that depends on data, clamped by the model itself to
/// \p low .. size + \p pastEnd.
Value *clampedIndex(Emitter &emit, Value *index, Dim size, int64_t low,
                    int64_t pastEnd) {
  Value *zero = emit.scalar(ElementType::I64, 0);
  index = emit.cast(index, ElementType::I64);
  Value *counted = emit.where(emit.op(OpKind::Less, {index, zero}),
                              emit.add(index, emit.dimScalar(size)), index);
  Value *bounded =
      emit.op(OpKind::Max, {counted, emit.scalar(ElementType::I64, low)});
  return emit.op(OpKind::Min, {bounded, emit.dimScalar(size + Dim(pastEnd))});
}

/// A range of which the start or the end depends on data.
SliceRange dataRange(Emitter &emit, Dim size, Value *start, Value *end,
                     int64_t step) {
  int64_t pastEnd = step > 0 ? 0 : -1;
  Value *from = clampedIndex(emit, start, size, 0, pastEnd);
  Value *to = clampedIndex(emit, end, size, step > 0 ? 0 : -1, pastEnd);
  Value *zero = emit.scalar(ElementType::I64, 0);
  Value *distance = step > 0 ? emit.sub(to, from) : emit.sub(from, to);
  distance = emit.op(OpKind::Max, {distance, zero});
  int64_t stride = std::abs(step);
  if (stride > 1)
    distance = emit.div(emit.addScalar(distance, double(stride - 1)),
                        emit.scalar(ElementType::I64, double(stride)));
  // Without elements the last one, where a negative step starts, is -1.
  from = emit.op(OpKind::Max, {from, zero});
  Dim first = emit.size(from, "start");
  return {first, emit.size(distance, "size")};
}

Value *elementOf(Emitter &emit, Value *list, int64_t i) {
  if (emit.failed() || list->rank() == 0)
    return list;
  return emit.gather(list, emit.scalar(ElementType::I64, i), 0);
}

/// Which axes are sliced, by how much each.
struct SliceAxes {
  SmallVector<int64_t, 4> axes, steps;
};

SliceAxes sliceAxes(NodeView &node, Emitter &emit, int64_t count) {
  SliceAxes result;
  if (Value *axes = node.input(3))
    result.axes = emit.constantInts(axes, "axes");
  else
    result.axes = llvm::to_vector<4>(llvm::seq<int64_t>(0, count));
  if (Value *steps = node.input(4))
    result.steps = emit.constantInts(steps, "steps");
  else
    result.steps.assign(count, 1);
  if (!emit.failed() && (int64_t(result.axes.size()) != count ||
                         int64_t(result.steps.size()) != count))
    node.fail("'starts' has {0} elements, 'axes' {1} and 'steps' {2}", count,
              result.axes.size(), result.steps.size());
  for (int64_t step : result.steps)
    if (step == 0 || step == INT64_MIN)
      node.fail("a step of {0} is not allowed", step);
  return result;
}

/// A slice of the whole of \p x, to be narrowed.
SliceAttrs wholeSlice(Value *x) {
  SliceAttrs attrs;
  attrs.starts.assign(x->rank(), Dim(0));
  attrs.sizes.assign(x->shape().begin(), x->shape().end());
  attrs.steps.assign(x->rank(), 1);
  return attrs;
}

Value *emitSlice(Emitter &emit, Value *x, const SliceAttrs &attrs) {
  bool whole = llvm::equal(attrs.sizes, x->shape()) &&
               llvm::all_of(attrs.steps, [](int64_t s) { return s == 1; });
  return whole ? x : emit.op(OpKind::Slice, {x}, attrs);
}

} // namespace

Value *importSlice1(NodeView &node, Emitter &emit) {
  Value *x = node.input(0);
  auto starts = node.findInts("starts"), ends = node.findInts("ends");
  auto axes = node.findInts("axes");
  if (!starts || !ends || starts->size() != ends->size())
    return node.fail(
        "attributes 'starts' and 'ends' must be given and have the "
        "same length");
  if (!axes)
    axes = llvm::to_vector<4>(llvm::seq<int64_t>(0, starts->size()));
  if (axes->size() != starts->size())
    return node.fail("'starts' has {0} elements and 'axes' {1}", starts->size(),
                     axes->size());
  SliceAttrs attrs = wholeSlice(x);
  for (size_t i = 0; i < axes->size(); ++i) {
    int64_t axis = node.checkedAxis((*axes)[i], x->rank());
    if (emit.failed())
      return nullptr;
    SliceRange range =
        sliceRange(x->shape()[axis], (*starts)[i], (*ends)[i], 1);
    attrs.starts[axis] = range.start;
    attrs.sizes[axis] = range.size;
  }
  return emitSlice(emit, x, attrs);
}

Value *importSlice(NodeView &node, Emitter &emit) {
  Value *x = node.input(0), *starts = node.input(1), *ends = node.input(2);
  if (starts->rank() > 1 || starts->shape() != ends->shape())
    return node.fail("'starts' is {0} and 'ends' is {1}; expected two lists of "
                     "the same length",
                     starts->type, ends->type);
  std::optional<int64_t> count =
      starts->rank() == 0 ? 1 : starts->shape().front().constant();
  if (!count || *count > x->rank())
    return node.fail("'starts' is {0}; expected at most one element for each "
                     "axis of {1}",
                     starts->type, x->type);
  SliceAxes sliced = sliceAxes(node, emit, *count);
  SliceAttrs attrs = wholeSlice(x);
  SmallVector<bool> seen(x->rank(), false);
  auto known = [&](Value *list, int64_t i) -> std::optional<Dim> {
    const auto &elements = emit.shapeValues.partialOf(list);
    return elements ? (*elements)[i] : std::nullopt;
  };
  for (int64_t i = 0; i < *count && !emit.failed(); ++i) {
    int64_t axis = node.checkedAxis(sliced.axes[i], x->rank());
    if (!emit.failed() && seen[axis])
      return node.fail("axis {0} is sliced twice", axis);
    if (emit.failed())
      return nullptr;
    seen[axis] = true;
    Dim size = x->shape()[axis];
    int64_t step = sliced.steps[i];
    std::optional<Dim> start = known(starts, i), end = known(ends, i);
    SliceRange range;
    if (!start || !end) {
      range = dataRange(emit, size, elementOf(emit, starts, i),
                        elementOf(emit, ends, i), step);
    } else if (step > 0 && isWeight(x) && size.constant() && !end->constant() &&
               end->isAtLeast(0) && start->isAtLeast(0) &&
               (*end - *start).isAtLeast(0)) {
      Dim to = endWithinTable(emit, size, *end);
      range = {*start, stepsWithin(to - *start, step)};
    } else {
      range = sliceRange(size, *start, *end, step);
    }
    attrs.starts[axis] = range.start;
    attrs.sizes[axis] = range.size;
    attrs.steps[axis] = step;
  }
  return emit.failed() ? nullptr : emitSlice(emit, x, attrs);
}

//===----------------------------------------------------------------------===//
// Tile, Pad
//===----------------------------------------------------------------------===//

Value *importTile(NodeView &node, Emitter &emit) {
  Value *x = node.input(0);
  Dims repeats = emit.sizes(node.input(1), "repeats");
  if (!emit.failed() && repeats.size() != x->rank())
    return node.fail("'repeats' has {0} elements; the input is {1}",
                     repeats.size(), x->type);
  if (emit.failed())
    return nullptr;
  // [a, b] -> [1, a, 1, b] -> [r, a, s, b] -> [r * a, s * b]
  Shape split, repeated, result;
  for (auto [size, repeat] : llvm::zip(x->shape(), repeats)) {
    if (repeat.constant().value_or(0) < 0)
      return node.fail("'repeats' holds {0}", repeat);
    if (!repeat.isConstant(1)) {
      split.push_back(Dim(1));
      repeated.push_back(repeat);
    }
    split.push_back(size);
    repeated.push_back(size);
    result.push_back(repeat * size);
  }
  return emit.reshape(emit.broadcast(emit.reshape(x, split), repeated), result);
}

namespace {

Value *pad(NodeView &node, Emitter &emit, Value *x, ArrayRef<Dim> pads,
           ArrayRef<int64_t> axes, Value *value) {
  static constexpr StringLiteral modes[] = {"constant", "reflect", "edge",
                                            "wrap"};
  StringRef mode = node.strAttr("mode", "constant");
  const auto *found = llvm::find(modes, mode);
  if (found == std::end(modes))
    return node.fail("attribute 'mode' is '{0}'; expected constant, reflect, "
                     "edge or wrap",
                     mode);
  if (emit.failed())
    return nullptr;
  if (pads.size() != 2 * axes.size())
    return node.fail("'pads' has {0} elements; expected {1}, two for each axis",
                     pads.size(), 2 * axes.size());
  PadAttrs attrs;
  attrs.mode = PadMode(found - std::begin(modes));
  attrs.low.assign(x->rank(), Dim(0));
  attrs.high.assign(x->rank(), Dim(0));
  for (auto [i, given] : llvm::enumerate(axes)) {
    int64_t axis = node.checkedAxis(given, x->rank());
    if (emit.failed())
      return nullptr;
    attrs.low[axis] = pads[i];
    attrs.high[axis] = pads[i + axes.size()];
  }
  auto isZero = [](Dim amount) { return amount.isConstant(0); };
  if (llvm::all_of(attrs.low, isZero) && llvm::all_of(attrs.high, isZero))
    return x;
  if (attrs.mode != PadMode::Constant || !value)
    return emit.op(OpKind::Pad, {x}, attrs);
  if (numElements(value->shape()).constant() != 1)
    return node.fail("'constant_value' is {0}; expected a scalar", value->type);
  return emit.op(OpKind::Pad, {x, emit.reshape(value, {})}, attrs);
}

} // namespace

Value *importPad2(NodeView &node, Emitter &emit) {
  Value *x = node.input(0);
  auto pads = node.findInts("pads");
  if (!pads)
    return node.fail("required attribute 'pads' is missing");
  double value = node.floatAttr("value", 0.0);
  return pad(node, emit, x, Dims(pads->begin(), pads->end()),
             llvm::to_vector(llvm::seq<int64_t>(0, x->rank())),
             emit.scalar(x->element(), value));
}

Value *importPad(NodeView &node, Emitter &emit) {
  Value *x = node.input(0), *value = node.input(2);
  Dims pads = emit.sizes(node.input(1), "pads");
  auto axes = llvm::to_vector<4>(llvm::seq<int64_t>(0, x->rank()));
  if (Value *given = node.input(3))
    axes = emit.constantInts(given, "axes");
  return pad(node, emit, x, pads, axes, value);
}

//===----------------------------------------------------------------------===//
// Trilu, space and depth
//===----------------------------------------------------------------------===//

Value *importTrilu(NodeView &node, Emitter &emit) {
  Value *x = node.input(0), *k = node.input(1);
  TriluAttrs attrs;
  attrs.upper = node.flagAttr("upper", true);
  std::optional<Dim> known = k ? emit.shapeValues.scalarOf(k) : Dim(0);
  if (known) {
    attrs.k = *known;
    return emit.op(OpKind::Trilu, {x}, attrs);
  }
  // An offset that depends on data may be negative, which a size is not.
  if (x->rank() < 2)
    return node.fail("its input is {0}; expected rank 2 or more", x->type);
  Value *rows = emit.iota(x->shape()[x->rank() - 2], 2, 0);
  Value *columns = emit.iota(x->shape()[x->rank() - 1], 2, 1);
  Value *limit = emit.add(rows, emit.reshape(k, {}));
  OpKind compare = attrs.upper ? OpKind::GreaterEqual : OpKind::LessEqual;
  return emit.where(emit.op(compare, {columns, limit}), x,
                    emit.scalar(x->element(), 0));
}

namespace {

/// The block size and the sizes of a 4-D input.
struct Blocks {
  Dim n, c, h, w, b;
};

std::optional<Blocks> blocks(NodeView &node, Value *x) {
  int64_t b = node.requireInt("blocksize");
  if (x->rank() != 4 || b < 1) {
    node.fail("its input is {0} and 'blocksize' is {1}; expected rank 4 and a "
              "positive size",
              x->type, b);
    return std::nullopt;
  }
  ShapeRef s = x->shape();
  return Blocks{s[0], s[1], s[2], s[3], Dim(b)};
}

} // namespace

Value *importDepthToSpace(NodeView &node, Emitter &emit) {
  Value *x = node.input(0);
  StringRef mode = node.strAttr("mode", "DCR");
  std::optional<Blocks> s = blocks(node, x);
  if (!s)
    return nullptr;
  if (mode != "DCR" && mode != "CRD")
    return node.fail("attribute 'mode' is '{0}'; expected DCR or CRD", mode);
  std::optional<Dim> c = Dim::divideExactly(s->c, s->b * s->b);
  if (!c)
    return node.fail("{0} channels do not divide into blocks of {1}", s->c,
                     s->b * s->b);
  bool depthFirst = mode == "DCR";
  Value *split = depthFirst
                     ? emit.reshape(x, {s->n, s->b, s->b, *c, s->h, s->w})
                     : emit.reshape(x, {s->n, *c, s->b, s->b, s->h, s->w});
  Value *moved = depthFirst ? emit.transpose(split, {0, 3, 4, 1, 5, 2})
                            : emit.transpose(split, {0, 1, 4, 2, 5, 3});
  return emit.reshape(moved, {s->n, *c, s->h * s->b, s->w * s->b});
}

Value *importSpaceToDepth(NodeView &node, Emitter &emit) {
  Value *x = node.input(0);
  StringRef mode = node.strAttr("mode", "DCR");
  if (mode != "DCR" && mode != "CRD")
    return node.fail("attribute 'mode' is '{0}'; expected DCR or CRD", mode);
  std::optional<Blocks> s = blocks(node, x);
  if (!s)
    return nullptr;
  std::optional<Dim> h = Dim::divideExactly(s->h, s->b),
                     w = Dim::divideExactly(s->w, s->b);
  if (!h || !w)
    return node.fail("{0} x {1} does not divide into blocks of {2}", s->h, s->w,
                     s->b);
  Value *split = emit.reshape(x, {s->n, s->c, *h, s->b, *w, s->b});
  Value *moved = mode == "DCR" ? emit.transpose(split, {0, 3, 5, 1, 2, 4})
                               : emit.transpose(split, {0, 1, 3, 5, 2, 4});
  return emit.reshape(moved, {s->n, s->c * s->b * s->b, *h, *w});
}

} // namespace tenon::frontend
