//===- Reduce.cpp - reference semantics of reductions --------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/OpDef.h"
#include "ir/eval/Loops.h"
#include "ir/support/Diag.h"
#include <cmath>
#include <limits>

using namespace tenon;
using namespace tenon::ir;

namespace {

using Floats = llvm::ArrayRef<double>;
using Integers = llvm::ArrayRef<int64_t>;
constexpr double infinity = std::numeric_limits<double>::infinity();

//===----------------------------------------------------------------------===//
// Each reduction of a list, of floats and of integers
//===----------------------------------------------------------------------===//

template <double (*term)(double)> double sumOf(Floats values) {
  double sum = 0;
  for (double value : values)
    sum += term(value);
  return sum;
}

/// Integers wrap, so they are added as unsigned ones.
template <uint64_t (*term)(int64_t)> int64_t wrappedSum(Integers values) {
  uint64_t sum = 0;
  for (int64_t value : values)
    sum += term(value);
  return static_cast<int64_t>(sum);
}

double plain(double x) { return x; }
double square(double x) { return x * x; }
double magnitude(double x) { return std::fabs(x); }
uint64_t plainInt(int64_t x) { return static_cast<uint64_t>(x); }
uint64_t squareInt(int64_t x) { return plainInt(x) * plainInt(x); }
uint64_t magnitudeInt(int64_t x) { return x < 0 ? -plainInt(x) : plainInt(x); }

double mean(Floats values) { return sumOf<plain>(values) / values.size(); }
int64_t meanInt(Integers values) {
  if (values.empty())
    return 0;
  return wrappedSum<plainInt>(values) / static_cast<int64_t>(values.size());
}

double product(Floats values) {
  double result = 1;
  for (double value : values)
    result *= value;
  return result;
}
int64_t productInt(Integers values) {
  uint64_t result = 1;
  for (int64_t value : values)
    result *= plainInt(value);
  return static_cast<int64_t>(result);
}

double largest(Floats values) {
  double result = -infinity;
  for (double value : values)
    if (value > result || std::isnan(value))
      result = value;
    else if (std::isnan(result))
      break;
  return result;
}
double smallest(Floats values) {
  double result = infinity;
  for (double value : values)
    if (value < result || std::isnan(value))
      result = value;
    else if (std::isnan(result))
      break;
  return result;
}

double norm2(Floats values) { return std::sqrt(sumOf<square>(values)); }
double logSum(Floats values) { return std::log(sumOf<plain>(values)); }

double logSumExp(Floats values) {
  double top = largest(values);
  if (!std::isfinite(top))
    return top; // nothing, only -inf, +inf, or NaN
  double sum = 0;
  for (double value : values)
    sum += std::exp(value - top);
  return top + std::log(sum);
}

/// A reduction whose integer form is the float form, truncated; a result that
/// no integer can hold (the logarithm of 0) is the lowest.
template <double (*reduce)(Floats)> int64_t viaDouble(Integers values) {
  std::vector<double> floats(values.begin(), values.end());
  double result = reduce(floats);
  if (!(std::fabs(result) < 0x1p63))
    return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(result);
}

struct Reduction {
  OpKind kind;
  double (*ofFloats)(Floats);
  int64_t (*ofIntegers)(Integers); ///< null: extremes, see extremeOf
};

constexpr Reduction reductions[] = {
    {OpKind::ReduceSum, sumOf<plain>, wrappedSum<plainInt>},
    {OpKind::ReduceMean, mean, meanInt},
    {OpKind::ReduceMax, largest, nullptr},
    {OpKind::ReduceMin, smallest, nullptr},
    {OpKind::ReduceProd, product, productInt},
    {OpKind::ReduceL1, sumOf<magnitude>, wrappedSum<magnitudeInt>},
    {OpKind::ReduceL2, norm2, viaDouble<norm2>},
    {OpKind::ReduceSumSquare, sumOf<square>, wrappedSum<squareInt>},
    {OpKind::ReduceLogSum, logSum, viaDouble<logSum>},
    {OpKind::ReduceLogSumExp, logSumExp, viaDouble<logSumExp>},
};

const Reduction &reductionOf(OpKind kind) {
  return *llvm::find_if(reductions,
                        [&](const Reduction &r) { return r.kind == kind; });
}

//===----------------------------------------------------------------------===//
// Extremes of integers, whose order depends on the type
//===----------------------------------------------------------------------===//

/// Maps 64-bit patterns so that signed comparison orders them as \p element
/// does; its own inverse.
int64_t orderKey(ElementType element, int64_t value) {
  if (element == ElementType::U64)
    return value ^ std::numeric_limits<int64_t>::min();
  return value;
}

int64_t extremeOf(Integers values, ElementType element, bool wantLargest) {
  int64_t best = orderKey(element, integerLimit(element, wantLargest));
  for (int64_t value : values) {
    int64_t key = orderKey(element, value);
    best = wantLargest ? std::max(best, key) : std::min(best, key);
  }
  return orderKey(element, best);
}

//===----------------------------------------------------------------------===//
// Walking
//===----------------------------------------------------------------------===//

/// Calls \p visit(i, row) for each result element i with the elements of x that
/// it reduces, in row-major order.
template <class T, class Visit>
void forEachRow(const Tensor &x, llvm::ArrayRef<int64_t> axes, Visit visit) {
  Extents strides = rowMajorStrides(x.shape), keptShape, keptStrides,
          reducedShape, reducedStrides;
  for (unsigned d = 0; d != x.rank(); ++d) {
    bool reduced = llvm::is_contained(axes, d);
    (reduced ? reducedShape : keptShape).push_back(x.shape[d]);
    (reduced ? reducedStrides : keptStrides).push_back(strides[d]);
  }
  std::vector<T> values = loadAll<T>(x), row;
  uint64_t next = 0;
  forEachOffset<1>(keptShape, {keptStrides}, [&](std::array<int64_t, 1> base) {
    row.clear();
    forEachOffset<1>(reducedShape, {reducedStrides},
                     [&](std::array<int64_t, 1> offset) {
                       row.push_back(values[base[0] + offset[0]]);
                     });
    visit(next++, row);
  });
}

/// The index of the first (last) best element. As in NumPy a NaN is better than
/// everything.
template <class T, class Better>
int64_t indexOfBest(const std::vector<T> &row, bool last, Better better) {
  size_t best = 0;
  for (size_t i = 1; i != row.size(); ++i)
    if (better(row[i], row[best]) || (last && !better(row[best], row[i])))
      best = i;
  return static_cast<int64_t>(best);
}

template <class T, class Key>
void argReduce(EvalContext &context, Key key) {
  const auto &attrs = context.attrs<ArgReduceAttrs>();
  bool wantLargest = context.op.kind() == OpKind::ArgMax;
  auto better = [&](T a, T b) {
    if (a != a || b != b)
      return a != a && b == b;
    return wantLargest ? key(a) > key(b) : key(a) < key(b);
  };
  forEachRow<T>(context.in(0), {attrs.axis},
                [&](uint64_t i, const std::vector<T> &row) {
                  context.out().setInt(
                      i, indexOfBest(row, attrs.selectLast, better));
                });
}

} // namespace

