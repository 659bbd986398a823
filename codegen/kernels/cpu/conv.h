//===- conv.h - convolution -----------------------------------------------===//
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
///   entry   tn::conv<Cfg, Epilogue>(args)          f32, implicit matmul
///           tn::conv_direct<Cfg, Epilogue>(args)   any type; for depthwise f32
///
///   Cfg     static constexpr int spatial              1, 2 or 3
///           static constexpr int64_t groups, channels, filters    G, C, M
///           static constexpr int64_t kernel[spatial], strides[spatial],
///                                    dilations[spatial], pad_low[spatial]
///           using Operands = tn::types<...>           of the epilogue
///           using T                                   conv_direct: element
///           type
///
///   views   0         x    [N, C, spatial...], any strides
///           1         w    [M, C / G, kernel...], contiguous
///           2, 3, ...      epilogue operands, with y's rank and shape
///           last      y    [N, M, spatial...]; each [spatial...] contiguous
///   params  what the epilogue reads with tn::param
///   scratch none (conv: 330 KB of stack)
///
/// The upper padding follows from y's shape. To the epilogue a row is a filter
/// and a column a position: spatial dimensions of an operand must be contiguous
/// together, or all have stride 0. So a bias [1, M, 1...] is load_col, a
/// residual of y's shape load_full. conv calls it with vectors, conv_direct
/// with scalars.
///
/// Numerics: f32 sums in order of (c, t..) (conv), sums in T (conv_direct).
///
/// conv multiplies w, as it lies in the model, by panels of x that are gathered
/// on the stack, 256 rows of K = C / G * kernel by 64 positions at a time. Work
/// items are (n, group, 504 filters, 64 positions), for conv_direct rows of the
/// last spatial dimension of y. Threads take ranges of them.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CPU_CONV_H
#define TENON_KERNELS_CPU_CONV_H

#include "kernels/common/window.h"
#include "kernels/cpu/batch_matmul.h"

