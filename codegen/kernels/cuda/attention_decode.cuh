//===- attention_decode.cuh - attention of few queries, split by keys -----===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Attention as attention_rules.cuh defines it, of f32, f16 and bf16, for few
/// queries and many keys: bound by reading k and v once. Any number of queries
/// is right.
///
///   entry   tn::attention_decode<Cfg>(args)
///
///   Cfg     that of attention_rules.cuh, and
///           static constexpr int rows      queries that a block has together,
///                                          1 to 8
///           static constexpr int split     keys that a block has, a multiple
///                                          of 32
///           static constexpr int threads   128
///   grid    x ceil(Skv / split), at least 1
///           y Hkv * ceil(H / Hkv * Sq / rows)
///           z min(B, 65535)
///   block   128
///   shared  DecodeShape<Cfg>::shared_bytes
///   scratch if grid x > 1: 4 * B * grid y * grid x * rows * (Dv + 2) bytes,
///   and
///           B * grid y launch counters
///
/// The H / Hkv heads that share a head of k and v count as so many queries, so
/// k and v are read once for all of them. The last block of those queries to
/// finish joins the splits, in order of keys: results do not depend on the
/// order in which blocks run.
///
/// Numerics: everything in f32; exponentials to 1 ulp for f32, to 2 ulp else.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CUDA_ATTENTION_DECODE_CUH
#define TENON_KERNELS_CUDA_ATTENTION_DECODE_CUH

#include "kernels/cuda/attention_rules.cuh"
#include "kernels/cuda/lanes.cuh"

