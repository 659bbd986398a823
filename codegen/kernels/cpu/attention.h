//===- attention.h - flash attention --------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// o[b, i, h, :] = sum over j of p[j] v[b, j, g, :],
///   p = softmax over j of  bias(cap(scale * q[b, i, h, :] . k[b, j, g, :]))
/// in f32, with g = h / (H / Hkv) and without a matrix of scores.
///
///   entry   tn::attention<Cfg>(args)          any Sq
///           tn::attention_decode<Cfg>(args)   few queries (Sq <= 8, say)
///           tn::attention_any<Cfg>(args)      the one or the other by Sq
///
///   Cfg     static constexpr int64_t D, Dv       head sizes of q and k, and v
///           static constexpr float scale
///           static constexpr float softcap       cap(s) = c tanh(s / c); 0:
///           none static constexpr tn::Mask mask       none, additive or
///           boolean static constexpr tn::Align align     what query i's place
///           p is among
///                                                the keys: top_left p = i,
///                                                bottom_right p = i + Skv -
///                                                Sq, param p = i + params[0]
///           static constexpr int64_t left, right a key j is seen if
///                                                p - left <= j <= p + right;
///                                                tn::dynamic: no such bound.
///                                                Causal is right = 0
///           static constexpr bool alibi          adds slope[h] * (j - p)
///           static constexpr tn::MaskedRow masked_row   zero, uniform or nan
///           static constexpr int products = 1    (may be left out) q, k, v and
///                                                p may be rounded to bf16
///
///   views   q     f32 [B, Sq, H, D]       any strides; D should be contiguous
///           k     f32 [B, Skv, Hkv, D]    any strides; D should be contiguous
///           v     f32 [B, Skv, Hkv, Dv]   any strides; Dv should be contiguous
///           mask  (if mask != none) [B, H, Sq, Skv], zero strides broadcast;
///                 additive: f32, added after cap; boolean: tn_bool, true =
///                 seen
///           slope (if alibi) f32 [H], contiguous
///           o     f32 [B, Sq, H, Dv]      any strides; Dv should be contiguous
///   params  params[0], if align is param
///   scratch attention: none (stack: 4 * (128 * (D + 2 Dv + 128)) bytes and
///           rounding). attention_decode:
///           4 * B * H * Sq * ceil(Skv / 256) * (Dv + 2) bytes; attention_any
///           the same for min(Sq, 8)
///
/// H must be a multiple of Hkv. B, H, Sq are read from q, Skv and Hkv from k;
/// each may be 0. With Skv = 0 the result is zeros. o may be the same memory as
/// q with the same strides if D = Dv.
///
/// A row is *fully masked* when no key that the bounds let it see has a score
/// above -inf, where a boolean mask turns a score to -inf, or to -FLT_MAX if
/// masked_row is uniform. What it gives:
///   zero     zeros. An additive mask of finite numbers never gets here: it is
///            added in f32 and arithmetic speaks
///   uniform  the mean of all Skv rows of v: when bounds leave no key, or the
///            mask is boolean and the greatest score is no more than
///            -FLT_MAX / 2. That is what one mask of -FLT_MAX gives where it is
///            added. With an additive mask arithmetic speaks: bounds and
///            -FLT_MAX together are -inf, so what bounds hide stays hidden, and
///            a row of -inf alone is NaN
///   nan      NaN
/// NaN or +inf in a row's scores make the row NaN. Values of v are multiplied
/// by a weight of 0 where their key is masked: they must be finite.
///
/// Numerics: scores and sums in f32; running maximum and sum for each row;
/// exponentials to 1 ulp. Keys come in blocks of 128 that begin at multiples of
/// 128, whatever the block of queries.
///
/// Threads of attention take ranges of (batch, head, block of 128 queries), of
/// attention_decode ranges of (batch, head, split of 256 keys), then after a
/// barrier of (batch, head, query).
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CPU_ATTENTION_H
#define TENON_KERNELS_CPU_ATTENTION_H

#include "kernels/cpu/attention_tiles.h"
#include "kernels/cpu/transpose.h"

