//===- attention_block.h - operands of attention, and its softmax ---------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What the forms of attention.h have in common, whose contract this is.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CPU_ATTENTION_BLOCK_H
#define TENON_KERNELS_CPU_ATTENTION_BLOCK_H

#include "kernels/common/attention_forms.h"
#include "kernels/common/strided.h"
#include "kernels/cpu/micro.h"
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

/// Queries of a block, and keys that it meets at a time.
inline constexpr int64_t query_block = 128, key_block = 128;

/// A block of queries of one head, but for how its products are made: running
/// maxima, sums and weighted values.
template <class Cfg> struct SoftmaxBlock {
  using A = Attention<Cfg>;
  static constexpr int64_t D = A::D, Dv = A::Dv, wide_v = A::wide_v;

  alignas(64) float scores[query_block * key_block];
  alignas(64) float acc[query_block * wide_v];
  float max[query_block], sum[query_block];
  bool first_block;

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

  /// The queries [from, to) of head h of batch b by `self`, which knows how to
  /// load_queries, load_keys, multiply_keys and multiply_values.
  template <class Self>
  TN_FN void attend(Self &self, const A &a, int64_t b, int64_t h, int64_t from,
                    int64_t to) {
    int64_t rows = to - from, g = h / a.group;
    self.load_queries(a, a.row(0, b, from, h), rows);
    for (int64_t r = 0; r < rows; ++r) {
      max[r] = score_none;
      sum[r] = 0;
    }
    int64_t first = a.seen(from).begin / key_block * key_block;
    int64_t end = a.seen(to - 1).end;
    first_block = true;
    for (; first < end; first += key_block) {
      int64_t n = min_of(key_block, end - first);
      self.load_keys(a, a.row(1, b, first, g), a.row(2, b, first, g), n);
      self.multiply_keys(rows, n);
      for (int64_t r = 0; r < rows; ++r)
        soften(a, b, h, from + r, r, first, n);
      self.multiply_values(rows, n);
      first_block = false;
    }
    for (int64_t r = 0; r < rows; ++r)
      a.finish(b, h, from + r, acc + r * wide_v, sum[r], max[r]);
  }
};

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CPU_ATTENTION_BLOCK_H
