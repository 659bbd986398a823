//===- Contraction.cpp - reference semantics of matmul and conv ----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/OpDef.h"
#include "ir/eval/Evaluator.h"
#include "ir/eval/Loops.h"
#include "ir/support/Diag.h"

using namespace tenon;
using namespace tenon::ir;

namespace {

/// Runs the epilogue, if there is one, on \p sum and the operands from 2 on.
llvm::Error applyEpilogue(EvalContext &context, Tensor sum) {
  const Block *region = context.op.region();
  if (!region) {
    context.out() = std::move(sum);
    return llvm::Error::success();
  }
  Extents shape = sum.shape;
  std::vector<Tensor> arguments;
  arguments.push_back(std::move(sum));
  for (const Tensor *extra : context.operands.drop_front(2)) {
    if (broadcastExtents(shape, extra->shape) != shape)
      return userError("an extra operand of shape {0} does not broadcast to "
                       "the result {1}",
                       extentsText(extra->shape), extentsText(shape));
    arguments.push_back(*extra);
  }
  llvm::Expected<std::vector<Tensor>> yielded =
      evaluateRegion(*region, std::move(arguments));
  if (!yielded)
    return yielded.takeError();
  context.out() = broadcastTo(yielded->front(), shape);
  return llvm::Error::success();
}

/// The sizes of one product [rows, common] x [common, columns].
struct MatMulSizes {
  int64_t rows, common, columns;
};

/// y = a b, accumulating in T: double, or uint64_t for integers, which wrap.
/// Rows go in blocks, so that b is read once for several of them.
template <class T>
void multiply(const MatMulSizes &sizes, const T *a, const T *b, Tensor &y,
              int64_t offset) {
  constexpr int64_t block = 8;
  std::vector<T> sums(block * sizes.columns);
  for (int64_t first = 0; first < sizes.rows; first += block) {
    int64_t count = std::min(block, sizes.rows - first);
    std::fill(sums.begin(), sums.end(), T(0));
    for (int64_t k = 0; k != sizes.common; ++k) {
      const T *row = b + k * sizes.columns;
      for (int64_t i = 0; i != count; ++i) {
        T factor = a[(first + i) * sizes.common + k];
        T *sum = sums.data() + i * sizes.columns;
        for (int64_t j = 0; j != sizes.columns; ++j)
          sum[j] += factor * row[j];
      }
    }
    for (int64_t i = 0; i != count * sizes.columns; ++i)
      storeAs<T>(y, offset + first * sizes.columns + i, sums[i]);
  }
}

llvm::ArrayRef<int64_t> batchOf(const Tensor &tensor) {
  llvm::ArrayRef<int64_t> shape = tensor.shape;
  return shape.drop_back(std::min<size_t>(shape.size(), 2));
}

Extents scaled(Extents strides, int64_t factor) {
  for (int64_t &stride : strides)
    stride *= factor;
  return strides;
}

template <class T>
llvm::Error matMul(const EvalContext &context, Tensor &sum) {
  const Tensor &a = context.in(0), &b = context.in(1);
  MatMulSizes sizes{a.rank() == 1 ? 1 : a.shape[a.rank() - 2], a.shape.back(),
                    b.rank() == 1 ? 1 : b.shape.back()};
  if (int64_t rows = b.shape[b.rank() == 1 ? 0 : b.rank() - 2];
      rows != sizes.common)
    return userError("contracting dimensions differ: {0} in operand 'a', {1} in "
                     "operand 'b'",
                     sizes.common, rows);
  std::optional<Extents> batch = broadcastExtents(batchOf(a), batchOf(b));
  if (!batch)
    return userError("batch dimensions do not broadcast: {0} in operand 'a', "
                     "{1} in operand 'b'",
                     extentsText(a.shape), extentsText(b.shape));
  std::vector<T> aValues = loadAll<T>(a), bValues = loadAll<T>(b);
  int64_t offset = 0;
  forEachOffset<2>(*batch,
                   {scaled(broadcastStrides(batchOf(a), *batch),
                           sizes.rows * sizes.common),
                    scaled(broadcastStrides(batchOf(b), *batch),
                           sizes.common * sizes.columns)},
                   [&](const std::array<int64_t, 2> &at) {
                     multiply<T>(sizes, aValues.data() + at[0],
                                 bValues.data() + at[1], sum, offset);
                     offset += sizes.rows * sizes.columns;
                   });
  return llvm::Error::success();
}

/// Copies what the window at \p position covers of \p channels channels from
/// \p x (at the first of them) to \p patch; 0 where it is padding.
void gatherPatch(const ConvAttrs &attrs, llvm::ArrayRef<int64_t> kernel,
                 llvm::ArrayRef<int64_t> spatial,
                 llvm::ArrayRef<int64_t> position, const double *x,
                 int64_t channels, std::vector<double> &patch) {
  Extents strides = rowMajorStrides(spatial);
  int64_t planeSize = 1;
  for (int64_t dim : spatial)
    planeSize *= dim;
  patch.clear();
  for (int64_t c = 0; c != channels; ++c)
    forEachIndex(kernel, [&](llvm::ArrayRef<int64_t> tap) {
      int64_t offset = c * planeSize;
      bool exists = true;
      for (size_t d = 0; d != tap.size(); ++d) {
        int64_t at = position[d] * attrs.strides[d] - attrs.padLow[d] +
                     tap[d] * attrs.dilations[d];
        exists &= at >= 0 && at < spatial[d];
        offset += at * strides[d];
      }
      patch.push_back(exists ? x[offset] : 0.0);
    });
}

} // namespace