namespace tn {
inline namespace TN_FORM {

/// Keys of a split; up to so many queries the split-KV form keeps more threads
/// busy.
inline constexpr int64_t key_split = 256, decode_queries = 8;

/// A block of queries of one head, multiplied by vectors.
template <class Cfg> struct QueryBlock : SoftmaxBlock<Cfg> {
  using Base = SoftmaxBlock<Cfg>;
  using Base::D, Base::Dv, Base::wide_v;
  using typename Base::A;

  alignas(64) float packed_k[D * key_block];
  alignas(64) float packed_v[wide_v * key_block];
  alignas(64) float packed_q[query_block * D];
  const float *q;
  int64_t q_stride;

  TN_FN void load_queries(const A &a, const float *row, int64_t rows) {
    const tn_view &view = a.views[0];
    q = row;
    q_stride = view.stride[1];
    if (view.stride[3] == 1)
      return;
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t d = 0; d < D; ++d)
        packed_q[i * D + d] = row[i * q_stride + d * view.stride[3]];
    q = packed_q;
    q_stride = D;
  }

  TN_FN void load_keys(const A &a, const float *k, const float *v, int64_t n) {
    const int64_t *ks = a.views[1].stride, *vs = a.views[2].stride;
    pack_panels(k, D, n, ks[3], ks[1], packed_k);
    pack_panels(v, n, Dv, vs[1], vs[3], packed_v);
  }

  /// scores[rows, n] = q[rows, D] * k[n, D]^T.
  TN_FN void multiply_keys(int64_t rows, int64_t n) {
    Tile t = {};
    t.lda = q_stride;
    t.k = D;
    t.ldc = key_block;
    multiply_panels(t, q, packed_k, rows, n, this->scores);
  }

  /// acc[rows, Dv] (+)= scores[rows, n] * v[n, Dv].
  TN_FN void multiply_values(int64_t rows, int64_t n) {
    Tile t = {};
    t.lda = key_block;
    t.k = n;
    t.ldc = wide_v;
    t.accumulate = !this->first_block;
    multiply_panels(t, this->scores, packed_v, rows, Dv, this->acc);
  }
};

/// What multiplies for a Cfg.
template <class Cfg, bool Tiled = attends_by_tiles<Cfg>()> struct BlockFor {
  using type = QueryBlock<Cfg>;
};
template <class Cfg> struct BlockFor<Cfg, true> {
  using type = TileBlock<Cfg>;
};

template <class Cfg> void attention(const tn_args *args) {
  Attention<Cfg> a(args);
  if (a.keys == 0)
    return a.zero_result(share(args, a.batch * a.heads * a.queries));
  // Blocks of equal height, in whole tiles.
  int64_t blocks = max_of(1, ceil_div(a.queries, query_block));
  int64_t height =
      min_of(query_block, round_up(ceil_div(a.queries, blocks), tile_rows));
  blocks = ceil_div(a.queries, max_of(1, height));
  Range mine = share(args, a.batch * a.heads * blocks);
  if (mine.begin == mine.end)
    return;
  typename BlockFor<Cfg>::type block;
  for (int64_t x = mine.begin; x < mine.end; ++x) {
    int64_t head = x / blocks, from = (x - head * blocks) * height;
    block.attend(block, a, head / a.heads, head % a.heads, from,
                 min_of(a.queries, from + height));
  }
}

/// A row of Size floats in registers.
template <int64_t Size> struct RowVectors {
  static constexpr int count = int(ceil_div(Size, vf::width));
  vf part[count];

  static TN_FN vf fetch(const float *row, int64_t stride, int i) {
    const float *p = row + i * vf::width * stride;
    int64_t lanes = min_of(vf::width, Size - i * vf::width);
    if (stride != 1)
      return load_strided(p, stride, lanes);
    return lanes == vf::width ? load(p) : load_n(p, lanes);
  }
};

/// One query against one split of the keys; the result is `max`, `sum` and the
/// weighted values, Dv of them.
template <class Cfg>
TN_FN void attend_split(const Attention<Cfg> &a, int64_t b, int64_t h,
                        int64_t i, Range keys, float *out) {
  using Head = RowVectors<Cfg::D>;
  using Value = RowVectors<Cfg::Dv>;
  alignas(64) float scores[key_split];
  int64_t g = h / a.group, n = keys.end - keys.begin;
  const int64_t *ks = a.views[1].stride, *vs = a.views[2].stride;

  const float *row = a.row(0, b, i, h);
  Head q;
  TN_UNROLL
  for (int x = 0; x < Head::count; ++x)
    q.part[x] = Head::fetch(row, a.views[0].stride[3], x);
  row = a.row(1, b, keys.begin, g);
  for (int64_t j = 0; j < n; ++j, row += ks[1]) {
    vf dot = vf(0);
    TN_UNROLL
    for (int x = 0; x < Head::count; ++x)
      dot = fma(q.part[x], Head::fetch(row, ks[3], x), dot);
    scores[j] = reduce_add(dot);
  }

  Range visible = a.seen(i);
  visible.end = min_of(visible.end, keys.end);
  vf top = vf(score_none);
  for (int64_t j = 0; j < n; j += vf::width) {
    vf x = a.score(load(scores + j), b, h, i, keys.begin + j,
                   min_of(vf::width, n - j), visible);
    store(scores + j, x);
    top = max_raw(top, x);
  }
  float max = reduce_max(top), shift = max == score_none ? 0.0f : max;
  vf total = vf(0);
  for (int64_t j = 0; j < n; j += vf::width) {
    vf e = math::exp(load(scores + j) - vf(shift));
    store(scores + j, e);
    total = total + e;
  }
  out[0] = max;
  out[1] = reduce_add(total);

  Value acc;
  TN_UNROLL
  for (int x = 0; x < Value::count; ++x)
    acc.part[x] = vf(0);
  row = a.row(2, b, keys.begin, g);
  for (int64_t j = 0; j < n; ++j, row += vs[1]) {
    vf weight = vf(scores[j]);
    TN_UNROLL
    for (int x = 0; x < Value::count; ++x)
      acc.part[x] = fma(weight, Value::fetch(row, vs[3], x), acc.part[x]);
  }
  for (int x = 0; x < Value::count; ++x)
    store_n(out + 2 + x * vf::width, acc.part[x],
            min_of(vf::width, Cfg::Dv - x * vf::width));
}

/// Joins the splits of query i and writes its row of o.
template <class Cfg>
TN_FN void join_splits(const Attention<Cfg> &a, int64_t b, int64_t h, int64_t i,
                       const float *parts, int64_t splits) {
  constexpr int64_t Dv = Cfg::Dv, size = Dv + 2;
  alignas(64) float acc[Attention<Cfg>::wide_v] = {};
  float max = score_none, sum = 0;
  for (int64_t s = 0; s < splits; ++s)
    max = parts[s * size] > max ? parts[s * size] : max;
  float shift = max == score_none ? 0.0f : max;
  for (int64_t s = 0; s < splits; ++s) {
    const float *p = parts + s * size;
    float keep = SoftmaxBlock<Cfg>::exp_of(p[0] - shift);
    sum += p[1] * keep;
    for (int64_t d = 0; d < Dv; ++d)
      acc[d] += p[2 + d] * keep;
  }
  a.finish(b, h, i, acc, sum, max);
}

template <class Cfg> void attention_decode(const tn_args *args) {
  constexpr int64_t size = Cfg::Dv + 2;
  Attention<Cfg> a(args);
  int64_t rows = a.batch * a.heads * a.queries;
  if (a.keys == 0)
    return a.zero_result(share(args, rows));
  int64_t splits = ceil_div(a.keys, key_split);
  float *parts = (float *)args->scratch;
  // Row-major over (batch, head, query, split).
  Range mine = share(args, rows * splits);
  for (int64_t x = mine.begin; x < mine.end; ++x) {
    int64_t r = x / splits, s = x - r * splits, head = r / a.queries;
    Range keys = {s * key_split, min_of(a.keys, (s + 1) * key_split)};
    attend_split(a, head / a.heads, head % a.heads, r % a.queries, keys,
                 parts + x * size);
  }
  args->barrier(args);
  mine = share(args, rows);
  for (int64_t r = mine.begin; r < mine.end; ++r) {
    int64_t head = r / a.queries;
    join_splits(a, head / a.heads, head % a.heads, r % a.queries,
                parts + r * splits * size, splits);
  }
}

/// Prefill and decode in one plan.
template <class Cfg> void attention_any(const tn_args *args) {
  if (args->views[0].shape[1] <= decode_queries)
    attention_decode<Cfg>(args);
  else
    attention<Cfg>(args);
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CPU_ATTENTION_H