namespace tn {
inline namespace TN_FORM {

/// Panels of the matrix [C / G * kernel, positions] that a convolution
/// multiplies by: rows [k0, k0 + k) at positions [col, col + columns).
template <class Cfg>
inline __attribute__((noinline)) void
gather_patches(const tn_view &x, const float *group, const int64_t *positions,
               int64_t k0, int64_t k, int64_t col, int64_t columns,
               float *out) {
  constexpr int64_t volume = kernel_size<Cfg>();
  for (int64_t j = 0; j < columns; j += panel_columns) {
    int64_t width = min_of(panel_columns, columns - j);
    Position<Cfg::spatial> places[panel_columns], t;
    places[0].set(col + j, positions);
    for (int64_t l = 1; l < width; ++l) {
      places[l] = places[l - 1];
      places[l].next(positions);
    }
    for (int64_t i = k0; i < k0 + k; ++i, out += panel_columns) {
      const float *plane = group + i / volume * x.stride[1];
      t.set(i % volume, Cfg::kernel);
      for (int64_t l = 0; l < panel_columns; ++l) {
        int64_t offset;
        bool inside = l < width && meets<Cfg>(x, places[l], t, offset);
        out[l] = inside ? plane[offset] : 0.0f;
      }
    }
  }
}

/// Fills the epilogue's operands for filters of image n: rows are filters.
template <class Cfg>
TN_FN void set_filter_operands(EpilogueArgs &e, const tn_view *v, int64_t n) {
  for (int i = 0; i < Cfg::Operands::count; ++i) {
    const tn_view &o = v[2 + i];
    e.operand[i] = {o.data + n * o.stride[0] * Cfg::Operands::size[i],
                    o.stride[1], o.stride[1 + Cfg::spatial]};
  }
}

template <class Cfg, class Epilogue = Identity> void conv(const tn_args *args) {
  constexpr int last = 2 + Cfg::Operands::count;
  constexpr int64_t filters = Cfg::filters / Cfg::groups;
  constexpr int64_t channels = Cfg::channels / Cfg::groups;
  constexpr int64_t k = channels * kernel_size<Cfg>(), rows = 4 * block_rows;
  const tn_view *v = args->views, &x = v[0], &y = v[last];
  int64_t positions = extent(y, 2, 2 + Cfg::spatial);
  int64_t down = ceil_div(filters, rows);
  int64_t across = ceil_div(positions, block_columns);
  EpilogueArgs e;
  e.params = args->params;
  Product p = {};
  p.a_row = k;
  p.a_k = 1;
  p.ldc = y.stride[1];
  p.n = positions;
  p.k = k;
  Range mine = share(args, y.shape[0] * Cfg::groups * down * across);
  for (int64_t item = mine.begin; item < mine.end; ++item) {
    int64_t block = item % across, row = item / across % down * rows;
    int64_t g = item / across / down % Cfg::groups;
    int64_t n = item / across / down / Cfg::groups;
    const float *group =
        (const float *)x.data + n * x.stride[0] + g * channels * x.stride[1];
    // Rows count from the first filter, so that the epilogue sees them so.
    p.a = (const float *)v[1].data;
    p.c = (float *)y.data + n * y.stride[0];
    p.m = (g + 1) * filters;
    set_filter_operands<Cfg>(e, v, n);
    multiply_block<rows, Epilogue>(
        p, g * filters + row, block * block_columns, e,
        [&](int64_t k0, int64_t count, int64_t col, int64_t columns,
            float *out) {
          gather_patches<Cfg>(x, group, y.shape + 2, k0, count, col, columns,
                              out);
        });
  }
}

template <class Cfg, class Epilogue = Identity>
void conv_direct(const tn_args *args) {
  using T = typename Cfg::T;
  constexpr int spatial = Cfg::spatial, last = 2 + Cfg::Operands::count;
  constexpr int64_t filters = Cfg::filters / Cfg::groups;
  constexpr int64_t channels = Cfg::channels / Cfg::groups;
  constexpr int64_t volume = kernel_size<Cfg>();
  constexpr int inner = spatial - 1;
  constexpr int64_t step = Cfg::strides[inner], chunk = 128;
  const tn_view *v = args->views, &x = v[0], &y = v[last];
  int64_t lines = extent(y, 2, 1 + spatial), width = y.shape[1 + spatial];
  int64_t size = x.shape[1 + spatial], x_step = x.stride[1 + spatial];
  EpilogueArgs e;
  e.params = args->params;
  e.lanes = 1;
  Range mine = share(args, y.shape[0] * Cfg::filters * lines);
  for (int64_t item = mine.begin; item < mine.end; ++item) {
    int64_t line = item % lines, m = item / lines % Cfg::filters;
    int64_t n = item / lines / Cfg::filters;
    const T *group = (const T *)x.data + n * x.stride[0] +
                     m / filters * channels * x.stride[1];
    const T *w = (const T *)v[1].data + m * channels * volume;
    T *out = (T *)y.data + n * y.stride[0] + m * y.stride[1] + line * width;
    set_filter_operands<Cfg>(e, v, n);
    for (int64_t from = 0; from < width; from += chunk) {
      int64_t count = min_of(chunk, width - from);
      T sums[chunk] = {};
      for (int64_t i = 0; i < channels * volume; ++i) {
        Position<spatial> p, t;
        p.set(line * width + from, y.shape + 2);
        t.set(i % volume, Cfg::kernel);
        // Where the line of x begins that this kernel element walks along; the
        // last dimension is bounded below.
        int64_t first = p.at[inner] * step +
                        t.at[inner] * Cfg::dilations[inner] -
                        Cfg::pad_low[inner];
        p.at[inner] = t.at[inner] = 0;
        int64_t offset = 0;
        bool inside = true;
        for (int d = 0; d < inner; ++d) {
          int64_t a = p.at[d] * Cfg::strides[d] + t.at[d] * Cfg::dilations[d] -
                      Cfg::pad_low[d];
          inside = inside && a >= 0 && a < x.shape[2 + d];
          offset += a * x.stride[2 + d];
        }
        if (!inside)
          continue;
        const T *in = group + i / volume * x.stride[1] + offset;
        int64_t begin = first >= 0 ? 0 : ceil_div(-first, step);
        int64_t end = first >= size ? 0 : ceil_div(size - first, step);
        for (int64_t j = begin; j < min_of(count, end); ++j)
          sums[j] =
              tn_add(sums[j], tn_mul(w[i], in[(first + j * step) * x_step]));
      }
      for (int64_t j = 0; j < count; ++j)
        out[from + j] =
            Epilogue::template apply<T>(sums[j], e, m, line * width + from + j);
    }
  }
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CPU_CONV_H
