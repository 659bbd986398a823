//===- Indexing.cpp - reference semantics of gathers and scatters --------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/OpDef.h"
#include "ir/eval/Elements.h"
#include "ir/eval/Loops.h"
#include "ir/support/Diag.h"

using namespace llvm;

namespace tenon::ir {

namespace {

uint64_t product(ArrayRef<int64_t> extents) {
  uint64_t count = 1;
  for (int64_t extent : extents)
    count *= uint64_t(extent);
  return count;
}

/// Stores updates[j] at y[i], alone or combined with what is there.
void scatterElement(ScatterReduction reduction, Tensor &y, uint64_t i,
                    const Tensor &updates, uint64_t j) {
  switch (reduction) {
  case ScatterReduction::None:
    return copyElements(y, i, updates, j);
  case ScatterReduction::Add:
    return combineElement(OpKind::Add, y, i, updates, j);
  case ScatterReduction::Mul:
    return combineElement(OpKind::Mul, y, i, updates, j);
  case ScatterReduction::Min:
    return combineElement(OpKind::Min, y, i, updates, j);
  case ScatterReduction::Max:
    return combineElement(OpKind::Max, y, i, updates, j);
  }
}

/// Calls \p visit(offset in x, number of the index) for each index of
/// gather_elements and scatter_elements.
Error forEachElementIndex(const Tensor &x, const Tensor &indices, int64_t axis,
                          function_ref<void(uint64_t, uint64_t)> visit) {
  for (unsigned d = 0; d < x.rank(); ++d)
    if (int64_t(d) != axis && indices.shape[d] > x.shape[d])
      return userError("dimension {0} of operand 'indices' is {1}, expected at "
                       "most {2} as in operand 'x'",
                       d, indices.shape[d], x.shape[d]);
  Extents strides = rowMajorStrides(x.shape);
  uint64_t i = 0;
  Error failure = Error::success();
  bool failed = false;
  forEachIndex(indices.shape, [&](ArrayRef<int64_t> index) {
    if (failed)
      return;
    Expected<int64_t> chosen =
        resolveIndex(indices.intAt(i), x.shape[axis], indices, i, axis);
    if (!chosen) {
      failed = true;
      failure = joinErrors(std::move(failure), chosen.takeError());
      return;
    }
    uint64_t offset = 0;
    for (unsigned d = 0; d < x.rank(); ++d)
      offset += (int64_t(d) == axis ? *chosen : index[d]) * strides[d];
    visit(offset, i++);
  });
  return failure;
}

/// Calls \p visit(offset in x, number of the multi-index) for each multi-index
/// in the last dimension of \p indices, behind \p batchDims dimensions that x
/// and indices share.
Error forEachMultiIndex(const Tensor &x, const Tensor &indices,
                        unsigned batchDims,
                        function_ref<void(uint64_t, uint64_t)> visit) {
  ArrayRef<int64_t> outer = ArrayRef<int64_t>(indices.shape).drop_back();
  for (unsigned d = 0; d < batchDims; ++d)
    if (x.shape[d] != indices.shape[d])
      return userError("batch dimensions differ: {0} in operand 'x', {1} in "
                       "operand 'indices'",
                       x.shape[d], indices.shape[d]);
  int64_t depth = indices.shape.back();
  uint64_t perBatch = product(outer.drop_front(batchDims));
  uint64_t batchSize =
      product(ArrayRef<int64_t>(x.shape).drop_front(batchDims));
  Extents strides = rowMajorStrides(x.shape);
  for (uint64_t i = 0, n = product(outer); i < n; ++i) {
    uint64_t offset = i / perBatch * batchSize;
    for (int64_t k = 0; k < depth; ++k) {
      unsigned axis = batchDims + k;
      uint64_t position = i * depth + k;
      Expected<int64_t> chosen = resolveIndex(
          indices.intAt(position), x.shape[axis], indices, position, axis);
      if (!chosen)
        return chosen.takeError();
      offset += *chosen * strides[axis];
    }
    visit(offset, i);
  }
  return Error::success();
}

} // namespace

Error evalGather(EvalContext &context) {
  int64_t axis = context.attrs<AxisAttrs>().axis;
  const Tensor &x = context.in(0), &indices = context.in(1);
  ArrayRef<int64_t> shape = x.shape;
  uint64_t outer = product(shape.take_front(axis)),
           inner = product(shape.drop_front(axis + 1)),
           count = indices.numElements();
  for (uint64_t i = 0; i < count; ++i) {
    Expected<int64_t> chosen =
        resolveIndex(indices.intAt(i), shape[axis], indices, i, axis);
    if (!chosen)
      return chosen.takeError();
    for (uint64_t o = 0; o < outer; ++o)
      copyElements(context.out(), (o * count + i) * inner, x,
                   (o * shape[axis] + *chosen) * inner, inner);
  }
  return Error::success();
}

Error evalGatherElements(EvalContext &context) {
  const Tensor &x = context.in(0);
  return forEachElementIndex(x, context.in(1), context.attrs<AxisAttrs>().axis,
                             [&](uint64_t offset, uint64_t i) {
                               copyElements(context.out(), i, x, offset);
                             });
}

Error evalGatherNd(EvalContext &context) {
  int64_t batchDims = context.attrs<GatherNdAttrs>().batchDims;
  const Tensor &x = context.in(0), &indices = context.in(1);
  uint64_t inner = product(
      ArrayRef<int64_t>(x.shape).drop_front(batchDims + indices.shape.back()));
  return forEachMultiIndex(
      x, indices, batchDims, [&](uint64_t offset, uint64_t i) {
        copyElements(context.out(), i * inner, x, offset, inner);
      });
}

Error evalScatterNd(EvalContext &context) {
  ScatterReduction reduction = context.attrs<ScatterNdAttrs>().reduction;
  const Tensor &indices = context.in(1), &updates = context.in(2);
  Tensor &y = context.out();
  y.bytes = context.in(0).bytes;
  uint64_t inner =
      product(ArrayRef<int64_t>(y.shape).drop_front(indices.shape.back()));
  if (updates.numElements() !=
      product(ArrayRef<int64_t>(indices.shape).drop_back()) * inner)
    return userError("operand 'updates' of shape {0} does not fit indices of "
                     "shape {1}",
                     extentsText(updates.shape), extentsText(indices.shape));
  return forEachMultiIndex(y, indices, 0, [&](uint64_t offset, uint64_t i) {
    for (uint64_t k = 0; k < inner; ++k)
      scatterElement(reduction, y, offset + k, updates, i * inner + k);
  });
}

Error evalScatterElements(EvalContext &context) {
  const auto &attrs = context.attrs<ScatterElementsAttrs>();
  const Tensor &indices = context.in(1), &updates = context.in(2);
  Tensor &y = context.out();
  y.bytes = context.in(0).bytes;
  if (updates.shape != indices.shape)
    return userError("operand 'updates' has shape {0}, expected {1} as operand "
                     "'indices'",
                     extentsText(updates.shape), extentsText(indices.shape));
  return forEachElementIndex(
      y, indices, attrs.axis, [&](uint64_t offset, uint64_t i) {
        scatterElement(attrs.reduction, y, offset, updates, i);
      });
}

Error evalRange(EvalContext &context) {
  Tensor &y = context.out();
  withArithmeticType(y.element, [&]<class T>(T) {
    // Integers wrap, so they are computed as unsigned ones.
    using Wide =
        std::conditional_t<std::is_same_v<T, double>, double, uint64_t>;
    Wide start = loadAs<T>(context.in(0), 0),
         delta = loadAs<T>(context.in(1), 0);
    for (uint64_t i = 0; i < y.numElements(); ++i)
      storeAs<T>(y, i, T(start + Wide(i) * delta));
  });
  return Error::success();
}

Error evalOneHot(EvalContext &context) {
  int64_t axis = context.attrs<OneHotAttrs>().axis;
  const Tensor &indices = context.in(0), &offOn = context.in(1);
  Tensor &y = context.out();
  int64_t depth = y.shape[axis];
  uint64_t inner = product(ArrayRef<int64_t>(y.shape).drop_front(axis + 1));
  for (uint64_t i = 0, n = y.numElements(); i < n; ++i)
    copyElements(y, i, offOn, 0);
  for (uint64_t i = 0, n = indices.numElements(); i < n; ++i) {
    int64_t index = indices.isFloatTensor()
                        ? floatToInteger(indices.at(i), ElementType::I64)
                        : indices.intAt(i);
    if (index < -depth || index >= depth)
      continue;
    if (index < 0)
      index += depth;
    copyElements(y, (i / inner * depth + index) * inner + i % inner, offOn, 1);
  }
  return Error::success();
}

Error evalNonZero(EvalContext &context) {
  const Tensor &x = context.in(0);
  std::vector<Extents> found;
  uint64_t i = 0;
  forEachIndex(x.shape, [&](ArrayRef<int64_t> index) {
    bool isSet = x.isFloatTensor() ? x.at(i) != 0 : x.intAt(i) != 0;
    if (isSet)
      found.emplace_back(index);
    ++i;
  });
  StringRef count = *context.attrs<CountAttrs>().count.symbolName();
  auto [it, isNew] = context.env.try_emplace(count, found.size());
  if (!isNew && it->second != int64_t(found.size()))
    return userError("{0} elements are not zero, but the size '{1}' was {2} "
                     "before",
                     found.size(), count, it->second);
  Tensor y(ElementType::I64, {int64_t(x.rank()), int64_t(found.size())});
  for (auto [k, index] : enumerate(found))
    for (unsigned d = 0; d < x.rank(); ++d)
      y.setInt(d * found.size() + k, index[d]);
  context.out() = std::move(y);
  return Error::success();
}

} // namespace tenon::ir
