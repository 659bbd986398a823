//===- Scan.cpp - reference semantics of running ops and top_k -----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/OpDef.h"
#include "ir/eval/Elements.h"
#include "ir/eval/Loops.h"
#include "ir/support/Diag.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

using namespace llvm;

namespace tenon::ir {

namespace {

/// The lines of a tensor along one axis: element k of a line is at
/// start + k * stride.
struct Lines {
  uint64_t count = 1, length, stride = 1;

  Lines(ArrayRef<int64_t> shape, int64_t axis) : length(shape[axis]) {
    for (int64_t extent : shape.take_front(axis))
      count *= extent;
    for (int64_t extent : shape.drop_front(axis + 1))
      stride *= extent;
    count *= stride;
  }
  uint64_t start(uint64_t line) const {
    return line / stride * stride * length + line % stride;
  }
};

} // namespace

namespace {

/// What \p combine makes of all elements up to each one, from \p start on.
template <class Combine>
Error evalRunning(EvalContext &context, int start, Combine combine) {
  const auto &attrs = context.attrs<CumSumAttrs>();
  const Tensor &x = context.in(0);
  Tensor &y = context.out();
  Lines lines(x.shape, attrs.axis);
  withArithmeticType(x.element, [&]<class T>(T) {
    // Integers wrap, so they are combined as unsigned ones.
    using Wide =
        std::conditional_t<std::is_same_v<T, double>, double, uint64_t>;
    for (uint64_t line = 0; line < lines.count; ++line) {
      Wide sum = start;
      for (uint64_t k = 0; k < lines.length; ++k) {
        uint64_t step = attrs.reverse ? lines.length - 1 - k : k;
        uint64_t at = lines.start(line) + step * lines.stride;
        Wide value = Wide(loadAs<T>(x, at));
        Wide next = combine(sum, value);
        storeAs<T>(y, at, T(attrs.exclusive ? sum : next));
        sum = next;
      }
    }
  });
  return Error::success();
}

} // namespace

Error evalCumSum(EvalContext &context) {
  return evalRunning(context, 0, [](auto a, auto b) { return a + b; });
}

Error evalCumProd(EvalContext &context) {
  return evalRunning(context, 1, [](auto a, auto b) { return a * b; });
}

Error evalGreedyKeep(EvalContext &context) {
  const Tensor &drops = context.in(0), &candidates = context.in(1);
  Tensor &y = context.out();
  uint64_t n = y.shape.back();
  for (uint64_t j = 0; j < y.numElements(); ++j) {
    bool keep = candidates.intAt(j) != 0;
    for (uint64_t i = j - j % n; i < j && keep; ++i)
      keep = !(y.intAt(i) && drops.intAt(i * n + j % n));
    y.setInt(j, keep);
  }
  return Error::success();
}

namespace {

/// A total order in which NaN stands above all numbers.
template <class T> bool isAbove(T a, T b) {
  if (b != b)
    return false;
  return a != a || a > b;
}

template <class T> void topKLine(EvalContext &context, uint64_t line) {
  const auto &attrs = context.attrs<TopKAttrs>();
  const Tensor &x = context.in(0);
  Lines from(x.shape, attrs.axis), to(context.out().shape, attrs.axis);
  std::vector<T> values(from.length);
  for (uint64_t k = 0; k < from.length; ++k)
    values[k] = loadAs<T>(x, from.start(line) + k * from.stride);
  std::vector<uint64_t> order(from.length);
  std::iota(order.begin(), order.end(), 0);
  // Stable, so that of equal values the one with the lower index comes first.
  llvm::stable_sort(order, [&](uint64_t i, uint64_t j) {
    return attrs.largest ? isAbove(values[i], values[j])
                         : isAbove(values[j], values[i]);
  });
  for (uint64_t k = 0; k < to.length; ++k) {
    uint64_t at = to.start(line) + k * to.stride;
    copyElements(context.out(0), at, x,
                 from.start(line) + order[k] * from.stride);
    context.out(1).setInt(at, order[k]);
  }
}

} // namespace

/// NaN counts as larger than every number, as it does for sorting in NumPy.
/// The result is sorted also where `sorted` doesn't ask for it.
Error evalTopK(EvalContext &context) {
  const auto &attrs = context.attrs<TopKAttrs>();
  int64_t k = context.out().shape[attrs.axis];
  const Tensor &x = context.in(0);
  if (k > x.shape[attrs.axis])
    return userError(
        "k is {0}, expected at most {1}, the size of dimension {2} "
        "of operand 'x'",
        k, x.shape[attrs.axis], attrs.axis);
  Lines lines(x.shape, attrs.axis);
  withArithmeticType(x.element, [&]<class T>(T) {
    for (uint64_t line = 0; line < lines.count; ++line)
      topKLine<T>(context, line);
  });
  return Error::success();
}

} // namespace tenon::ir
