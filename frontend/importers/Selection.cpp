//===- Selection.cpp - importers of ops that choose elements --------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/DimMath.h"
#include "frontend/Emitter.h"
#include "frontend/NodeView.h"
#include "frontend/OnnxOps.h"
#include "frontend/importers/Sorting.h"
#include "llvm/ADT/Sequence.h"

using namespace llvm;
using namespace tenon::ir;

namespace tenon::frontend {

//===----------------------------------------------------------------------===//
// Hardmax
//===----------------------------------------------------------------------===//

namespace {

/// 1 at the first largest element along \p axis, else 0.
Value *hardmax(Emitter &emit, Value *x, int64_t axis) {
  ArgReduceAttrs attrs;
  attrs.axis = axis;
  Value *best = emit.op(OpKind::ArgMax, {x}, attrs);
  if (emit.failed())
    return nullptr;
  Value *index = emit.iota(x->shape()[axis], x->rank(), axis);
  return emit.cast(emit.op(OpKind::Equal, {best, index}), x->element());
}

} // namespace

Value *importHardmax(NodeView &node, Emitter &emit) {
  Value *x = node.input(0);
  int64_t axis = node.checkedAxis(node.intAttr("axis", -1), x->rank());
  return emit.failed() ? nullptr : hardmax(emit, x, axis);
}

/// Up to opset 12: over all dimensions from `axis` on as one.
Value *importHardmax1(NodeView &node, Emitter &emit) {
  Value *x = node.input(0);
  int64_t axis = node.checkedAxis(node.intAttr("axis", 1), x->rank());
  if (emit.failed())
    return nullptr;
  Shape flat(x->shape().take_front(axis)), shape(x->shape());
  flat.push_back(numElements(x->shape().drop_front(axis)));
  return emit.reshape(hardmax(emit, emit.reshape(x, flat), axis), shape);
}

//===----------------------------------------------------------------------===//
// Compress, ReverseSequence, MaxUnpool
//===----------------------------------------------------------------------===//

Value *importCompress(NodeView &node, Emitter &emit) {
  Value *x = node.input(0), *condition = node.input(1);
  std::optional<int64_t> axis = node.findInt("axis");
  if (condition->rank() != 1 || condition->element() != ElementType::Bool)
    return node.fail("'condition' is {0}; expected a list of bools",
                     condition->type);
  if (emit.failed())
    return nullptr;
  if (!axis)
    x = emit.reshape(x, {numElements(x->shape())});
  int64_t along = node.checkedAxis(axis.value_or(0), x->rank());
  Value *indices = indicesWhere(emit, condition, node.outputName(0));
  return emit.failed() ? nullptr : emit.gather(x, indices, along);
}

/// y[t] = x[length - 1 - t] while t < length, else x[t].
Value *importReverseSequence(NodeView &node, Emitter &emit) {
  Value *x = node.input(0), *lengths = node.input(1);
  int64_t batch = node.checkedAxis(node.intAttr("batch_axis", 1), x->rank()),
          time = node.checkedAxis(node.intAttr("time_axis", 0), x->rank());
  if (emit.failed())
    return nullptr;
  if (batch == time || lengths->rank() != 1)
    return node.fail("it needs two axes and a list of lengths; found axes {0} "
                     "and {1} and {2}",
                     batch, time, lengths->type);
  Shape column(x->rank(), Dim(1));
  column[batch] = lengths->shape()[0];
  Value *length = emit.reshape(emit.cast(lengths, ElementType::I64), column);
  Value *t = emit.iota(x->shape()[time], x->rank(), time);
  Value *mirrored = emit.addScalar(emit.sub(length, t), -1);
  Value *from = emit.where(emit.op(OpKind::Less, {t, length}), mirrored, t);
  AxisAttrs attrs;
  attrs.axis = time;
  return emit.op(OpKind::GatherElements, {x, emit.broadcast(from, x->shape())},
                 attrs);
}

/// Writes elements to flat places among zeros.
Value *importMaxUnpool(NodeView &node, Emitter &emit) {
  Value *x = node.input(0), *places = node.input(1);
  auto kernel = node.findInts("kernel_shape");
  size_t n = x->rank() < 3 ? 0 : x->rank() - 2;
  auto strides =
      node.findInts("strides").value_or(SmallVector<int64_t, 4>(n, 1));
  auto pads = node.findInts("pads").value_or(SmallVector<int64_t, 4>(2 * n, 0));
  if (!kernel || n == 0 || kernel->size() != n || strides.size() != n ||
      pads.size() != 2 * n)
    return node.fail("its attributes do not fit {0}", x->type);
  Shape shape(x->shape());
  for (size_t i = 0; i < n; ++i)
    shape[i + 2] = (shape[i + 2] - Dim(1)) * Dim(strides[i]) +
                   Dim((*kernel)[i] - pads[i] - pads[i + n]);
  Dim count = numElements(x->shape());
  ScatterElementsAttrs attrs;
  Value *flat =
      emit.op(OpKind::ScatterElements,
              {emit.filled(x->element(), 0, {numElements(shape)}),
               emit.reshape(places, {count}), emit.reshape(x, {count})},
              attrs);
  Value *y = emit.reshape(flat, shape);
  if (!node.input(2) || emit.failed())
    return y;
  Dims wanted = emit.sizes(node.input(2), "output_shape");
  if (emit.failed())
    return nullptr;
  if (wanted.size() != shape.size())
    return node.fail("'output_shape' has {0} entries; expected {1}",
                     wanted.size(), shape.size());
  PadAttrs pad;
  pad.low.assign(shape.size(), Dim(0));
  for (auto [size, target] : llvm::zip(shape, wanted))
    pad.high.push_back(target - size);
  return emit.op(OpKind::Pad, {y}, pad);
}

//===----------------------------------------------------------------------===//
// CenterCropPad
//===----------------------------------------------------------------------===//

/// What is cropped or padded more, by one, is the end.
Value *importCenterCropPad(NodeView &node, Emitter &emit) {
  Value *x = node.input(0);
  auto axes = node.findInts("axes").value_or(
      llvm::to_vector<4>(llvm::seq<int64_t>(0, x->rank())));
  Dims wanted = emit.sizes(node.input(1), "shape");
  if (emit.failed())
    return nullptr;
  if (wanted.size() != axes.size())
    return node.fail("'shape' has {0} entries for {1} axes", wanted.size(),
                     axes.size());
  SliceAttrs crop;
  crop.starts.assign(x->rank(), Dim(0));
  crop.sizes.assign(x->shape().begin(), x->shape().end());
  crop.steps.assign(x->rank(), 1);
  PadAttrs pad;
  pad.low.assign(x->rank(), Dim(0));
  pad.high.assign(x->rank(), Dim(0));
  for (auto [given, target] : llvm::zip(axes, wanted)) {
    int64_t axis = node.checkedAxis(given, x->rank());
    if (emit.failed())
      return nullptr;
    Dim size = x->shape()[axis];
    Dim less = Dim::max(size - target, Dim(0)),
        more = Dim::max(target - size, Dim(0));
    crop.starts[axis] = Dim::floorDiv(less, Dim(2));
    crop.sizes[axis] = size - less;
    pad.low[axis] = Dim::floorDiv(more, Dim(2));
    pad.high[axis] = more - pad.low[axis];
  }
  Value *cropped = emit.op(OpKind::Slice, {x}, crop);
  return emit.op(OpKind::Pad, {cropped}, pad);
}

//===----------------------------------------------------------------------===//
// Det
//===----------------------------------------------------------------------===//

namespace {

/// Laplace's expansion has 2^n minors.
constexpr int64_t largestMatrix = 8;

} // namespace

/// By minors: those of the first k rows and any k columns from those of k - 1.
Value *importDet(NodeView &node, Emitter &emit) {
  Value *x = node.input(0);
  std::optional<int64_t> size =
      x->rank() < 2 ? std::nullopt : x->shape().back().constant();
  if (!size || x->shape()[x->rank() - 2] != Dim(*size) || *size < 1 ||
      *size > largestMatrix)
    return node.fail("its input is {0}; expected square matrices of at most "
                     "{1} rows",
                     x->type, largestMatrix);
  auto at = [&](int64_t row, int64_t column) {
    Value *line = emit.element(x, int64_t(x->rank()) - 2, Dim(row));
    return emit.element(line, int64_t(x->rank()) - 2, Dim(column));
  };
  std::vector<Value *> minors(size_t(1) << *size, nullptr);
  for (unsigned columns = 1; columns < minors.size(); ++columns) {
    int64_t row = llvm::popcount(columns) - 1;
    int64_t place = 0; // Among the columns.
    for (int64_t column = 0; column < *size; ++column) {
      if (!((columns >> column) & 1))
        continue;
      Value *entry = at(row, column), *rest = minors[columns ^ (1u << column)];
      Value *term = rest ? emit.mul(entry, rest) : entry;
      Value *&sum = minors[columns];
      bool negative = (row + place++) % 2 != 0;
      if (!sum)
        sum = negative ? emit.op(OpKind::Neg, {term}) : term;
      else
        sum = negative ? emit.sub(sum, term) : emit.add(sum, term);
    }
  }
  return minors.back();
}

} // namespace tenon::frontend
