//===- conv.cuh - convolution, one thread an element
//---------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// y[n, m, p..] = epilogue(sum over c, t.. of
///     x[n, g C/G + c, p * stride + t * dilation - pad_low ..] * w[m, c, t..])
/// with g = m / (M / G): ONNX's convolution over 1, 2 or 3 spatial dimensions.
///
///   entry   tn::conv<Cfg, Epilogue>(args)
///   Cfg     as kernels/cpu/conv.h's conv_direct, but for T
///           using A, B, C, Sum          element types of x, w, y and the sums
///   views   x, w (contiguous), epilogue operands, y
///   grid    any; threads step over the elements of y
///
/// To the epilogue a row is a filter and a column a position. Sums are in
/// order of (c, t..).
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CUDA_CONV_CUH
#define TENON_KERNELS_CUDA_CONV_CUH

#include "kernels/common/window.h"
#include "kernels/cuda/epilogue.cuh"

namespace tn {
inline namespace TN_FORM {

template <class Cfg, class Epilogue = Identity>
TN_FN void conv(const tn_args *args) {
  using A = typename Cfg::A;
  using B = typename Cfg::B;
  using C = typename Cfg::C;
  using Sum = typename Cfg::Sum;
  constexpr int spatial = Cfg::spatial, last = 2 + Cfg::Operands::count;
  constexpr int64_t filters = Cfg::filters / Cfg::groups;
  constexpr int64_t channels = Cfg::channels / Cfg::groups;
  constexpr int64_t volume = kernel_size<Cfg>();
  const tn_view *v = args->views, &x = v[0], &y = v[last];
  int64_t positions = extent(y, 2, 2 + spatial);
  EpilogueArgs e;
  e.params = args->params;
  Range mine = share(args, y.shape[0] * Cfg::filters * positions);
  for (int64_t item = mine.begin; item < mine.end; item += mine.step) {
    int64_t at = item % positions, m = item / positions % Cfg::filters;
    int64_t n = item / positions / Cfg::filters;
    const A *group = (const A *)x.data + n * x.stride[0] +
                     m / filters * channels * x.stride[1];
    const B *w = (const B *)v[1].data + m * channels * volume;
    Position<spatial> p, t;
    p.set(at, y.shape + 2);
    Sum sum = 0;
    for (int64_t c = 0; c < channels; ++c, group += x.stride[1])
      for (int64_t i = 0; i < volume; ++i) {
        int64_t offset;
        t.set(i, Cfg::kernel);
        if (meets<Cfg>(x, p, t, offset))
          sum = tn_add(sum, tn_mul(tn_cast<Sum>(w[c * volume + i]),
                                   tn_cast<Sum>(group[offset])));
      }
    TN_UNROLL
    for (int i = 0; i < Cfg::Operands::count; ++i) {
      const tn_view &o = v[2 + i];
      e.operand[i] = {o.data + n * o.stride[0] * Cfg::Operands::size[i],
                      o.stride[1], o.stride[1 + spatial]};
    }
    ((C *)y.data)[n * y.stride[0] + m * y.stride[1] + at] =
        tn_cast<C>(Epilogue::apply(sum, e, m, at));
  }
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CUDA_CONV_CUH
