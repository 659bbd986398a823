//===- attention.cuh - flash attention on tensor cores --------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Attention as attention_rules.cuh defines it, of f16 and bf16, without a
/// matrix of scores.
///
///   entry   tn::attention_mma<Cfg>(args)
///
///   Cfg     that of attention_rules.cuh, and
///           using Tiling   tn::AttentionTiling<BM, BN>, one of
///                          attention_tunings.def
///           static constexpr bool has_mask   mask != Mask::none
///           static constexpr int threads     AttentionShape<Cfg>::threads
///   grid    x ceil(Sq / BM), y H, z min(B, 65535)
///   block   AttentionShape<Cfg>::threads
///   shared  AttentionShape<Cfg>::shared_bytes
///   scratch none
///
/// D and Dv: any, up to 256; multiples of 16 waste nothing. bf16 needs sm_80.
///
/// Numerics: products of T with f32 sums; scores, running maximum and sum in
/// f32; exponentials to 2 ulp; the weights are rounded to T before they meet v,
/// the sum of weights is of the unrounded ones. Keys come in blocks of BN that
/// begin at multiples of BN.
///
/// While a block multiplies q by keys, the values of the same keys are on their
/// way; while it takes exponentials and multiplies by values, the next keys
/// are.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CUDA_ATTENTION_CUH
#define TENON_KERNELS_CUDA_ATTENTION_CUH

#include "kernels/cuda/attention_rules.cuh"
#include "kernels/cuda/attention_shape.cuh"
#include "kernels/cuda/copy.cuh"
#include "kernels/cuda/lanes.cuh"

