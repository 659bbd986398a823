//===- Pool.cpp - reference semantics of pooling -------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/OpDef.h"
#include "ir/eval/Loops.h"
#include <limits>

using namespace tenon;
using namespace tenon::ir;

namespace {

using Index = llvm::ArrayRef<int64_t>;

/// The spatial shape of x[N, C, spatial...] and what surrounds it.
struct Geometry {
  explicit Geometry(const Tensor &x)
      : planes(x.shape[0] * x.shape[1]),
        shape(x.shape.begin() + 2, x.shape.end()),
        strides(rowMajorStrides(shape)) {
    for (int64_t dim : shape)
      planeSize *= dim;
  }
  int64_t planes, planeSize = 1;
  Extents shape, strides;
};

/// What one window covers.
struct Window {
  /// Offsets within a plane of the elements that exist, in row-major order.
  std::vector<int64_t> offsets;
  /// Places inside the padded input: those of `offsets` and padding. With
  /// ceil_mode a window may reach beyond the padding; that doesn't count.
  int64_t padded = 0;
};

Window windowAt(const PoolAttrs &attrs, const Geometry &in, Index position) {
  Window window;
  forEachIndex(attrs.kernel, [&](Index tap) {
    int64_t offset = 0;
    bool exists = true, padded = true;
    for (size_t d = 0; d != tap.size(); ++d) {
      int64_t at = position[d] * attrs.strides[d] - attrs.padLow[d] +
                   tap[d] * attrs.dilations[d];
      exists &= at >= 0 && at < in.shape[d];
      padded &= at < in.shape[d] + attrs.padHigh[d];
      offset += at * in.strides[d];
    }
    if (exists)
      window.offsets.push_back(offset);
    window.padded += padded;
  });
  return window;
}

/// Calls \p visit(result element, plane, window) for every window.
template <class Visit>
void forEachWindow(EvalContext &context, const Geometry &in, Visit visit) {
  const Tensor &y = context.out();
  Geometry out(y);
  int64_t place = 0;
  forEachIndex(out.shape, [&](Index position) {
    Window window = windowAt(context.attrs<PoolAttrs>(), in, position);
    for (int64_t plane = 0; plane != in.planes; ++plane)
      visit(plane * out.planeSize + place, plane, window);
    ++place;
  });
}

/// The flat index of a plane's element when the first spatial dimension moves
/// fastest.
int64_t columnMajorOffset(const Geometry &in, int64_t offset) {
  int64_t result = 0, stride = 1;
  for (size_t d = 0; d != in.shape.size(); ++d) {
    result += offset / in.strides[d] % in.shape[d] * stride;
    stride *= in.shape[d];
  }
  return result;
}

template <class T> void maxPool(EvalContext &context, T lowest) {
  const Tensor &x = context.in(0);
  Geometry in(x);
  bool columnMajor = context.attrs<PoolAttrs>().columnMajor;
  forEachWindow(context, in, [&](int64_t i, int64_t plane, const Window &w) {
    int64_t base = plane * in.planeSize;
    int64_t best = -1;
    T bestValue = lowest;
    for (int64_t offset : w.offsets) {
      T value = loadAs<T>(x, base + offset);
      // The first of equals; a NaN wins and stays.
      if (best >= 0 && !(value > bestValue) &&
          !(value != value && bestValue == bestValue))
        continue;
      if (bestValue != bestValue)
        continue;
      best = offset;
      bestValue = value;
    }
    storeAs<T>(context.out(0), i, bestValue);
    if (best >= 0)
      best = base + (columnMajor ? columnMajorOffset(in, best) : best);
    context.out(1).setInt(i, best);
  });
}

} // namespace

/// A window that covers nothing but padding gives the lowest value and index
/// -1.
llvm::Error tenon::ir::evalMaxPool(EvalContext &context) {
  if (context.in(0).isFloatTensor())
    maxPool(context, -std::numeric_limits<double>::infinity());
  else
    maxPool(context, integerLimit(context.in(0).element, /*lowest=*/true));
  return llvm::Error::success();
}

/// A window that covers nothing but padding gives 0.
llvm::Error tenon::ir::evalAveragePool(EvalContext &context) {
  const Tensor &x = context.in(0);
  Geometry in(x);
  bool countPadding = context.attrs<PoolAttrs>().countIncludePad;
  forEachWindow(context, in, [&](int64_t i, int64_t plane, const Window &w) {
    double sum = 0;
    for (int64_t offset : w.offsets)
      sum += x.at(plane * in.planeSize + offset);
    int64_t count =
        countPadding ? w.padded : static_cast<int64_t>(w.offsets.size());
    context.out().set(i, count ? sum / count : 0.0);
  });
  return llvm::Error::success();
}
