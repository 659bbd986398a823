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

#include "kernels/common/attention_forms.h"
#include "kernels/common/strided.h"
#include "kernels/cpu/micro.h"
#include "kernels/cpu/transpose.h"
#include "kernels/cpu/vec_ops.h"

namespace tn {
inline namespace TN_FORM {

/// The operands of one attention, with the sizes that are the same for all
/// heads.
template <class Cfg> struct Attention {
  static constexpr bool has_mask = Cfg::mask != Mask::none;
  static constexpr bool bounded = Cfg::left != dynamic || Cfg::right != dynamic;
  static constexpr int slope_view = 3 + has_mask;
  static constexpr int o_view = slope_view + Cfg::alibi;
  static constexpr int64_t D = Cfg::D, Dv = Cfg::Dv;
  static constexpr int64_t wide_v = round_up(Dv, tile_columns);

  const tn_view *views;
  int64_t batch, queries, heads, keys, group;
  int64_t offset; ///< a query's place among the keys, less its index

  explicit Attention(const tn_args *args) : views(args->views) {
    batch = views[0].shape[0];
    queries = views[0].shape[1];
    heads = views[0].shape[2];
    keys = views[1].shape[1];
    group = max_of(1, heads / max_of(1, views[1].shape[2]));
    offset = query_offset<Cfg>(args, queries, keys);
  }

  /// Row s of head h of view `i`, which is [B, S, H, D].
  TN_FN float *row(int i, int64_t b, int64_t s, int64_t h) const {
    const int64_t *stride = views[i].stride;
    return (float *)views[i].data + b * stride[0] + s * stride[1] +
           h * stride[2];
  }

  /// The keys that query i may see.
  TN_FN Range seen(int64_t i) const {
    VisibleKeys r = visible_keys<Cfg>(i + offset, keys);
    return {r.begin, r.end};
  }

  /// The final scores of keys j .. j + lanes - 1 from their products q . k;
  /// lanes that query i does not see become -inf.
  TN_FN vf score(vf product, int64_t b, int64_t h, int64_t i, int64_t j,
                 int64_t lanes, Range visible) const {
    vf s = product * vf(Cfg::scale);
    if constexpr (Cfg::softcap != 0)
      s = vf(Cfg::softcap) * math::tanh(s * vf(1.0f / Cfg::softcap));
    if constexpr (Cfg::alibi) {
      float slope = ((const float *)views[slope_view].data)[h];
      alignas(64) float distance[vf::width];
      for (int x = 0; x < vf::width; ++x)
        distance[x] = slope * float(j + x - i - offset);
      s = s + load(distance);
    }
    if constexpr (has_mask) {
      const tn_view &m = views[3];
      const int64_t *t = m.stride;
      int64_t at = b * t[0] + h * t[1] + i * t[2] + j * t[3];
      if constexpr (Cfg::mask == Mask::additive) {
        const float *p = (const float *)m.data + at;
        s = s + (t[3] == 1   ? load_n(p, lanes)
                 : t[3] == 0 ? vf(*p)
                             : load_strided(p, t[3], lanes));
      } else {
        const uint8_t *p = (const uint8_t *)m.data + at;
        vm on = t[3] == 1   ? load_mask_n(p, lanes)
                : t[3] == 0 ? mask_of(*p)
                            : load_mask_strided(p, t[3], lanes);
        s = select(on, s,
                   vf(Cfg::masked_row == MaskedRow::uniform ? score_masked
                                                            : score_none));
      }
    }
    if (j < visible.begin || j + vf::width > visible.end) {
      vm in = first_lanes(max_of(0, visible.end - j)) &
              ~first_lanes(max_of(0, visible.begin - j));
      s = select(in, s, vf(score_none));
    }
    return s;
  }

  /// Whether a row with this greatest score is a uniform one.
  TN_FN bool is_uniform(float max, Range visible) const {
    return is_uniform_row<Cfg>(max, visible.begin == visible.end);
  }

  /// Writes query i's row of o from its weighted sum of v, whose weights add up
  /// to `sum`.
  TN_FN void finish(int64_t b, int64_t h, int64_t i, const float *acc,
                    float sum, float max) const {
    float *o = row(o_view, b, i, h);
    int64_t stride = views[o_view].stride[3];
    float scale = 1.0f / sum;
    if (sum == 0)
      scale = Cfg::masked_row == MaskedRow::zero ? 0.0f : __builtin_nanf("");
    if (is_uniform(max, seen(i)))
      return mean_of_values(b, h, o, stride);
    if (stride != 1) {
      for (int64_t d = 0; d < Dv; ++d)
        o[d * stride] = sum == 0 && scale == 0 ? 0 : acc[d] * scale;
      return;
    }
    for (int64_t d = 0; d < Dv; d += vf::width) {
      vf x = sum == 0 ? vf(scale) : load(acc + d) * vf(scale);
      store_n(o + d, x, min_of(vf::width, Dv - d));
    }
  }

  /// What a fully masked row gives where masks are large finite numbers.
  void mean_of_values(int64_t b, int64_t h, float *o, int64_t stride) const {
    int64_t v_stride = views[2].stride[3];
    for (int64_t d = 0; d < Dv; ++d) {
      double sum = 0;
      for (int64_t j = 0; j < keys; ++j)
        sum += row(2, b, j, h / group)[d * v_stride];
      o[d * stride] = float(sum / double(keys));
    }
  }

  void zero_result(Range rows) const {
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      int64_t i = r % queries, bh = r / queries;
      float *o = row(o_view, bh / heads, i, bh % heads);
      for (int64_t d = 0; d < Dv; ++d)
        o[d * views[o_view].stride[3]] = 0;
    }
  }
};

inline constexpr int64_t query_block = 128, key_block = 128, key_split = 256;
/// Up to so many queries the split-KV form keeps more threads busy.
inline constexpr int64_t decode_queries = 8;

/// A block of queries of one head: running maxima, sums and weighted values.
template <class Cfg> struct QueryBlock {
  using A = Attention<Cfg>;
  static constexpr int64_t D = A::D, Dv = A::Dv, wide_v = A::wide_v;

  alignas(64) float packed_k[D * key_block];
  alignas(64) float packed_v[wide_v * key_block];
  alignas(64) float scores[query_block * key_block];
  alignas(64) float acc[query_block * wide_v];
  alignas(64) float packed_q[query_block * D];
  float max[query_block], sum[query_block];

  /// Exponentials of row r's scores for the keys [first, first + n), in place;
  /// brings the row's maximum, sum and values up to date. Keys past n count as
  /// unseen.
  TN_FN void soften(const A &a, int64_t b, int64_t h, int64_t i, int64_t r,
                    int64_t first, int64_t n) {
    float *s = scores + r * key_block;
    Range visible = a.seen(i);
    visible.end = min_of(visible.end, first + n);
    vf top = vf(score_none);
    for (int64_t j = 0; j < n; j += vf::width) {
      vf x = a.score(load(s + j), b, h, i, first + j, min_of(vf::width, n - j),
                     visible);
      store(s + j, x);
      top = max_raw(top, x);
    }
    float old = max[r], now = reduce_max(top);
    now = now > old ? now : old;
    // A row that has seen nothing yet must not meet -inf - -inf.
    float shift = now == score_none ? 0.0f : now;
    vf total = vf(0);
    for (int64_t j = 0; j < n; j += vf::width) {
      vf e = math::exp(load(s + j) - vf(shift));
      store(s + j, e);
      total = total + e;
    }
    float keep = first_block ? 0.0f : exp_of(old - shift);
    max[r] = now;
    sum[r] = sum[r] * keep + reduce_add(total);
    if (!first_block && keep != 1.0f)
      for (int64_t d = 0; d < wide_v; d += vf::width) {
        float *p = acc + r * wide_v + d;
        store(p, load(p) * vf(keep));
      }
  }

  /// e^x by the vectors' own function, so that both sides of a sum agree.
  static TN_FN float exp_of(float x) {
    alignas(64) float lanes[vf::width];
    store(lanes, math::exp(vf(x)));
    return lanes[0];
  }

  bool first_block;

  /// scores[rows, n] = q[rows, D] * k[first .. first + n, D]^T.
  TN_FN void multiply_keys(const float *q, int64_t q_stride, int64_t rows,
                           int64_t n) {
    Tile t = {};
    t.lda = q_stride;
    t.k = D;
    t.ldc = key_block;
    multiply_panels(t, q, packed_k, rows, n, scores);
  }

  /// acc[rows, Dv] (+)= scores[rows, n] * v[n, Dv].
  TN_FN void multiply_values(int64_t rows, int64_t n) {
    Tile t = {};
    t.lda = key_block;
    t.k = n;
    t.ldc = wide_v;
    t.accumulate = !first_block;
    multiply_panels(t, scores, packed_v, rows, Dv, acc);
  }

  /// The queries [from, to) of head h of batch b.
  void run(const A &a, int64_t b, int64_t h, int64_t from, int64_t to) {
    int64_t rows = to - from, g = h / a.group;
    const tn_view &qv = a.views[0], &kv = a.views[1], &vv = a.views[2];
    const float *q = a.row(0, b, from, h);
    int64_t q_stride = qv.stride[1];
    if (qv.stride[3] != 1) {
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t d = 0; d < D; ++d)
          packed_q[i * D + d] = q[i * q_stride + d * qv.stride[3]];
      q = packed_q;
      q_stride = D;
    }
    for (int64_t r = 0; r < rows; ++r) {
      max[r] = score_none;
      sum[r] = 0;
    }
    int64_t first = a.seen(from).begin / key_block * key_block;
    int64_t end = a.seen(to - 1).end;
    first_block = true;
    for (; first < end; first += key_block) {
      int64_t n = min_of(key_block, end - first);
      pack_panels(a.row(1, b, first, g), D, n, kv.stride[3], kv.stride[1],
                  packed_k);
      pack_panels(a.row(2, b, first, g), n, Dv, vv.stride[1], vv.stride[3],
                  packed_v);
      multiply_keys(q, q_stride, rows, n);
      for (int64_t r = 0; r < rows; ++r)
        soften(a, b, h, from + r, r, first, n);
      multiply_values(rows, n);
      first_block = false;
    }
    for (int64_t r = 0; r < rows; ++r)
      a.finish(b, h, from + r, acc + r * wide_v, sum[r], max[r]);
  }
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
  QueryBlock<Cfg> block;
  for (int64_t x = mine.begin; x < mine.end; ++x) {
    int64_t head = x / blocks, from = (x - head * blocks) * height;
    block.run(a, head / a.heads, head % a.heads, from,
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
    float keep = QueryBlock<Cfg>::exp_of(p[0] - shift);
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