namespace tn {
inline namespace TN_FORM {

/// One warp's 16 queries: a thread has rows lane / 4 and lane / 4 + 8.
template <class Cfg> struct QueryRows {
  using A = Attention<Cfg>;
  using S = AttentionShape<Cfg>;
  using T = typename Cfg::T;
  static constexpr int score_tiles = S::BN / 8;

  const A &a;
  int b, h;
  /// The warp's first query, and this thread's two.
  int first, row[2];
  Seen visible[2];
  uint32_t shared;
  float max[2], sum[2];
  float score[score_tiles][4];
  float acc[S::value_tiles][4];
  uint32_t query[S::keep_queries ? S::qk_steps : 1][4];

  TN_FN QueryRows(const A &a, int b, int h, int from)
      : a(a), b(b), h(h), first(from + warp_id() * 16),
        shared(shared_address(shared_memory())) {
    TN_UNROLL
    for (int r = 0; r < 2; ++r) {
      row[r] = first + fragment_row(lane_id()) + r * 8;
      visible[r] = a.seen(row[r]);
      max[r] = score_none;
      sum[r] = 0;
    }
    TN_UNROLL
    for (int j = 0; j < S::value_tiles; ++j)
      TN_UNROLL
    for (int x = 0; x < 4; ++x)
      acc[j][x] = 0;
  }

  TN_FN void load_query(uint32_t (&f)[4], int step) const {
    Place p = place_a(lane_id(), step);
    load_matrices(f, shared + S::QTile::at(warp_id() * 16 + p.row, p.chunk));
  }

  TN_FN void load_queries() {
    if constexpr (S::keep_queries)
      TN_UNROLL
    for (int step = 0; step < S::qk_steps; ++step)
      load_query(query[step], step);
  }

  /// score = q k^T for a block of keys.
  TN_FN void multiply_keys() {
    TN_UNROLL
    for (int j = 0; j < score_tiles; ++j)
      TN_UNROLL
    for (int x = 0; x < 4; ++x)
      score[j][x] = 0;
    // What is loaded again for each block of keys is not to be held from one to
    // the next.
    TN_PRAGMA(unroll(S::keep_queries ? S::qk_steps : 4))
    for (int step = 0; step < S::qk_steps; ++step) {
      if constexpr (!S::keep_queries)
        load_query(query[0], step);
      const uint32_t(&q)[4] = query[S::keep_queries ? step : 0];
      Place p = place_nk(lane_id(), step);
      TN_UNROLL
      for (int j = 0; j < score_tiles; j += 2) {
        uint32_t f[4];
        load_matrices(f,
                      shared + S::k_at + S::KTile::at(j * 8 + p.row, p.chunk));
        Mma<T>::run(score[j], q, {f[0], f[1]});
        Mma<T>::run(score[j + 1], q, {f[2], f[3]});
      }
    }
  }

  /// Fetches the warp's part of the mask for keys from `key` on into shared
  /// memory: all its rows, or one if they are the same.
  TN_FN void fetch_mask(int key) const {
    uint32_t to = shared + S::mask_at + warp_id() * S::mask_bytes;
    int rows = a.mask.stride[2] == 0 ? 1 : 16;
    __syncwarp();
    TN_PRAGMA(unroll 4)
    for (int r = 0; r < rows; ++r)
      TN_UNROLL
    for (int j = lane_id(); j < S::BN; j += 32) {
      float m = 0;
      if (first + r < a.queries && key + j < a.keys)
        m = a.mask_at(b, h, first + r, key + j);
      store_shared4(to + (r * S::mask_pitch + j) * 4, bits_of(m));
    }
    __syncwarp();
  }

  /// Turns products into scores; -inf for keys that a row does not see.
  TN_FN void finish_scores(int key) {
    int column = fragment_column(lane_id());
    uint32_t mask = shared + S::mask_at + warp_id() * S::mask_bytes;
    bool one = a.mask.stride[2] == 0;
    // Whether every row of the warp sees all of the block's keys.
    bool all = key >= visible[0].begin && key >= visible[1].begin &&
               key + S::BN <= visible[0].end && key + S::BN <= visible[1].end;
    all = __all_sync(all_lanes, all);
    TN_UNROLL
    for (int j = 0; j < score_tiles; ++j)
      TN_UNROLL
    for (int r = 0; r < 2; ++r) {
      Words2 m = {};
      if constexpr (A::has_mask) {
        int line = one ? 0 : fragment_row(lane_id()) + r * 8;
        m = load_shared8(mask + (line * S::mask_pitch + j * 8 + column) * 4);
      }
      TN_UNROLL
      for (int x = 0; x < 2; ++x) {
        float &s = score[j][r * 2 + x];
        int at = key + j * 8 + column + x;
        s = A::masked(a.score(s, h, row[r], at), float_of(m.x[x]));
        if (!all && !visible[r].has(at))
          s = score_none;
      }
    }
  }

  /// Scores become weights; brings the rows' maxima, sums and values up to
  /// date.
  TN_FN void soften() {
    TN_UNROLL
    for (int r = 0; r < 2; ++r) {
      float top = max[r];
      TN_UNROLL
      for (int j = 0; j < score_tiles; ++j)
        top = fmaxf(top, fmaxf(score[j][r * 2], score[j][r * 2 + 1]));
      top = fmaxf(top, __shfl_xor_sync(all_lanes, top, 1));
      top = fmaxf(top, __shfl_xor_sync(all_lanes, top, 2));
      // A row that has seen nothing yet must not meet -inf - -inf.
      float shift = top == score_none ? 0.0f : top;
      float keep = exp_for<T>(max[r] - shift), total = 0;
      TN_UNROLL
      for (int j = 0; j < score_tiles; ++j)
        TN_UNROLL
      for (int x = 0; x < 2; ++x) {
        float &s = score[j][r * 2 + x];
        s = exp_for<T>(s - shift);
        total += s;
      }
      max[r] = top;
      sum[r] = sum[r] * keep + total;
      TN_UNROLL
      for (int j = 0; j < S::value_tiles; ++j) {
        acc[j][r * 2] *= keep;
        acc[j][r * 2 + 1] *= keep;
      }
    }
  }

  /// acc += weights v for a block of keys.
  TN_FN void multiply_values() {
    TN_UNROLL
    for (int step = 0; step < S::pv_steps; ++step) {
      uint32_t w[4];
      TN_UNROLL
      for (int x = 0; x < 4; ++x) {
        const float(&s)[4] = score[step * 2 + x / 2];
        w[x] = pack2<T>(s[x % 2 * 2], s[x % 2 * 2 + 1]);
      }
      Place p = place_kn(lane_id(), step);
      TN_UNROLL
      for (int j = 0; j < S::value_tiles; j += 2) {
        uint32_t f[4];
        load_matrices_transposed(f, shared + S::v_at +
                                        S::VTile::at(p.row, j + p.chunk));
        Mma<T>::run(acc[j], w, {f[0], f[1]});
        Mma<T>::run(acc[j + 1], w, {f[2], f[3]});
      }
    }
  }

  /// Writes the rows of o, through shared memory so that they leave in 16-byte
  /// pieces. A row whose values are to be averaged is written on its own.
  TN_FN void finish() {
    bool uniform[2];
    TN_UNROLL
    for (int r = 0; r < 2; ++r) {
      sum[r] += __shfl_xor_sync(all_lanes, sum[r], 1);
      sum[r] += __shfl_xor_sync(all_lanes, sum[r], 2);
      float factor = a.factor(sum[r]);
      uniform[r] = a.is_uniform(max[r], visible[r]);
      int line = warp_id() * 16 + fragment_row(lane_id()) + r * 8;
      TN_UNROLL
      for (int j = 0; j < S::value_tiles; ++j) {
        float low = acc[j][r * 2] * factor, high = acc[j][r * 2 + 1] * factor;
        store_shared4(shared + S::OTile::at(line, j) +
                          fragment_column(lane_id()) * 2,
                      pack2<T>(low, high));
      }
    }
    __syncwarp();
    // The bit of lane 4 g is that of row g.
    unsigned low = __ballot_sync(all_lanes, uniform[0]),
             high = __ballot_sync(all_lanes, uniform[1]);
    auto averaged = [&](int r) {
      return (r < 8 ? low >> r * 4 : high >> (r - 8) * 4) & 1;
    };
    constexpr int pieces = (S::Dv + 7) / 8;
    for (int x = lane_id(); x < 16 * pieces; x += 32) {
      int r = x / pieces, piece = x % pieces;
      if (first + r >= a.queries || averaged(r))
        continue;
      union {
        Words4 words;
        lanes<T, 8> v;
      } u;
      u.words = load_shared16(shared + S::OTile::at(warp_id() * 16 + r, piece));
      store_lanes(A::row(a.o, b, first + r, h) + piece * 8, u.v,
                  S::Dv - piece * 8);
    }
    if constexpr (Cfg::masked_row == MaskedRow::uniform)
      for (int r = 0; r < 16; ++r)
        if (first + r < a.queries && averaged(r))
          for (int d = lane_id(); d < S::Dv; d += 32)
            A::row(a.o, b, first + r, h)[d] =
                from_float<T>(a.mean_of_values(b, h, d));
  }
};

/// Starts the copy of a tile of q, k or v: rows from `from` on.
template <class Cfg, class Tile>
TN_FN void fetch_rows(const tn_view &view, int b, int from, int rows, int h,
                      int size, uint32_t to) {
  using T = typename Cfg::T;
  Source s = {(const char *)Attention<Cfg>::row(view, b, from, h),
              view.stride[1] * int64_t(sizeof(T)), rows - from,
              size * int(sizeof(T))};
  copy_tile<Tile, AttentionShape<Cfg>::threads, Cfg::align_rows>(to, s,
                                                                 threadIdx.x);
}

/// The queries from `from` on of head h of batch b.
template <class Cfg>
TN_FN void attend_block(const Attention<Cfg> &a, int b, int h, int from) {
  using S = AttentionShape<Cfg>;
  QueryRows<Cfg> rows(a, b, h, from);
  int last = from + S::BM < a.queries ? from + S::BM - 1 : a.queries - 1;
  int key = a.seen(from).begin / S::BN * S::BN, end = a.seen(last).end;
  int g = h / a.group;
  uint32_t shared = rows.shared;
  if (key < end) {
    fetch_rows<Cfg, typename S::QTile>(a.q, b, from, a.queries, h, S::D,
                                       shared);
    fetch_rows<Cfg, typename S::KTile>(a.k, b, key, a.keys, g, S::D,
                                       shared + S::k_at);
  }
  commit_copies();
  for (bool start = true; key < end; key += S::BN, start = false) {
    // Keys are here; everybody has done with the last values.
    wait_copies<0>();
    __syncthreads();
    if (start)
      rows.load_queries();
    fetch_rows<Cfg, typename S::VTile>(a.v, b, key, a.keys, g, S::Dv,
                                       shared + S::v_at);
    commit_copies();
    rows.multiply_keys();
    if constexpr (Cfg::has_mask)
      rows.fetch_mask(key);
    rows.finish_scores(key);
    // Values are here; everybody has done with the keys.
    wait_copies<0>();
    __syncthreads();
    if (key + S::BN < end)
      fetch_rows<Cfg, typename S::KTile>(a.k, b, key + S::BN, a.keys, g, S::D,
                                         shared + S::k_at);
    commit_copies();
    rows.soften();
    rows.multiply_values();
  }
  wait_copies<0>();
  // The result takes the place of the queries.
  __syncthreads();
  rows.finish();
}

template <class Cfg> TN_FN void attention_mma(const tn_args *args) {
  using S = AttentionShape<Cfg>;
  static_assert(Cfg::threads == S::threads &&
                Cfg::has_mask == (Cfg::mask != Mask::none));
  Attention<Cfg> a(args);
  // The last queries of a causal attention have most to do: they begin.
  int from = int(gridDim.x - 1 - blockIdx.x) * S::BM;
  for (int b = blockIdx.z; b < a.batch; b += gridDim.z) {
    attend_block(a, b, int(blockIdx.y), from);
    __syncthreads();
  }
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CUDA_ATTENTION_CUH
