//===- attention_fma.cuh - flash attention of f32 -------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Flash attention (attention_flash.cuh) of f32 with fused multiply-adds.
///
///   entry   tn::attention_fma<Cfg>(args)
///
/// Four warps, each with BM / 4 queries, all keys and all values. A warp is 4 x
/// 8 lanes: a thread has every fourth query, every eighth key, and every eighth
/// four columns of the result. The eight lanes of a phase of shared memory
/// therefore read one chunk of q or of the weights, or eight in different
/// banks of k or v. Weights pass from the lanes that made them to those of
/// their row through the place of the mask.
///
/// Numerics: everything in f32; exponentials to 1 ulp.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CUDA_ATTENTION_FMA_CUH
#define TENON_KERNELS_CUDA_ATTENTION_FMA_CUH

#include "kernels/cuda/attention_flash.cuh"

namespace tn {
inline namespace TN_FORM {

template <class S> struct FmaForm {
  static constexpr int run = 1, across = 8;
  static constexpr int rows = S::warp_rows / 4, columns = S::BN / 8;
  /// Chunks of a row of the result that a thread has.
  static constexpr int pieces = (S::Dv + 31) / 32, values = pieces * 4;
  using Scores = float[rows][columns];
  using Values = float[rows][values];

  template <int N> static TN_FN float &at(float (&x)[rows][N], int r, int c) {
    return x[r][c];
  }
  static TN_FN int row(int lane, int r) { return r * 4 + lane / 8; }
  static TN_FN int column(int lane, int c) { return c * 8 + lane % 8; }
};

template <class Cfg>
struct FmaRows : FlashRows<Cfg, FmaForm<AttentionShape<Cfg>>> {
  using Base = FlashRows<Cfg, FmaForm<AttentionShape<Cfg>>>;
  using Form = FmaForm<AttentionShape<Cfg>>;
  using Base::a, Base::b, Base::h, Base::shared, Base::score, Base::acc,
      Base::rows, Base::columns;
  using typename Base::A, typename Base::S;

  using Base::Base;

  /// They are read from shared memory each time.
  TN_FN void load_queries() {}

  /// score = q k^T for a block of keys.
  TN_FN void multiply_keys() {
    this->clear_scores();
    TN_PRAGMA(unroll 2)
    for (int chunk = 0; chunk < (S::D + 3) / 4; ++chunk) {
      Words4 k[columns];
      TN_UNROLL
      for (int c = 0; c < columns; ++c)
        k[c] = load_shared16(shared + S::k_at +
                             S::KTile::at(Form::column(lane_id(), c), chunk));
      TN_UNROLL
      for (int r = 0; r < rows; ++r) {
        int line = warp_id() * S::warp_rows + Form::row(lane_id(), r);
        Words4 q = load_shared16(shared + S::QTile::at(line, chunk));
        TN_UNROLL
        for (int c = 0; c < columns; ++c)
          TN_UNROLL
        for (int x = 0; x < 4; ++x)
          score[r][c] =
              __fmaf_rn(float_of(q.x[x]), float_of(k[c].x[x]), score[r][c]);
      }
    }
  }

  TN_FN uint32_t weight_address(int r, int column) const {
    return this->mask_address() +
           (Form::row(lane_id(), r) * S::mask_pitch + column) * 4;
  }

  /// acc += weights v for a block of keys.
  TN_FN void multiply_values() {
    TN_UNROLL
    for (int r = 0; r < rows; ++r)
      TN_UNROLL
    for (int c = 0; c < columns; ++c)
      store_shared4(weight_address(r, Form::column(lane_id(), c)),
                    bits_of(score[r][c]));
    __syncwarp();
    TN_PRAGMA(unroll 2)
    for (int key = 0; key < S::BN; key += 4) {
      Words4 w[rows];
      TN_UNROLL
      for (int r = 0; r < rows; ++r)
        w[r] = load_shared16(weight_address(r, key));
      TN_UNROLL
      for (int i = 0; i < 4; ++i)
        TN_UNROLL
      for (int p = 0; p < Form::pieces; ++p) {
        Words4 v = load_shared16(shared + S::v_at +
                                 S::VTile::at(key + i, p * 8 + lane_id() % 8));
        TN_UNROLL
        for (int r = 0; r < rows; ++r)
          TN_UNROLL
        for (int x = 0; x < 4; ++x)
          acc[r][p * 4 + x] = __fmaf_rn(float_of(w[r].x[i]), float_of(v.x[x]),
                                        acc[r][p * 4 + x]);
      }
    }
  }

  /// Writes the rows of o; one whose values are to be averaged on its own.
  TN_FN void finish() {
    unsigned averaged = 0;
    TN_UNROLL
    for (int r = 0; r < rows; ++r) {
      float factor = this->last_factor(r);
      if (this->query(r) >= a.queries)
        continue;
      if (a.is_uniform(this->max[r], this->visible[r])) {
        averaged |= 1u << r;
        continue;
      }
      float *o = A::row(a.o, b, this->query(r), h);
      TN_UNROLL
      for (int p = 0; p < Form::pieces; ++p) {
        int at = (p * 8 + lane_id() % 8) * 4;
        lanes<float, 4> v;
        TN_UNROLL
        for (int x = 0; x < 4; ++x)
          v.x[x] = acc[r][p * 4 + x] * factor;
        store_lanes(o + at, v, S::Dv - at);
      }
    }
    if constexpr (Cfg::masked_row == MaskedRow::uniform)
      TN_PRAGMA(unroll 1)
    for (int r = 0; r < rows; ++r)
      if (averaged >> r & 1)
        for (int d = lane_id() % 8; d < S::Dv; d += 8)
          A::row(a.o, b, this->query(r), h)[d] = a.mean_of_values(b, h, d);
  }
};

template <class Cfg> TN_FN void attention_fma(const tn_args *args) {
  attention_flash<FmaRows<Cfg>, Cfg>(args);
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CUDA_ATTENTION_FMA_CUH
