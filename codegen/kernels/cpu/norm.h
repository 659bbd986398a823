//===- norm.h - layer_norm, rms_norm, softmax, log_softmax ----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Normalisation of rows in f32. A row is the last `axes` dimensions of x; the
/// dimensions before them enumerate the rows.
///
///   entry   tn::layer_norm<Cfg>(args)
///             y = (s - mean(s)) / sqrt(var(s) + epsilon) * gamma + beta
///           tn::rms_norm<Cfg>(args)
///             y = s / sqrt(mean(s^2) + epsilon) * gamma + beta
///           with s = x + residual; var is the mean of squared distances
///
///   Cfg     static constexpr int rank            rank of x, y, residual, sum
///           static constexpr int axes            trailing dimensions of a row
///           static constexpr int64_t N           elements in a row, or
///                                                tn::dynamic
///           static constexpr float epsilon
///           static constexpr bool has_residual, has_gamma, has_beta
///           static constexpr bool has_mean, has_inv_std   results: the row's
///                                                mean (layer_norm only) and
///                                                1 / sqrt(... + epsilon)
///           static constexpr bool has_sum        result: s
///
///   views   x, residual?, gamma?, beta?, y, mean?, inv_std?, sum?
///           (those that Cfg says are there, in this order)
///           residual has x's shape (zero strides broadcast over rows); gamma
///           and beta are one row of N contiguous floats; mean and inv_std are
///           contiguous, one float a row in row-major order
///   params  none
///   scratch none
///
///   entry   tn::softmax<Cfg>(args)       y = e^(x - max) / sum(e^(x - max))
///           tn::log_softmax<Cfg>(args)   y = x - max - log sum(e^(x - max))
///
///   Cfg     static constexpr int rank, axes      as above
///           static constexpr int64_t N           as above
///
///   views   x, y
///   params  none
///   scratch none
///
/// Layouts: the dimensions of a row must be evenly spaced in memory: any stride
/// for one axis (slow unless 1; to normalise another axis than the last,
/// exchange the view's dimensions), contiguous for several. Outer strides are
/// free. y may be the same memory as x, residual or sum with the same strides.
///
/// Numerics: mean first, then the mean of squared distances from it (two passes
/// over a row in the L1 cache, one over memory), so nothing cancels; sums in
/// f32 by 4 vectors of partial sums. rms_norm's statistics too are f32. A
/// softmax over only -inf, or with NaN or +inf in it, gives NaN. Rows of no
/// elements are left alone.
///
/// Threads take ranges of rows.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CPU_NORM_H
#define TENON_KERNELS_CPU_NORM_H

#include "kernels/common/strided.h"
#include "kernels/cpu/vec_ops.h"

