//===- Sorting.cpp - importers of Unique and NonMaxSuppression ------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/importers/Sorting.h"
#include "frontend/NodeView.h"
#include "frontend/OnnxOps.h"
#include "llvm/ADT/Sequence.h"

using namespace llvm;
using namespace tenon::ir;

namespace tenon::frontend {

namespace {

/// i64[rank, count], the count being a new symbol.
Value *nonZero(Emitter &emit, Value *mask, StringRef name) {
  if (emit.failed())
    return nullptr;
  DimRange range;
  range.high = numElements(mask->shape()).constant().value_or(INT64_MAX);
  CountAttrs attrs;
  attrs.count = emit.freshSymbol((name + ".count").str(), range);
  return emit.op(OpKind::NonZero, {mask}, attrs);
}

} // namespace

Value *indicesWhere(Emitter &emit, Value *mask, StringRef name) {
  Value *found = nonZero(emit, mask, name);
  return emit.failed() ? nullptr : emit.element(found, 0, Dim(0));
}

Sorted sorted(Emitter &emit, Value *x, bool largestFirst) {
  if (emit.failed())
    return {};
  TopKAttrs attrs;
  attrs.axis = x->rank() - 1;
  attrs.k = x->shape().back();
  attrs.largest = largestFirst;
  Op *op = emit.create(OpKind::TopK, {x}, std::make_unique<TopKAttrs>(attrs));
  return op ? Sorted{op->result(0), op->result(1)} : Sorted{};
}

//===----------------------------------------------------------------------===//
// Unique
//===----------------------------------------------------------------------===//

namespace {

/// For the rows of x[n, m], how many rows are less: lexicographically, by the
/// first column in which two differ.
Value *rankOfRows(Emitter &emit, Value *x) {
  if (emit.failed())
    return nullptr;
  Dim n = x->shape()[0], m = x->shape()[1];
  if (x->element() == ElementType::Bool)
    x = emit.cast(x, ElementType::I32);
  Value *a = emit.broadcast(emit.reshape(x, {n, Dim(1), m}), {n, n, m});
  Value *b = emit.broadcast(emit.reshape(x, {Dim(1), n, m}), {n, n, m});
  auto number = [&](OpKind kind) {
    return emit.cast(emit.op(kind, {a, b}), ElementType::I32);
  };
  Value *above = number(OpKind::Greater), *below = number(OpKind::Less);
  ArgReduceAttrs first;
  first.axis = 2;
  Value *column = emit.op(OpKind::ArgMax, {emit.add(above, below)}, first);
  AxisAttrs along;
  along.axis = 2;
  Value *greater = emit.op(OpKind::GatherElements, {above, column}, along);
  return emit.reduce(OpKind::ReduceSum, emit.reshape(greater, {n, n}), {1},
                     false);
}

/// What Unique knows of a sorted list of keys.
struct Runs {
  Value *starts = nullptr; ///< [count]: where a run of equal keys starts
  Value *number = nullptr; ///< [n]: the run of each
};

Runs runsOf(Emitter &emit, Value *keys, StringRef name) {
  if (emit.failed())
    return {};
  Dim n = keys->shape()[0];
  Value *index = emit.iota(n, 1, 0);
  Value *before =
      emit.gather(keys,
                  emit.op(OpKind::Max, {emit.addScalar(index, -1),
                                        emit.scalar(ElementType::I64, 0)}),
                  0);
  Value *differs =
      emit.op(OpKind::Not, {emit.op(OpKind::Equal, {keys, before})});
  Value *first =
      emit.op(OpKind::Equal, {index, emit.scalar(ElementType::I64, 0)});
  Value *isStart = emit.op(OpKind::Or, {differs, first});
  CumSumAttrs sum;
  Value *number = emit.addScalar(
      emit.op(OpKind::CumSum, {emit.cast(isStart, ElementType::I64)}, sum), -1);
  return {indicesWhere(emit, isStart, name), number};
}

/// result[places[i]] = values[i], both permutations of one length.
Value *scattered(Emitter &emit, Value *places, Value *values) {
  if (emit.failed())
    return nullptr;
  ScatterElementsAttrs attrs;
  return emit.op(
      OpKind::ScatterElements,
      {emit.filled(ElementType::I64, 0, places->shape()), places, values},
      attrs);
}

} // namespace

Value *importUnique(NodeView &node, Emitter &emit) {
  Value *x = node.input(0);
  std::optional<int64_t> axis = node.findInt("axis");
  bool inOrder = node.flagAttr("sorted", true);
  int64_t along = axis ? node.checkedAxis(*axis, x->rank()) : 0;
  if (emit.failed())
    return nullptr;
  if (!axis)
    x = emit.reshape(x, {numElements(x->shape())});
  Value *keys = x;
  if (axis && x->rank() > 1) {
    auto perm = llvm::to_vector(llvm::seq<int64_t>(0, x->rank()));
    perm.erase(perm.begin() + along);
    perm.insert(perm.begin(), along);
    Dim n = x->shape()[along];
    std::optional<Dim> width = Dim::divideExactly(numElements(x->shape()), n);
    if (!width)
      return node.fail("its input is {0}, whose size along axis {1} does not "
                       "divide its elements",
                       x->type, along);
    keys = rankOfRows(emit, emit.reshape(emit.transpose(x, perm), {n, *width}));
  }
  Sorted list = sorted(emit, keys, /*largestFirst=*/false);
  Runs runs = runsOf(emit, list.values, node.outputName(0));
  if (emit.failed())
    return nullptr;
  Dim n = keys->shape()[0], count = runs.starts->shape()[0];
  // A run ends where the next one starts, the last with the list.
  Value *next = emit.addScalar(emit.iota(count, 1, 0), 1);
  Value *isLast = emit.op(OpKind::Equal, {next, emit.dimScalar(count)});
  next = emit.where(isLast, emit.scalar(ElementType::I64, 0), next);
  Value *ends =
      emit.where(isLast, emit.dimScalar(n), emit.gather(runs.starts, next, 0));
  Value *counts = emit.sub(ends, runs.starts);
  Value *firsts = emit.gather(list.order, runs.starts, 0);
  Value *inverse = scattered(emit, list.order, runs.number);
  if (!inOrder) { // In order of first appearance.
    Sorted byPlace = sorted(emit, firsts, /*largestFirst=*/false);
    if (emit.failed())
      return nullptr;
    Value *newNumber = scattered(emit, byPlace.order, emit.iota(count, 1, 0));
    firsts = byPlace.values;
    counts = emit.gather(counts, byPlace.order, 0);
    inverse = emit.gather(newNumber, inverse, 0);
  }
  Value *results[] = {nullptr, firsts, inverse, counts};
  for (unsigned i = 1; i < node.numOutputs(); ++i)
    node.setOutput(i, results[i]);
  return emit.gather(x, firsts, along);
}

//===----------------------------------------------------------------------===//
// NonMaxSuppression
//===----------------------------------------------------------------------===//

namespace {

/// Two sides of a box along one axis, each [batch, classes, n].
struct Sides {
  Value *low, *high;
};

Sides sidesOf(Emitter &emit, Value *boxes, unsigned axis, bool centred) {
  // [y1, x1, y2, x2] in any order, or [x, y, width, height].
  auto part = [&](int64_t i) { return emit.element(boxes, 3, Dim(i)); };
  if (centred) {
    Value *middle = part(1 - axis), *half = emit.mulScalar(part(3 - axis), 0.5);
    return {emit.sub(middle, half), emit.add(middle, half)};
  }
  Value *a = part(axis), *b = part(axis + 2);
  return {emit.op(OpKind::Min, {a, b}), emit.op(OpKind::Max, {a, b})};
}

/// bool [batch, classes, n, n]: whether two boxes [batch, classes, n, 4] share
/// more than \p threshold of their union.
Value *overlaps(Emitter &emit, Value *boxes, bool centred, Value *threshold) {
  if (emit.failed())
    return nullptr;
  Shape row(boxes->shape().drop_back()), column(row);
  row.insert(row.end() - 1, Dim(1));
  column.push_back(Dim(1));
  ElementType type = boxes->element();
  Value *zero = emit.scalar(type, 0), *shared = nullptr, *area = nullptr;
  for (unsigned axis : {0u, 1u}) {
    Sides s = sidesOf(emit, boxes, axis, centred);
    auto pair = [&](OpKind kind, Value *x) {
      return emit.op(kind, {emit.reshape(x, row), emit.reshape(x, column)});
    };
    Value *length =
        emit.sub(pair(OpKind::Min, s.high), pair(OpKind::Max, s.low));
    length = emit.op(OpKind::Max, {length, zero});
    Value *side = emit.sub(s.high, s.low);
    shared = shared ? emit.mul(shared, length) : length;
    area = area ? emit.mul(area, side) : side;
  }
  Value *all = emit.sub(
      emit.add(emit.reshape(area, row), emit.reshape(area, column)), shared);
  Value *share = emit.div(shared, all);
  // Of nothing, nothing is shared: 0 / 0 is not above anything.
  return emit.op(OpKind::Greater, {share, threshold});
}

Value *threshold(Emitter &emit, Value *given, ElementType type,
                 double byDefault) {
  return given ? emit.cast(emit.reshape(given, {}), type)
               : emit.scalar(type, byDefault);
}

} // namespace

/// For each batch and class: boxes by score, each of which drops those behind
/// it that it overlaps; at most so many. Rows of [batch, class, box].
Value *importNonMaxSuppression(NodeView &node, Emitter &emit) {
  Value *boxes = node.input(0), *scores = node.input(1), *limit = node.input(2);
  bool centred = node.flagAttr("center_point_box", false);
  if (boxes->rank() != 3 || scores->rank() != 3 ||
      !boxes->shape()[2].isConstant(4))
    return node.fail(
        "'boxes' and 'scores' are {0} and {1}; expected [batch, n, "
        "4] and [batch, classes, n]",
        boxes->type, scores->type);
  ElementType type = boxes->element();
  ShapeRef shape = scores->shape();
  Dim batch = shape[0], classes = shape[1], n = shape[2];
  Sorted list = sorted(emit, scores, /*largestFirst=*/true);
  if (emit.failed())
    return nullptr;
  // The boxes of each class in that class's order.
  Value *every = emit.broadcast(emit.reshape(boxes, {batch, Dim(1), n, Dim(4)}),
                                {batch, classes, n, Dim(4)});
  Value *order =
      emit.broadcast(emit.reshape(list.order, {batch, classes, n, Dim(1)}),
                     {batch, classes, n, Dim(4)});
  AxisAttrs along;
  along.axis = 2;
  Value *ordered = emit.op(OpKind::GatherElements, {every, order}, along);
  Value *overlap =
      overlaps(emit, ordered, centred, threshold(emit, node.input(3), type, 0));
  Value *candidates = nullptr;
  if (Value *least = node.input(4))
    candidates = emit.op(OpKind::Greater,
                         {list.values, threshold(emit, least, type, 0)});
  else
    candidates = emit.filled(ElementType::Bool, 1, shape);
  Value *kept = emit.op(OpKind::GreedyKeep, {overlap, candidates});
  // At most `limit`, which is 0 where it is left out.
  CumSumAttrs sum;
  sum.axis = 2;
  Value *number =
      emit.op(OpKind::CumSum, {emit.cast(kept, ElementType::I64)}, sum);
  Value *most = limit ? emit.cast(emit.reshape(limit, {}), ElementType::I64)
                      : emit.scalar(ElementType::I64, 0);
  kept =
      emit.op(OpKind::And, {kept, emit.op(OpKind::LessEqual, {number, most})});
  Value *places = nonZero(emit, kept, node.outputName(0));
  if (emit.failed())
    return nullptr;
  Value *rows = emit.transpose(places, {1, 0});
  Value *box = emit.op(OpKind::GatherNd, {list.order, rows}, GatherNdAttrs());
  Dim count = rows->shape()[0];
  return emit.concat(
      {emit.slice(rows, 1, Dim(0), Dim(2)), emit.reshape(box, {count, Dim(1)})},
      1);
}

} // namespace tenon::frontend
