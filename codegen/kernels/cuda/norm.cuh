//===- norm.cuh - layer_norm, rms_norm, softmax, log_softmax
//-------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Normalisation of rows; a row is the last `axes` dimensions of x.
///
///   entry   tn::layer_norm<Cfg>(args)
///             y = (x - mean(x)) / sqrt(var(x) + epsilon) * gamma + beta
///           tn::rms_norm<Cfg>(args)
///             y = x / sqrt(mean(x^2) + epsilon) * gamma + beta
///           tn::softmax<Cfg>(args)       y = e^(x - max) / sum(e^(x - max))
///           tn::log_softmax<Cfg>(args)   y = x - max - log sum(e^(x - max))
///
///   Cfg     using T                           of all views: float, tn_f16,
///   tn_bf16
///           static constexpr int rank, axes   of x and y; dimensions of a row
///           static constexpr int64_t N        elements of a row, or
///           tn::dynamic static constexpr bool row_per_warp norms: static
///           constexpr float epsilon
///                  static constexpr bool has_gamma, has_beta
///   views   norms: x, gamma?, beta?, y; gamma and beta are one contiguous row
///           softmax: x, y
///   grid    a warp (row_per_warp) or block for each row; fewer will do
///
/// The dimensions of a row must be evenly spaced: any stride for one axis,
/// contiguous for several. y may be the same memory as x with the same strides.
///
/// Statistics and everything between loading and storing are f32, whatever T:
/// the mean first, then the squared distances from it. A row of up to 32
/// elements a thread is read once and stays in registers; a longer one, or one
/// whose length only the run tells, is read again for each pass, from the
/// caches. A softmax over only -inf, or with NaN or +inf in it, gives NaN.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CUDA_NORM_CUH
#define TENON_KERNELS_CUDA_NORM_CUH

#include "kernels/common/loop_body.h"
#include "kernels/cuda/row_team.cuh"