namespace tn {
inline namespace TN_FORM {

/// Which lanes share a row of `Size` elements of T: `across` lanes, a power of
/// two, of `pieces` vectors of `width` elements each, `across` vectors apart.
template <class T, int Size> struct RowSplit {
  static constexpr int width = 16 / sizeof(T);
  static constexpr int vectors = (Size + width - 1) / width;
  static constexpr int across = vectors > 16  ? 32
                                : vectors > 8 ? 16
                                : vectors > 4 ? 8
                                              : 4;
  static constexpr int pieces = (vectors + across - 1) / across;

  /// Piece `piece` of a row for lane `x` of `across`; 0 beyond its end.
  static TN_FN lanes<float, width> load(const T *row, int x, int piece) {
    int at = (piece * across + x) * width;
    if (at >= Size) {
      lanes<float, width> zero = {};
      return zero;
    }
    lanes<T, width> v = load_lanes<width>(row + at, Size - at);
    lanes<float, width> r;
    TN_UNROLL
    for (int i = 0; i < width; ++i)
      r.x[i] = to_float(v.x[i]);
    return r;
  }
};

template <class Cfg> struct DecodeShape {
  using T = typename Cfg::T;
  static constexpr int rows = Cfg::rows, split = Cfg::split;
  static constexpr int threads = 128;
  using Keys = RowSplit<T, Cfg::D>;
  using Values = RowSplit<T, Cfg::Dv>;
  /// How many keys are handled at once.
  static constexpr int key_groups = threads / Keys::across,
                       value_groups = threads / Values::across;
  /// Weights by row; then a row of sums for each group of values.
  static constexpr int weights_bytes = rows * split * 4;
  static constexpr int Dv_padded =
      Values::pieces * Values::across * Values::width;
  static constexpr int shared_bytes =
      weights_bytes + rows * 8 + value_groups * Dv_padded * 4;
};

/// A block's queries: `rows` of the H / Hkv * Sq that share head g, from
/// `first` on, and its split of the keys.
template <class Cfg> struct DecodeBlock {
  using A = Attention<Cfg>;
  using S = DecodeShape<Cfg>;
  using T = typename Cfg::T;
  using Keys = typename S::Keys;
  using Values = typename S::Values;
  static constexpr int rows = S::rows;

  const A &a;
  int b, g, first;
  int key, keys; ///< the split's first, and how many
  float *weights, *maxima, *totals, *sums;

  TN_FN DecodeBlock(const A &a, int b, int g, int first)
      : a(a), b(b), g(g), first(first), key(int(blockIdx.x) * S::split) {
    keys = a.keys - key < S::split ? a.keys - key : S::split;
    weights = (float *)shared_memory();
    maxima = weights + rows * S::split;
    totals = maxima + rows;
    sums = totals + rows;
  }

  TN_FN int count() const {
    int rest = a.group * a.queries - first;
    return rest < rows ? rest : rows;
  }
  TN_FN int query(int r) const { return (first + r) / a.group; }
  TN_FN int head(int r) const { return g * a.group + (first + r) % a.group; }

  /// weights[r][j] = the score of key j.
  TN_FN void score_keys() {
    int x = threadIdx.x % Keys::across;
    lanes<float, Keys::width> q[rows][Keys::pieces];
    TN_UNROLL
    for (int r = 0; r < rows; ++r)
      TN_UNROLL
    for (int p = 0; p < Keys::pieces; ++p) {
      int row = r < count() ? r : 0;
      q[r][p] = Keys::load(A::row(a.q, b, query(row), head(row)), x, p);
    }
    // Whole groups take part in the shuffles, with or without a key.
    int rounds = (keys + S::key_groups - 1) / S::key_groups;
    TN_PRAGMA(unroll 2)
    for (int round = 0; round < rounds; ++round) {
      int j = round * S::key_groups + int(threadIdx.x) / Keys::across;
      const T *row = A::row(a.k, b, key + (j < keys ? j : 0), g);
      float dot[rows] = {};
      TN_UNROLL
      for (int p = 0; p < Keys::pieces; ++p) {
        auto k = Keys::load(row, x, p);
        TN_UNROLL
        for (int r = 0; r < rows; ++r)
          TN_UNROLL
        for (int i = 0; i < Keys::width; ++i)
          dot[r] = __fmaf_rn(q[r][p].x[i], k.x[i], dot[r]);
      }
      TN_UNROLL
      for (int r = 0; r < rows; ++r) {
        TN_UNROLL
        for (int step = Keys::across / 2; step > 0; step /= 2)
          dot[r] += __shfl_xor_sync(all_lanes, dot[r], step);
        if (x == r % Keys::across && j < keys)
          weights[r * S::split + j] = dot[r];
      }
    }
  }

  /// Scores become weights; each warp has rows of its own.
  TN_FN void soften() {
    for (int r = warp_id(); r < count(); r += S::threads / 32) {
      int i = query(r), h = head(r);
      Seen visible = a.seen(i);
      float *w = weights + r * S::split;
      float top = score_none;
      for (int j = lane_id(); j < keys; j += 32) {
        float s = a.score(w[j], h, i, key + j);
        if constexpr (A::has_mask)
          s = A::masked(s, a.mask_at(b, h, i, key + j));
        if (!visible.has(key + j))
          s = score_none;
        w[j] = s;
        top = fmaxf(top, s);
      }
      top = warp_reduce(top, Greater());
      float shift = top == score_none ? 0.0f : top, total = 0;
      for (int j = lane_id(); j < keys; j += 32) {
        w[j] = exp_for<T>(w[j] - shift);
        total += w[j];
      }
      total = warp_reduce(total, Add());
      if (lane_id() == 0) {
        maxima[r] = top;
        totals[r] = total;
      }
    }
  }

  /// put(r, d, sum over the split's keys of weight v[d]) for every row.
  template <class Put> TN_FN void sum_values(Put put) {
    int x = threadIdx.x % Values::across, group = threadIdx.x / Values::across;
    lanes<float, Values::width> acc[rows][Values::pieces] = {};
    TN_PRAGMA(unroll 2)
    for (int j = group; j < keys; j += S::value_groups) {
      const T *row = A::row(a.v, b, key + j, g);
      TN_UNROLL
      for (int p = 0; p < Values::pieces; ++p) {
        auto v = Values::load(row, x, p);
        TN_UNROLL
        for (int r = 0; r < rows; ++r) {
          float w = r < count() ? weights[r * S::split + j] : 0.0f;
          TN_UNROLL
          for (int i = 0; i < Values::width; ++i)
            acc[r][p].x[i] = __fmaf_rn(w, v.x[i], acc[r][p].x[i]);
        }
      }
    }
    TN_UNROLL
    for (int r = 0; r < rows; ++r) {
      __syncthreads();
      TN_UNROLL
      for (int p = 0; p < Values::pieces; ++p)
        TN_UNROLL
      for (int i = 0; i < Values::width; ++i)
        sums[group * S::Dv_padded + (p * Values::across + x) * Values::width +
             i] = acc[r][p].x[i];
      __syncthreads();
      if (r < count())
        for (int d = threadIdx.x; d < Cfg::Dv; d += S::threads) {
          float total = 0;
          TN_UNROLL
          for (int s = 0; s < S::value_groups; ++s)
            total += sums[s * S::Dv_padded + d];
          put(r, d, total);
        }
    }
  }

  /// Writes element d of row r's result.
  TN_FN void finish(int r, int d, float sum, float total, float max) const {
    int i = query(r), h = head(r);
    float value = sum * a.factor(total);
    if (total == 0 && Cfg::masked_row == MaskedRow::zero)
      value = 0;
    if (a.is_uniform(max, a.seen(i)))
      value = a.mean_of_values(b, h, d);
    A::row(a.o, b, i, h)[d] = from_float<T>(value);
  }

  /// Joins the splits, whose parts lie one after another in scratch.
  TN_FN void join(const float *parts, int splits) const {
    constexpr int size = Cfg::Dv + 2;
    for (int r = 0; r < count(); ++r) {
      float max = score_none, total = 0;
      for (int s = 0; s < splits; ++s)
        max = fmaxf(max, parts[(s * rows + r) * size]);
      float shift = max == score_none ? 0.0f : max;
      for (int s = 0; s < splits; ++s) {
        const float *p = parts + (s * rows + r) * size;
        total += p[1] * exp_for<T>(p[0] - shift);
      }
      for (int d = threadIdx.x; d < Cfg::Dv; d += S::threads) {
        float sum = 0;
        for (int s = 0; s < splits; ++s) {
          const float *p = parts + (s * rows + r) * size;
          sum += p[2 + d] * exp_for<T>(p[0] - shift);
        }
        finish(r, d, sum, total, max);
      }
    }
  }

  TN_FN void run(float *parts, uint32_t *counter) {
    constexpr int size = Cfg::Dv + 2;
    int splits = gridDim.x;
    score_keys();
    __syncthreads();
    soften();
    __syncthreads();
    if (splits == 1) {
      sum_values([&](int r, int d, float sum) {
        finish(r, d, sum, totals[r], maxima[r]);
      });
      return;
    }
    float *mine = parts + int64_t(blockIdx.x) * rows * size;
    sum_values([&](int r, int d, float sum) {
      mine[r * size + 2 + d] = sum;
      if (d == 0) {
        mine[r * size] = maxima[r];
        mine[r * size + 1] = totals[r];
      }
    });
    if (is_last_block(counter, splits))
      join(parts, splits);
  }
};

template <class Cfg> TN_FN void attention_decode(const tn_args *args) {
  using S = DecodeShape<Cfg>;
  static_assert(Cfg::threads == S::threads);
  Attention<Cfg> a(args);
  int groups = (a.group * a.queries + S::rows - 1) / S::rows;
  if (groups == 0)
    return;
  int g = int(blockIdx.y) / groups, first = int(blockIdx.y) % groups * S::rows;
  float *parts = (float *)args->scratch;
  for (int b = blockIdx.z; b < a.batch; b += gridDim.z) {
    int64_t index = int64_t(b) * gridDim.y + blockIdx.y;
    DecodeBlock<Cfg> block(a, b, g, first);
    block.run(parts + index * gridDim.x * S::rows * (Cfg::Dv + 2),
              launch_counters(args) + index);
    __syncthreads();
  }
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CUDA_ATTENTION_DECODE_CUH
