//===- attention_flash.cuh - attention without a matrix of scores ---------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What the forms of flash attention share, whatever makes their products:
/// attention as attention_rules.cuh defines it, by blocks of BM queries that
/// meet BN keys at a time (FlashAttention-2, Dao 2023).
///
///   Cfg     that of attention_rules.cuh, and
///           using Tiling   tn::AttentionTiling<BM, BN>, one of tunings.def
///           static constexpr bool has_mask   mask != Mask::none
///           static constexpr int threads     AttentionShape<Cfg>::threads
///   grid    x ceil(Sq / BM), y H, z min(B, 65535)
///   block   AttentionShape<Cfg>::threads
///   shared  AttentionShape<Cfg>::shared_bytes
///   scratch none
///
/// D and Dv: any, up to 256. Keys come in blocks of BN that begin at multiples
/// of BN; blocks that no query sees are left out.
///
/// While a block multiplies q by keys, the values of the same keys are on their
/// way; while it takes exponentials and multiplies by values, the next keys
/// are.
///
/// A form derives from FlashRows and says how a warp's scores and results lie
/// in its lanes:
///
///   Form::rows, columns, values   of a thread
///   Form::run                     neighbouring columns, 1 or 2
///   Form::across                  neighbouring lanes that share a row
///   Form::Scores, Values          arrays of them; at(array, row, column)
///   Form::row(lane, r), column(lane, c)
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CUDA_ATTENTION_FLASH_CUH
#define TENON_KERNELS_CUDA_ATTENTION_FLASH_CUH

#include "kernels/cuda/attention_rules.cuh"
#include "kernels/cuda/attention_shape.cuh"
#include "kernels/cuda/copy.cuh"
#include "kernels/cuda/lanes.cuh"

namespace tn {
inline namespace TN_FORM {

/// One warp's queries.
template <class Cfg, class Form> struct FlashRows {
  using A = Attention<Cfg>;
  using S = AttentionShape<Cfg>;
  using T = typename Cfg::T;
  static constexpr int rows = Form::rows, columns = Form::columns;

  const A &a;
  int b, h;
  /// The warp's first query.
  int first;
  Seen visible[rows];
  uint32_t shared;
  float max[rows], sum[rows];
  typename Form::Scores score;
  typename Form::Values acc;

  TN_FN FlashRows(const A &a, int b, int h, int from)
      : a(a), b(b), h(h), first(from + warp_id() * S::warp_rows),
        shared(shared_address(shared_memory())) {
    TN_UNROLL
    for (int r = 0; r < rows; ++r) {
      visible[r] = a.seen(query(r));
      max[r] = score_none;
      sum[r] = 0;
      TN_UNROLL
      for (int c = 0; c < Form::values; ++c)
        Form::at(acc, r, c) = 0;
    }
  }

  TN_FN int query(int r) const { return first + Form::row(lane_id(), r); }

  /// The warp's part of the mask; what is done with it may use the place.
  TN_FN uint32_t mask_address() const {
    return shared + S::mask_at + warp_id() * S::mask_bytes;
  }

  TN_FN void clear_scores() {
    TN_UNROLL
    for (int r = 0; r < rows; ++r)
      TN_UNROLL
    for (int c = 0; c < columns; ++c)
      Form::at(score, r, c) = 0;
  }

  /// Fetches the warp's part of the mask for keys from `key` on into shared
  /// memory: all its rows, or one if they are the same.
  TN_FN void fetch_mask(int key) const {
    uint32_t to = mask_address();
    int lines = a.mask.stride[2] == 0 ? 1 : S::warp_rows;
    __syncwarp();
    TN_PRAGMA(unroll 4)
    for (int r = 0; r < lines; ++r)
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
    bool one = a.mask.stride[2] == 0;
    // Whether every row of the warp sees all of the block's keys.
    bool all = true;
    TN_UNROLL
    for (int r = 0; r < rows; ++r)
      all &= key >= visible[r].begin && key + S::BN <= visible[r].end;
    all = __all_sync(all_lanes, all);
    TN_UNROLL
    for (int r = 0; r < rows; ++r)
      TN_UNROLL
    for (int c = 0; c < columns; c += Form::run) {
      int column = Form::column(lane_id(), c);
      Words2 m = {};
      if constexpr (A::has_mask) {
        int line = one ? 0 : Form::row(lane_id(), r);
        uint32_t from = mask_address() + (line * S::mask_pitch + column) * 4;
        if constexpr (Form::run == 2)
          m = load_shared8(from);
        else
          m.x[0] = load_shared4(from);
      }
      TN_UNROLL
      for (int x = 0; x < Form::run; ++x) {
        float &s = Form::at(score, r, c + x);
        int at = key + column + x;
        s = A::masked(a.score(s, h, query(r), at), float_of(m.x[x]));
        if (!all && !visible[r].has(at))
          s = score_none;
      }
    }
  }

  /// Scores become weights; brings the rows' maxima, sums and values up to
  /// date.
  TN_FN void soften() {
    TN_UNROLL
    for (int r = 0; r < rows; ++r) {
      float top = max[r];
      TN_UNROLL
      for (int c = 0; c < columns; ++c)
        top = fmaxf(top, Form::at(score, r, c));
      TN_UNROLL
      for (int step = 1; step < Form::across; step *= 2)
        top = fmaxf(top, __shfl_xor_sync(all_lanes, top, step));
      // A row that has seen nothing yet must not meet -inf - -inf.
      float shift = top == score_none ? 0.0f : top;
      float keep = exp_for<T>(max[r] - shift), total = 0;
      TN_UNROLL
      for (int c = 0; c < columns; ++c) {
        float &s = Form::at(score, r, c);
        s = exp_for<T>(s - shift);
        total += s;
      }
      max[r] = top;
      sum[r] = sum[r] * keep + total;
      TN_UNROLL
      for (int c = 0; c < Form::values; ++c)
        Form::at(acc, r, c) *= keep;
    }
  }

  /// What row r's values are to be multiplied with in the end.
  TN_FN float last_factor(int r) const {
    float total = sum[r];
    TN_UNROLL
    for (int step = 1; step < Form::across; step *= 2)
      total += __shfl_xor_sync(all_lanes, total, step);
    return a.factor(total);
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
template <class Rows, class Cfg>
TN_FN void attend_block(const Attention<Cfg> &a, int b, int h, int from) {
  using S = AttentionShape<Cfg>;
  Rows rows(a, b, h, from);
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
  // The result may take the place of the queries.
  __syncthreads();
  rows.finish();
}

/// The kernel, given the class of a warp's queries.
template <class Rows, class Cfg>
TN_FN void attention_flash(const tn_args *args) {
  using S = AttentionShape<Cfg>;
  static_assert(Cfg::threads == S::threads &&
                Cfg::has_mask == (Cfg::mask != Mask::none));
  Attention<Cfg> a(args);
  // The last queries of a causal attention have most to do: they begin.
  int from = int(gridDim.x - 1 - blockIdx.x) * S::BM;
  for (int b = blockIdx.z; b < a.batch; b += gridDim.z) {
    attend_block<Rows>(a, b, int(blockIdx.y), from);
    __syncthreads();
  }
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CUDA_ATTENTION_FLASH_CUH