namespace tn {
inline namespace TN_FORM {

template <class Cfg, bool Centred, int Width>
TN_FN void norm_row(const tn_args *args, int64_t r, int64_t n) {
  using X = typename Cfg::X;
  using Y = typename Cfg::Y;
  using Walk = RowWalk<Cfg, Width>;
  using Team = RowTeam<Cfg>;
  constexpr int gamma = 1, beta = 1 + Cfg::has_gamma;
  constexpr int last = beta + Cfg::has_beta, inner = Cfg::rank - 1;
  const tn_view *v = args->views;
  const X *x = row_of<Cfg, const X>(v[0], v[0].shape, r);
  Y *y = row_of<Cfg, Y>(v[last], v[0].shape, r);
  int64_t x_step = v[0].stride[inner], y_step = v[last].stride[inner];

  float kept[Walk::slots], sum = 0;
  auto fetch = [&](int slot, int64_t j) {
    if constexpr (!Walk::held)
      load_piece<X, Width>(x, j, x_step, kept);
  };
  Walk::each(n, [&](int slot, int64_t j) {
    load_piece<X, Width>(x, j, x_step, kept + slot);
    TN_UNROLL
    for (int k = 0; k < Width; ++k)
      sum += Centred ? kept[slot + k] : kept[slot + k] * kept[slot + k];
  });
  sum = Team::reduce(sum, Add());
  float mean = 0, squares = sum;
  if constexpr (Centred) {
    mean = sum / float(n);
    squares = 0;
    Walk::each(n, [&](int slot, int64_t j) {
      fetch(slot, j);
      TN_UNROLL
      for (int k = 0; k < Width; ++k) {
        float d = kept[slot + k] - mean;
        squares += d * d;
      }
    });
    squares = Team::reduce(squares, Add());
  }
  float scale = 1.0f / sqrtf(squares / float(n) + Cfg::epsilon);
  Walk::each(n, [&](int slot, int64_t j) {
    fetch(slot, j);
    float g[Width], b[Width], out[Width];
    if constexpr (Cfg::has_gamma)
      load_piece<typename Cfg::Gamma, Width>(
          (const typename Cfg::Gamma *)v[gamma].data, j, 1, g);
    if constexpr (Cfg::has_beta)
      load_piece<typename Cfg::Beta, Width>(
          (const typename Cfg::Beta *)v[beta].data, j, 1, b);
    TN_UNROLL
    for (int k = 0; k < Width; ++k) {
      float d = (kept[slot + k] - mean) * scale;
      if constexpr (Cfg::has_gamma)
        d *= g[k];
      if constexpr (Cfg::has_beta)
        d += b[k];
      out[k] = d;
    }
    store_piece<Y, Width>(y, j, y_step, out);
  });
}

/// Calls row<Width>(r, n) for this team's rows, with the greatest width that
/// the views allow.
template <class Cfg, class Row>
TN_FN void each_row(const tn_args *args, bool wide, Row row) {
  int64_t n = row_length<Cfg>(args->views[0]);
  if (n == 0)
    return;
  Range mine =
      RowTeam<Cfg>::rows(extent(args->views[0], 0, Cfg::rank - Cfg::axes));
  for (int64_t r = mine.begin; r < mine.end; r += mine.step) {
    if (wide)
      row(r, n, Indices<4>());
    else
      row(r, n, Indices<1>());
  }
}

template <class Cfg, bool Centred> TN_FN void norm_rows(const tn_args *args) {
  constexpr int last = 1 + Cfg::has_gamma + Cfg::has_beta;
  bool wide = row_length<Cfg>(args->views[0]) % 4 == 0 &&
              has_pieces<typename Cfg::X, 4>(args->views[0], Cfg::rank) &&
              has_pieces<typename Cfg::Y, 4>(args->views[last], Cfg::rank);
  TN_UNROLL
  for (int i = 1; i < last; ++i)
    wide = wide && uint64_t(args->views[i].data) % 16 == 0;
  each_row<Cfg>(args, wide,
                [&]<int Width>(int64_t r, int64_t n, Indices<Width>) {
                  norm_row<Cfg, Centred, Width>(args, r, n);
                });
}

template <class Cfg> TN_FN void layer_norm(const tn_args *args) {
  norm_rows<Cfg, true>(args);
}
template <class Cfg> TN_FN void rms_norm(const tn_args *args) {
  norm_rows<Cfg, false>(args);
}

template <class Cfg, bool Log, int Width>
TN_FN void softmax_row(const tn_args *args, int64_t r, int64_t n) {
  using X = typename Cfg::X;
  using Y = typename Cfg::Y;
  using Walk = RowWalk<Cfg, Width>;
  using Team = RowTeam<Cfg>;
  constexpr int inner = Cfg::rank - 1;
  const tn_view *v = args->views;
  const X *x = row_of<Cfg, const X>(v[0], v[0].shape, r);
  Y *y = row_of<Cfg, Y>(v[1], v[0].shape, r);
  int64_t x_step = v[0].stride[inner], y_step = v[1].stride[inner];

  float kept[Walk::slots], max = -__builtin_inff(), sum = 0;
  Walk::each(n, [&](int slot, int64_t j) {
    load_piece<X, Width>(x, j, x_step, kept + slot);
    TN_UNROLL
    for (int k = 0; k < Width; ++k)
      max = Greater()(max, kept[slot + k]);
  });
  max = Team::reduce(max, Greater());
  auto fetch = [&](int64_t j) {
    if constexpr (!Walk::held)
      load_piece<X, Width>(x, j, x_step, kept);
  };
  Walk::each(n, [&](int slot, int64_t j) {
    fetch(j);
    TN_UNROLL
    for (int k = 0; k < Width; ++k) {
      float e = expf(kept[slot + k] - max);
      sum += e;
      if constexpr (Walk::held && !Log)
        kept[slot + k] = e;
    }
  });
  sum = Team::reduce(sum, Add());
  float scale = Log ? logf(sum) : 1.0f / sum;
  Walk::each(n, [&](int slot, int64_t j) {
    fetch(j);
    float out[Width];
    TN_UNROLL
    for (int k = 0; k < Width; ++k) {
      float a = kept[slot + k];
      if constexpr (Log)
        out[k] = (a - max) - scale;
      else
        out[k] = (Walk::held ? a : expf(a - max)) * scale;
    }
    store_piece<Y, Width>(y, j, y_step, out);
  });
}

template <class Cfg, bool Log> TN_FN void softmax_rows(const tn_args *args) {
  bool wide = row_length<Cfg>(args->views[0]) % 4 == 0 &&
              has_pieces<typename Cfg::X, 4>(args->views[0], Cfg::rank) &&
              has_pieces<typename Cfg::Y, 4>(args->views[1], Cfg::rank);
  each_row<Cfg>(args, wide,
                [&]<int Width>(int64_t r, int64_t n, Indices<Width>) {
                  softmax_row<Cfg, Log, Width>(args, r, n);
                });
}

template <class Cfg> TN_FN void softmax(const tn_args *args) {
  softmax_rows<Cfg, false>(args);
}
template <class Cfg> TN_FN void log_softmax(const tn_args *args) {
  softmax_rows<Cfg, true>(args);
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CUDA_NORM_CUH