llvm::Error tenon::ir::evalReduce(EvalContext &context) {
  const Tensor &x = context.in(0);
  Tensor &y = context.out();
  OpKind kind = context.op.kind();
  const Reduction &reduction = reductionOf(kind);
  const Ints &axes = context.attrs<ReduceAttrs>().axes;
  if (x.isFloatTensor()) {
    forEachRow<double>(x, axes, [&](uint64_t i, Floats row) {
      y.set(i, reduction.ofFloats(row));
    });
    return llvm::Error::success();
  }
  forEachRow<int64_t>(x, axes, [&](uint64_t i, Integers row) {
    y.setInt(i, reduction.ofIntegers
                    ? reduction.ofIntegers(row)
                    : extremeOf(row, x.element, kind == OpKind::ReduceMax));
  });
  return llvm::Error::success();
}

llvm::Error tenon::ir::evalArgReduce(EvalContext &context) {
  const Tensor &x = context.in(0);
  int64_t axis = context.attrs<ArgReduceAttrs>().axis;
  if (x.shape[axis] == 0 && context.out().numElements() != 0)
    return userError("there is no extreme of nothing: axis {0} of {1} is empty",
                     axis, extentsText(x.shape));
  if (x.isFloatTensor())
    argReduce<double>(context, [](double value) { return value; });
  else
    argReduce<int64_t>(context, [&](int64_t value) {
      return orderKey(x.element, value);
    });
  return llvm::Error::success();
}
