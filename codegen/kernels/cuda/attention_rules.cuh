//===- attention_rules.cuh - what a score becomes, which keys count -------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The part of attention that is the same however the products are made:
///
///   o[b, i, h, :] = sum over j of p[j] v[b, j, g, :],
///     p = softmax over j of  bias(cap(scale * q[b, i, h, :] . k[b, j, g, :]))
///
/// with g = h / (H / Hkv), in f32.
///
///   Cfg     using T             tn_f16, tn_bf16 or float: q, k, v and o
///           using MaskT         element type of the mask: T, float or tn_bool
///           static constexpr int64_t D, Dv       head sizes of q and k, and v
///           static constexpr float scale
///           static constexpr float softcap       cap(s) = c tanh(s / c); 0:
///                                                none
///           static constexpr tn::Mask mask       none, additive or boolean
///           static constexpr tn::Align align     query i's place p among the
///                                                keys: top_left p = i,
///                                                bottom_right p = i + Skv -
///                                                Sq, param p = i + params[0]
///           static constexpr int64_t left, right a key j is seen if
///                                                p - left <= j <= p + right;
///                                                tn::dynamic: no such bound
///           static constexpr bool alibi          adds slope[h] * (j - p)
///           static constexpr tn::MaskedRow masked_row   zero, uniform or nan
///           static constexpr int align_rows      a power of two that divides
///           the
///                                                address of every row of q, k
///                                                and v; 16 is the fast case
///
///   views   q     [B, Sq, H, D]       D contiguous
///           k     [B, Skv, Hkv, D]    D contiguous
///           v     [B, Skv, Hkv, Dv]   Dv contiguous
///           mask  (if mask != none) [B, H, Sq, Skv], zero strides broadcast;
///                 additive: added after cap; boolean: true = seen
///           slope (if alibi) f32 [H], contiguous
///           o     [B, Sq, H, Dv]      Dv contiguous
///   params  params[0], if align is param
///
/// H must be a multiple of Hkv; each size may be 0. With Skv = 0 the result is
/// zeros.
///
/// A row is *fully masked* when no key that the bounds let it see has a score
/// above -inf, where a boolean mask turns a score to -inf, or to -FLT_MAX if
/// masked_row is uniform. What it gives:
///   zero     zeros
///   uniform  the mean of all Skv rows of v: when bounds leave no key, or the
///            mask is boolean and the greatest score is no more than
///            -FLT_MAX / 2. With an additive mask arithmetic speaks
///   nan      NaN
/// NaN or +inf in a row's scores make the row NaN. Values of v are multiplied
/// by a weight of 0 where their key is masked: they must be finite.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CUDA_ATTENTION_RULES_CUH
#define TENON_KERNELS_CUDA_ATTENTION_RULES_CUH

#include "kernels/common/attention_forms.h"
#include "kernels/common/strided.h"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/mma.cuh"

namespace tn {
inline namespace TN_FORM {

/// 2^x to 2 ulp.
TN_FN float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// The exponential of a softmax, as exact as its elements want it.
template <class T> TN_FN float exp_for(float x) {
  if constexpr (same_type<T, float>)
    return expf(x);
  else
    return exp2_fast(x * 1.44269504088896f);
}

TN_FN float to_float(float x) { return x; }
TN_FN float to_float(tn_f16 x) { return tn_to_float(x); }
TN_FN float to_float(tn_bf16 x) { return tn_to_float(x); }
TN_FN float to_float(tn_bool x) { return float(x); }
template <class T> TN_FN T from_float(float x) {
  if constexpr (same_type<T, float>)
    return x;
  else
    return tn_round_to<T>(x);
}

/// The keys [begin, end) that a query may see.
struct Seen {
  int begin, end;
  TN_FN bool has(int j) const { return j >= begin && j < end; }
};

/// The operands of one attention, with the sizes that are the same for all
/// heads.
template <class Cfg> struct Attention {
  using T = typename Cfg::T;
  static constexpr bool has_mask = Cfg::mask != Mask::none;
  static constexpr bool bounded = Cfg::left != dynamic || Cfg::right != dynamic;
  static constexpr int slope_view = 3 + has_mask;
  static constexpr int o_view = slope_view + Cfg::alibi;

  tn_view q, k, v, mask, o;
  const float *slopes;
  int batch, queries, heads, keys, group;
  int offset; ///< a query's place among the keys, less its index

  TN_FN explicit Attention(const tn_args *args)
      : q(args->views[0]), k(args->views[1]), v(args->views[2]),
        mask(args->views[has_mask ? 3 : 0]), o(args->views[o_view]),
        slopes((const float *)args->views[slope_view].data) {
    batch = int(q.shape[0]);
    queries = int(q.shape[1]);
    heads = int(q.shape[2]);
    keys = int(k.shape[1]);
    int kv_heads = int(k.shape[2]);
    group = kv_heads > 0 && heads > kv_heads ? heads / kv_heads : 1;
    offset = int(query_offset<Cfg>(args, queries, keys));
  }

  /// Row s of head h of a view that is [B, S, H, D].
  static TN_FN T *row(const tn_view &view, int b, int s, int h) {
    return (T *)view.data + b * view.stride[0] + s * view.stride[1] +
           h * view.stride[2];
  }

  TN_FN Seen seen(int i) const {
    VisibleKeys r = visible_keys<Cfg>(int64_t(i) + offset, keys);
    return {int(r.begin), int(r.end)};
  }

  /// The score of key j from its product q . k, but for mask and bounds.
  TN_FN float score(float product, int h, int i, int j) const {
    float s = product * Cfg::scale;
    if constexpr (Cfg::softcap != 0)
      s = Cfg::softcap * tanhf(s * (1.0f / Cfg::softcap));
    if constexpr (Cfg::alibi)
      s += slopes[h] * float(j - i - offset);
    return s;
  }

  /// What the mask holds for (i, j): the summand, or 1 for a key to be seen.
  TN_FN float mask_at(int b, int h, int i, int j) const {
    using M = typename Cfg::MaskT;
    const int64_t *t = mask.stride;
    return to_float(
        ((const M *)mask.data)[b * t[0] + h * t[1] + i * t[2] + j * t[3]]);
  }

  /// A score under what mask_at gave.
  static TN_FN float masked(float s, float m) {
    if constexpr (Cfg::mask == Mask::additive)
      return s + m;
    constexpr bool uniform = Cfg::masked_row == MaskedRow::uniform;
    if constexpr (Cfg::mask == Mask::boolean)
      return m != 0 ? s : uniform ? score_masked : score_none;
    return s;
  }

  /// Whether a row with this greatest score is a uniform one.
  TN_FN bool is_uniform(float max, Seen visible) const {
    return keys != 0 && is_uniform_row<Cfg>(max, visible.begin == visible.end);
  }

  /// What the weighted sum of values is multiplied with.
  TN_FN float factor(float sum) const {
    if (sum != 0)
      return 1.0f / sum;
    bool zero = Cfg::masked_row == MaskedRow::zero || keys == 0;
    return zero ? 0.0f : float_of(0x7fc00000u);
  }

  /// Element d of what a fully masked row gives where masks are large finite
  /// numbers.
  TN_FN float mean_of_values(int b, int h, int d) const {
    float sum = 0;
    for (int j = 0; j < keys; ++j)
      sum += to_float(row(v, b, j, h / group)[d]);
    return sum / float(keys);
  }
};

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CUDA_ATTENTION_RULES_CUH
