//===- attention_plain.cuh - attention, one warp a query
//-----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// o[b, i, h, :] = softmax(bias(cap(scale q . k))) v, for what has no faster
/// form: any strides, sizes of heads up to 512, all masks.
///
///   entry   tn::attention_plain<Cfg>(args)
///   Cfg     using Q, K, V, O          element types of q, k, v and o: float,
///                                     tn_f16, tn_bf16 each
///           the rest as kernels/cpu/attention.h says, fully masked rows
///           included
///   views   q, k, v, mask?, slope? (f32), o; an additive mask is f32 or of
///   type T
///           (Cfg::MaskType)
///   grid    a warp for each (batch, head, query); fewer will do
///
/// Keys come 32 at a time: a lane computes one key's score, then all lanes add
/// up the 32 values, each its own columns. Scores, sums and values are f32.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CUDA_ATTENTION_PLAIN_CUH
#define TENON_KERNELS_CUDA_ATTENTION_PLAIN_CUH

#include "kernels/common/attention_forms.h"
#include "kernels/common/strided.h"
#include "kernels/cuda/common.cuh"

namespace tn {
inline namespace TN_FORM {

template <class Cfg> struct PlainAttention {
  using Q = typename Cfg::Q;
  using K = typename Cfg::K;
  using V = typename Cfg::V;
  using O = typename Cfg::O;
  static constexpr bool has_mask = Cfg::mask != Mask::none;
  static constexpr int slope_view = 3 + has_mask;
  static constexpr int o_view = slope_view + Cfg::alibi;
  static constexpr int64_t D = Cfg::D, Dv = Cfg::Dv;
  static constexpr int columns = int(ceil_div(Dv, warp_size));

  const tn_view *v;
  int64_t b, h, i; ///< batch, head, query
  int64_t keys, group, offset;

  template <class T>
  TN_FN const T *row(int view, int64_t s, int64_t head) const {
    const int64_t *stride = v[view].stride;
    return (const T *)v[view].data + b * stride[0] + s * stride[1] +
           head * stride[2];
  }

  /// The keys that the query may see.
  TN_FN VisibleKeys seen() const { return visible_keys<Cfg>(i + offset, keys); }

  TN_FN float score(float product, int64_t j) const {
    float s = product * Cfg::scale;
    if constexpr (Cfg::softcap != 0)
      s = Cfg::softcap * tanhf(s / Cfg::softcap);
    if constexpr (Cfg::alibi)
      s += ((const float *)v[slope_view].data)[h] * float(j - i - offset);
    if constexpr (has_mask) {
      const int64_t *t = v[3].stride;
      int64_t at = b * t[0] + h * t[1] + i * t[2] + j * t[3];
      if constexpr (Cfg::mask == Mask::additive)
        s += tn_cast<float>(((const typename Cfg::MaskType *)v[3].data)[at]);
      else if (!((const tn_bool *)v[3].data)[at])
        s = Cfg::masked_row == MaskedRow::uniform ? score_masked : score_none;
    }
    return s;
  }

  TN_FN void store(int64_t d, float x) const {
    const int64_t *stride = v[o_view].stride;
    ((O *)v[o_view]
         .data)[b * stride[0] + i * stride[1] + h * stride[2] + d * stride[3]] =
        tn_cast<O>(x);
  }

  /// What a fully masked row gives where masks are large finite numbers.
  TN_FN void store_mean() const {
    for (int64_t d = lane_id(); d < Dv; d += warp_size) {
      double sum = 0;
      for (int64_t j = 0; j < keys; ++j)
        sum +=
            double(tn_cast<float>(row<V>(2, j, h / group)[d * v[2].stride[3]]));
      store(d, float(sum / double(keys)));
    }
  }

  TN_FN void run() const {
    const Q *q = row<Q>(0, i, h);
    int64_t q_step = v[0].stride[3], k_step = v[1].stride[3];
    int64_t v_step = v[2].stride[3];
    float acc[columns] = {}, max = score_none, sum = 0;
    VisibleKeys visible = seen();
    if (keys == 0) {
      for (int64_t d = lane_id(); d < Dv; d += warp_size)
        store(d, 0);
      return;
    }
    for (int64_t j0 = visible.begin; j0 < visible.end; j0 += warp_size) {
      int64_t j = j0 + lane_id();
      float s = score_none;
      if (j < visible.end) {
        const K *k = row<K>(1, j, h / group);
        float dot = 0;
        for (int64_t d = 0; d < D; ++d)
          dot += tn_cast<float>(q[d * q_step]) * tn_cast<float>(k[d * k_step]);
        s = score(dot, j);
      }
      float now = Greater()(max, warp_reduce(s, Greater()));
      float shift = now == score_none ? 0.0f : now;
      float weight = expf(s - shift), keep = expf(max - shift);
      max = now;
      sum = sum * keep + warp_reduce(weight, Add());
      TN_UNROLL
      for (int c = 0; c < columns; ++c)
        acc[c] *= keep;
      int count = int(min_of(warp_size, visible.end - j0));
      for (int l = 0; l < count; ++l) {
        float w = __shfl_sync(all_lanes, weight, l);
        const V *value = row<V>(2, j0 + l, h / group);
        TN_UNROLL
        for (int c = 0; c < columns; ++c) {
          int64_t d = c * warp_size + lane_id();
          if (d < Dv)
            acc[c] += w * tn_cast<float>(value[d * v_step]);
        }
      }
    }
    if (is_uniform_row<Cfg>(max, visible.begin == visible.end))
      return store_mean();
    float scale = 1.0f / sum;
    if (sum == 0)
      scale = Cfg::masked_row == MaskedRow::zero ? 0.0f : __builtin_nanf("");
    TN_UNROLL
    for (int c = 0; c < columns; ++c) {
      int64_t d = c * warp_size + lane_id();
      if (d < Dv)
        store(d, sum == 0 ? scale : acc[c] * scale);
    }
  }
};

template <class Cfg> TN_FN void attention_plain(const tn_args *args) {
  PlainAttention<Cfg> a;
  a.v = args->views;
  int64_t queries = a.v[0].shape[1], heads = a.v[0].shape[2];
  int64_t rows = a.v[0].shape[0] * heads * queries;
  a.keys = a.v[1].shape[1];
  a.group = max_of(1, heads / max_of(1, a.v[1].shape[2]));
  a.offset = query_offset<Cfg>(args, queries, a.keys);
  int64_t warps = Cfg::threads / warp_size;
  int64_t first = blockIdx.x * warps + warp_id();
  for (int64_t r = first; r < rows; r += gridDim.x * warps) {
    int64_t head = r / queries;
    a.i = r - head * queries;
    a.b = head / heads;
    a.h = head - a.b * heads;
    a.run();
  }
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CUDA_ATTENTION_PLAIN_CUH