namespace tn {
inline namespace TN_FORM {

/// A row of floats, `stride` apart; Unit says that stride is 1.
template <bool Unit, class T> struct Row {
  T *data;
  int64_t stride;

  TN_FN vf get(int64_t j, int64_t n) const {
    if constexpr (Unit)
      return n >= vf::width ? load(data + j) : load_n(data + j, n);
    else
      return load_strided(data + j * stride, stride, min_of(n, vf::width));
  }
  TN_FN void put(int64_t j, int64_t n, vf x) const {
    if constexpr (Unit)
      n >= vf::width ? store(data + j, x) : store_n(data + j, x, n);
    else
      store_strided(data + j * stride, stride, x, min_of(n, vf::width));
  }
};

/// Calls f(j, lanes) for each vector of a row of n, the tail included.
template <class F> TN_FN void each_vector(int64_t n, F f) {
  int64_t j = 0;
  for (; j + vf::width <= n; j += vf::width)
    f(j, int64_t(vf::width));
  if (j < n)
    f(j, n - j);
}

/// The sum of f(j, lanes) over a row, in four partial sums so that additions
/// need not wait for each other. f must give 0 in lanes past the end.
template <class F> TN_FN float sum_vectors(int64_t n, F f) {
  constexpr int64_t w = vf::width;
  vf s0 = vf(0), s1 = vf(0), s2 = vf(0), s3 = vf(0);
  int64_t j = 0;
  for (; j + 4 * w <= n; j += 4 * w) {
    s0 += f(j, w);
    s1 += f(j + w, w);
    s2 += f(j + 2 * w, w);
    s3 += f(j + 3 * w, w);
  }
  for (; j + w <= n; j += w)
    s0 += f(j, w);
  if (j < n)
    s1 += f(j, n - j);
  return reduce_add((s0 + s1) + (s2 + s3));
}

/// Which views a normalisation has, by Cfg.
template <class Cfg> struct NormViews {
  static constexpr int residual = 1;
  static constexpr int gamma = residual + Cfg::has_residual;
  static constexpr int beta = gamma + Cfg::has_gamma;
  static constexpr int y = beta + Cfg::has_beta;
  static constexpr int mean = y + 1;
  static constexpr int inv_std = mean + Cfg::has_mean;
  static constexpr int sum = inv_std + Cfg::has_inv_std;
};

/// The row's length: a constant where Cfg knows it.
template <class Cfg> TN_FN int64_t row_length(const tn_view &x) {
  return Cfg::N == dynamic ? extent(x, Cfg::rank - Cfg::axes, Cfg::rank)
                           : Cfg::N;
}

/// The outer dimensions' row `r` of view `v`, whose outer sizes are x's.
template <bool Unit, class Cfg, class T>
TN_FN Row<Unit, T> row_of(const tn_view &v, const int64_t *shape, int64_t r) {
  tn_view outer = {nullptr, shape, v.stride};
  return {(T *)v.data + row_offset(outer, Cfg::rank - Cfg::axes, r),
          v.stride[Cfg::rank - 1]};
}

template <class Cfg, bool Centred, bool Unit>
TN_FN void norm_row(const tn_args *args, int64_t r, int64_t n) {
  using At = NormViews<Cfg>;
  const tn_view *v = args->views;
  const int64_t *shape = v[0].shape;
  auto x = row_of<Unit, Cfg, const float>(v[0], shape, r);
  auto y = row_of<Unit, Cfg, float>(v[At::y], shape, r);
  // Where the sum is kept between the passes.
  auto kept = Cfg::has_sum ? row_of<Unit, Cfg, float>(v[At::sum], shape, r) : y;
  auto fetch = [&](int64_t j, int64_t lanes) {
    if constexpr (Cfg::has_residual || Cfg::has_sum)
      return kept.get(j, lanes);
    else
      return x.get(j, lanes);
  };

  if constexpr (Cfg::has_residual) {
    auto other = row_of<Unit, Cfg, const float>(v[At::residual], shape, r);
    each_vector(n, [&](int64_t j, int64_t lanes) {
      kept.put(j, lanes, x.get(j, lanes) + other.get(j, lanes));
    });
  } else if constexpr (Cfg::has_sum) {
    each_vector(n, [&](int64_t j, int64_t lanes) {
      kept.put(j, lanes, x.get(j, lanes));
    });
  }

  float mean = 0;
  if constexpr (Centred)
    mean = sum_vectors(n, fetch) / float(n);
  vf centre = vf(mean);
  float squares = sum_vectors(n, [&](int64_t j, int64_t lanes) {
    vf d = fetch(j, lanes);
    if constexpr (Centred)
      d = d - centre;
    if (lanes < vf::width)
      d = select(first_lanes(lanes), d, vf(0));
    return d * d;
  });
  float inv_std =
      1.0f / __builtin_sqrtf(squares / float(n) + float(Cfg::epsilon));

  vf scale = vf(inv_std);
  each_vector(n, [&](int64_t j, int64_t lanes) {
    vf d = fetch(j, lanes);
    if constexpr (Centred)
      d = d - centre;
    d = d * scale;
    if constexpr (Cfg::has_gamma)
      d = d * Row<true, const float>{(const float *)v[At::gamma].data, 1}.get(
                  j, lanes);
    if constexpr (Cfg::has_beta)
      d = d + Row<true, const float>{(const float *)v[At::beta].data, 1}.get(
                  j, lanes);
    y.put(j, lanes, d);
  });
  if constexpr (Cfg::has_mean)
    ((float *)v[At::mean].data)[r] = mean;
  if constexpr (Cfg::has_inv_std)
    ((float *)v[At::inv_std].data)[r] = inv_std;
}

template <class Cfg, bool Centred> TN_FN void norm_rows(const tn_args *args) {
  using At = NormViews<Cfg>;
  const tn_view *v = args->views;
  int64_t n = row_length<Cfg>(v[0]);
  constexpr int inner = Cfg::rank - 1;
  bool unit = v[0].stride[inner] == 1 && v[At::y].stride[inner] == 1;
  if constexpr (Cfg::has_residual)
    unit = unit && v[At::residual].stride[inner] == 1;
  if constexpr (Cfg::has_sum)
    unit = unit && v[At::sum].stride[inner] == 1;
  Range mine = share(args, extent(v[0], 0, Cfg::rank - Cfg::axes));
  if (n == 0)
    return;
  for (int64_t r = mine.begin; r < mine.end; ++r) {
    if (unit)
      norm_row<Cfg, Centred, true>(args, r, n);
    else
      norm_row<Cfg, Centred, false>(args, r, n);
  }
}

template <class Cfg> void layer_norm(const tn_args *args) {
  norm_rows<Cfg, true>(args);
}

template <class Cfg> void rms_norm(const tn_args *args) {
  norm_rows<Cfg, false>(args);
}

template <bool Log, bool Unit>
TN_FN void softmax_row(Row<Unit, const float> x, Row<Unit, float> y,
                       int64_t n) {
  vf lowest = vf(-__builtin_inff()), top = lowest;
  each_vector(n, [&](int64_t j, int64_t lanes) {
    vf a = x.get(j, lanes);
    top = max_raw(top, lanes < vf::width ? select(first_lanes(lanes), a, lowest)
                                         : a);
  });
  vf max = vf(reduce_max(top));
  float sum = sum_vectors(n, [&](int64_t j, int64_t lanes) {
    vf e = math::exp_nonpositive(x.get(j, lanes) - max);
    if (lanes < vf::width)
      e = select(first_lanes(lanes), e, vf(0));
    if constexpr (!Log)
      y.put(j, lanes, e);
    return e;
  });
  if constexpr (Log) {
    vf log_sum = vf(__builtin_logf(sum));
    each_vector(n, [&](int64_t j, int64_t lanes) {
      y.put(j, lanes, (x.get(j, lanes) - max) - log_sum);
    });
  } else {
    vf scale = vf(1.0f / sum);
    each_vector(n, [&](int64_t j, int64_t lanes) {
      y.put(j, lanes, y.get(j, lanes) * scale);
    });
  }
}

template <class Cfg, bool Log> TN_FN void softmax_rows(const tn_args *args) {
  const tn_view *v = args->views;
  int64_t n = row_length<Cfg>(v[0]);
  constexpr int inner = Cfg::rank - 1;
  bool unit = v[0].stride[inner] == 1 && v[1].stride[inner] == 1;
  Range mine = share(args, extent(v[0], 0, Cfg::rank - Cfg::axes));
  if (n == 0)
    return;
  for (int64_t r = mine.begin; r < mine.end; ++r) {
    const int64_t *shape = v[0].shape;
    if (unit)
      softmax_row<Log>(row_of<true, Cfg, const float>(v[0], shape, r),
                       row_of<true, Cfg, float>(v[1], shape, r), n);
    else
      softmax_row<Log>(row_of<false, Cfg, const float>(v[0], shape, r),
                       row_of<false, Cfg, float>(v[1], shape, r), n);
  }
}

template <class Cfg> void softmax(const tn_args *args) {
  softmax_rows<Cfg, false>(args);
}

template <class Cfg> void log_softmax(const tn_args *args) {
  softmax_rows<Cfg, true>(args);
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CPU_NORM_H
