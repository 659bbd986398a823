//===- pool.h - pooling over windows --------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// y[n, c, p..] from the elements of x[n, c, ..] in the window of position p:
/// p * stride + t * dilation - pad_low for 0 <= t < kernel, where that lies
/// within x. 1, 2 or 3 spatial dimensions, any strides of views.
///
///   entry   tn::max_pool<Cfg>(args)        the greatest; NaN wins; a window of
///                                          padding alone: the lowest value
///           tn::average_pool<Cfg>(args)    the mean; such a window: 0
///           tn::lp_pool<Cfg>(args)         (sum |x|^norm)^(1/norm)
///
///   Cfg     using T                             element type; average_pool and
///                                               lp_pool: float or double
///           static constexpr int spatial        1, 2 or 3
///           static constexpr int64_t kernel[spatial], strides[spatial],
///                    dilations[spatial], pad_low[spatial], pad_high[spatial]
///           max_pool:
///           static constexpr bool has_indices   also the index of the greatest
///           static constexpr bool column_major  count it so that the first
///                                               spatial dimension moves
///                                               fastest
///           average_pool:
///           static constexpr bool count_include_pad   divide by the elements
///                                               within x and its padding, not
///                                               within x alone
///           lp_pool:
///           static constexpr int norm
///
///   views   x [N, C, spatial...], y [N, C, out...], indices? i64 as y
///   params  none
///   scratch none
///
/// An index counts elements of the whole of x, row-major; the first of equals
/// wins, the first NaN over all; -1 for a window of padding alone. ceil_mode is
/// no business of the kernel: y's shape says how many windows there are.
/// average_pool and lp_pool sum in f64. Threads take ranges of elements of y.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_COMMON_POOL_H
#define TENON_KERNELS_COMMON_POOL_H

#include "kernels/common/scalar_ops.h"
#include "kernels/common/window.h"

namespace tn {
inline namespace TN_FORM {

/// Calls f(offset, index) for the elements of x's plane in the window at `p`;
/// `index` counts the plane's elements. Returns how many positions of the
/// window lie within x and its padding.
template <class Cfg, class F>
TN_FN int64_t each_in_window(const tn_view &x, const Position<Cfg::spatial> &p,
                             F f) {
  constexpr int spatial = Cfg::spatial;
  Position<spatial> t = {};
  int64_t padded = 0;
  for (int64_t n = kernel_size<Cfg>(); n > 0; --n, t.next(Cfg::kernel)) {
    int64_t offset = 0, row = 0, column = 0, pitch = 1;
    bool inside = true, within = true;
    for (int d = 0; d < spatial; ++d) {
      int64_t i = p.at[d] * Cfg::strides[d] + t.at[d] * Cfg::dilations[d] -
                  Cfg::pad_low[d];
      inside = inside && i >= 0 && i < x.shape[2 + d];
      within = within && i < x.shape[2 + d] + Cfg::pad_high[d];
      offset += i * x.stride[2 + d];
      row = row * x.shape[2 + d] + i;
      column += i * pitch;
      pitch *= x.shape[2 + d];
    }
    padded += within;
    if (inside)
      f(offset, row, column);
  }
  return padded;
}

/// Calls f(plane of x, plane's number, position, offset by y's view,
/// element) for this thread's elements of y.
template <class Cfg, class F>
TN_FN void each_output(const tn_args *args, const tn_view &y, F f) {
  constexpr int rank = 2 + Cfg::spatial;
  const tn_view &x = args->views[0];
  int64_t positions = extent(y, 2, rank);
  Range mine = share(args, extent(y, 0, rank));
  for (int64_t e = mine.begin; e < mine.end; e += mine.step) {
    Position<Cfg::spatial> p;
    int64_t plane = e / positions;
    p.set(e - plane * positions, y.shape + 2);
    int64_t n = plane / y.shape[1], c = plane - n * y.shape[1];
    f((const typename Cfg::T *)x.data + n * x.stride[0] + c * x.stride[1],
      plane, p, e);
  }
}

template <class Cfg> void max_pool(const tn_args *args) {
  using T = typename Cfg::T;
  constexpr int rank = 2 + Cfg::spatial;
  const tn_view &x = args->views[0], &y = args->views[1];
  int64_t plane_size = extent(x, 2, rank);
  each_output<Cfg>(
      args, y,
      [&](const T *in, int64_t plane, const Position<Cfg::spatial> &p,
          int64_t e) {
        T best = tn_lowest<T>();
        int64_t where = -1;
        each_in_window<Cfg>(
            x, p, [&](int64_t offset, int64_t row, int64_t column) {
              T value = in[offset];
              bool wins = value > best || (value != value && best == best);
              if (best != best || (where >= 0 && !wins))
                return;
              best = value;
              where = plane * plane_size + (Cfg::column_major ? column : row);
            });
        ((T *)y.data)[row_offset(y, rank, e)] = best;
        if constexpr (Cfg::has_indices) {
          const tn_view &indices = args->views[2];
          tn_view at = {nullptr, y.shape, indices.stride};
          ((int64_t *)indices.data)[row_offset(at, rank, e)] = where;
        }
      });
}

template <class Cfg> void average_pool(const tn_args *args) {
  using T = typename Cfg::T;
  const tn_view &x = args->views[0], &y = args->views[1];
  each_output<Cfg>(
      args, y,
      [&](const T *in, int64_t, const Position<Cfg::spatial> &p, int64_t e) {
        double sum = 0;
        int64_t count = 0;
        int64_t padded =
            each_in_window<Cfg>(x, p, [&](int64_t offset, int64_t, int64_t) {
              sum += double(in[offset]);
              ++count;
            });
        if (Cfg::count_include_pad)
          count = padded;
        ((T *)y.data)[row_offset(y, 2 + Cfg::spatial, e)] =
            count ? T(sum / double(count)) : T(0);
      });
}

template <class Cfg> void lp_pool(const tn_args *args) {
  using T = typename Cfg::T;
  const tn_view &x = args->views[0], &y = args->views[1];
  each_output<Cfg>(
      args, y,
      [&](const T *in, int64_t, const Position<Cfg::spatial> &p, int64_t e) {
        double sum = 0;
        each_in_window<Cfg>(x, p, [&](int64_t offset, int64_t, int64_t) {
          sum += tn_pow(tn_abs(double(in[offset])), double(Cfg::norm));
        });
        ((T *)y.data)[row_offset(y, 2 + Cfg::spatial, e)] =
            T(tn_pow(sum, 1.0 / Cfg::norm));
      });
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_COMMON_POOL_H
