//===- rotary.cuh - parts of a product on their way to attention ----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Several tensors at once, each rotated by its position or just copied:
/// queries for attention, keys and values to the end of a cache.
///
///   entry   tn::rotary_parts<Cfg>(args)
///
///   Cfg     static constexpr int parts
///           static constexpr int64_t rotated   bit p: part p is rotated:
///                        (y1, y2) = (x1 cos - x2 sin, x1 sin + x2 cos)
///           using Inputs, Results  tn::types<...>: a part's elements, before
///                        and after; f32 between
///           static constexpr int64_t rotary_dim, half = rotary_dim / 2
///           static constexpr bool interleaved  pairs are (2 i, 2 i + 1), else
///                        (i, i + half)
///           Of several parts that are rotated all are so by one table
///   views   cos, sin     f32 [B, S, half], if a part is rotated
///           x of each part, [B, S, H, D] with any strides; where none is
///           rotated the dimensions may mean anything
///           y of each part, of x's shape; a rotated one may be x
///   grid    a thread for a pair, or an element that is not rotated; fewer will
///           do
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CUDA_ROTARY_CUH
#define TENON_KERNELS_CUDA_ROTARY_CUH

#include "kernels/common/strided.h"
#include "kernels/cuda/common.cuh"

namespace tn {
inline namespace TN_FORM {

template <class Cfg, int Part> struct RotaryPart {
  using In = type_at<Part, typename Cfg::Inputs>;
  using Out = type_at<Part, typename Cfg::Results>;
  static constexpr bool rotated = Cfg::rotated >> Part & 1;
  static constexpr int tables = Cfg::rotated ? 2 : 0;

  const tn_view *v;
  const tn_view &x, &y;

  TN_FN explicit RotaryPart(const tn_view *v)
      : v(v), x(v[tables + Part]), y(v[tables + Cfg::parts + Part]) {}

  /// Pairs and single elements of a row.
  TN_FN int64_t row_items() const {
    return x.shape[3] - (rotated ? Cfg::half : 0);
  }
  TN_FN int64_t items() const {
    return x.shape[0] * x.shape[1] * x.shape[2] * row_items();
  }

  TN_FN void run(int64_t item) const {
    int64_t per_row = row_items(), r = item / per_row, i = item - r * per_row;
    int64_t h = r % x.shape[2], position = r / x.shape[2];
    int64_t s = position % x.shape[1], b = position / x.shape[1];
    const In *in = (const In *)x.data + b * x.stride[0] + s * x.stride[1] +
                   h * x.stride[2];
    Out *out =
        (Out *)y.data + b * y.stride[0] + s * y.stride[1] + h * y.stride[2];
    if constexpr (rotated) {
      if (i < Cfg::half)
        return rotate(in, out, b, s, i);
      i += Cfg::half;
    }
    out[i * y.stride[3]] = tn_cast<Out>(tn_cast<float>(in[i * x.stride[3]]));
  }

  TN_FN void rotate(const In *in, Out *out, int64_t b, int64_t s,
                    int64_t i) const {
    auto entry = [&](const tn_view &table) {
      const int64_t *t = table.stride;
      return ((const float *)table.data)[b * t[0] + s * t[1] + i * t[2]];
    };
    float cosine = entry(v[0]), sine = entry(v[1]);
    int64_t first = Cfg::interleaved ? 2 * i : i;
    int64_t second = Cfg::interleaved ? 2 * i + 1 : i + Cfg::half;
    float x1 = tn_cast<float>(in[first * x.stride[3]]),
          x2 = tn_cast<float>(in[second * x.stride[3]]);
    out[first * y.stride[3]] = tn_cast<Out>(x1 * cosine - x2 * sine);
    out[second * y.stride[3]] = tn_cast<Out>(x1 * sine + x2 * cosine);
  }
};

/// Part `Part` and those after it; `before` items are in front of them, so that
/// the parts take threads one after another.
template <class Cfg, int Part = 0>
TN_FN void run_parts(const tn_view *views, int64_t before = 0) {
  RotaryPart<Cfg, Part> part(views);
  int64_t threads = global_threads(), items = part.items();
  int64_t item = global_thread() - before % threads;
  if (item < 0)
    item += threads;
  for (; item < items; item += threads)
    part.run(item);
  if constexpr (Part + 1 < Cfg::parts)
    run_parts<Cfg, Part + 1>(views, before + items);
}

template <class Cfg> TN_FN void rotary_parts(const tn_args *args) {
  run_parts<Cfg>(args->views);
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CUDA_ROTARY_CUH