llvm::Error tenon::ir::evalMatMul(EvalContext &context) {
  const Tensor &a = context.in(0);
  Tensor sum(a.element, context.out().shape);
  if (llvm::Error error = a.isFloatTensor() ? matMul<double>(context, sum)
                                            : matMul<uint64_t>(context, sum))
    return error;
  return applyEpilogue(context, std::move(sum));
}

llvm::Error tenon::ir::evalConv(EvalContext &context) {
  const Tensor &x = context.in(0), &w = context.in(1);
  const auto &attrs = context.attrs<ConvAttrs>();
  int64_t channels = w.shape[1], filters = w.shape[0] / attrs.groups;
  if (x.shape[1] != channels * attrs.groups ||
      w.shape[0] != filters * attrs.groups)
    return userError("{0} channels and {1} filters of {2} channels do not make "
                     "{3} groups",
                     x.shape[1], w.shape[0], channels, attrs.groups);
  llvm::ArrayRef<int64_t> kernel = llvm::ArrayRef(w.shape).drop_front(2),
                          spatial = llvm::ArrayRef(x.shape).drop_front(2),
                          places =
                              llvm::ArrayRef(context.out().shape).drop_front(2);
  std::vector<double> xValues = loadAll<double>(x), wValues = loadAll<double>(w),
                      patch;
  int64_t planeSize = 1, placeCount = 1, patchSize = channels;
  for (size_t d = 0; d != kernel.size(); ++d) {
    planeSize *= spatial[d];
    placeCount *= places[d];
    patchSize *= kernel[d];
  }
  Tensor sum(x.element, context.out().shape);
  for (int64_t n = 0; n != x.shape[0]; ++n)
    for (int64_t g = 0; g != attrs.groups; ++g) {
      const double *source =
          xValues.data() + (n * attrs.groups + g) * channels * planeSize;
      int64_t target = (n * attrs.groups + g) * filters * placeCount;
      forEachIndex(places, [&](llvm::ArrayRef<int64_t> position) {
        gatherPatch(attrs, kernel, spatial, position, source, channels, patch);
        for (int64_t m = 0; m != filters; ++m) {
          const double *weights =
              wValues.data() + (g * filters + m) * patchSize;
          double total = 0;
          for (int64_t i = 0; i != patchSize; ++i)
            total += patch[i] * weights[i];
          sum.set(target + m * placeCount, total);
        }
        ++target;
      });
    }
  return applyEpilogue(context, std::move(sum));
}
