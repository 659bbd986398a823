//===- attention.cuh - flash attention on tensor cores --------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Flash attention (attention_flash.cuh) of f16 and bf16.
///
///   entry   tn::attention_mma<Cfg>(args)
///
/// A warp has 16 queries. Multiples of 16 in D and Dv waste nothing. bf16 needs
/// sm_80.
///
/// Numerics: products of T with f32 sums; scores, running maximum and sum in
/// f32; exponentials to 2 ulp; the weights are rounded to T before they meet v,
/// the sum of weights is of the unrounded ones.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CUDA_ATTENTION_CUH
#define TENON_KERNELS_CUDA_ATTENTION_CUH

#include "kernels/cuda/attention_flash.cuh"

namespace tn {
inline namespace TN_FORM {

/// The fragments of mma.m16n8: a thread has rows lane / 4 and lane / 4 + 8, and
/// two columns of every eight.
template <class S> struct MmaForm {
  static constexpr int rows = 2, run = 2, across = 4;
  static constexpr int columns = S::BN / 4, values = S::value_tiles * 2;
  using Scores = float[S::BN / 8][4];
  using Values = float[S::value_tiles][4];

  template <int N> static TN_FN float &at(float (&x)[N][4], int r, int c) {
    return x[c / 2][r * 2 + c % 2];
  }
  static TN_FN int row(int lane, int r) { return fragment_row(lane) + r * 8; }
  static TN_FN int column(int lane, int c) {
    return c / 2 * 8 + fragment_column(lane) + c % 2;
  }
};

template <class Cfg>
struct MmaRows : FlashRows<Cfg, MmaForm<AttentionShape<Cfg>>> {
  using Base = FlashRows<Cfg, MmaForm<AttentionShape<Cfg>>>;
  using Base::a, Base::b, Base::h, Base::first, Base::shared, Base::score,
      Base::acc;
  using typename Base::A, typename Base::S, typename Base::T;
  static constexpr int score_tiles = S::BN / 8;

  uint32_t query[S::keep_queries ? S::qk_steps : 1][4];

  using Base::Base;

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
    this->clear_scores();
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
      float factor = this->last_factor(r);
      uniform[r] = a.is_uniform(this->max[r], this->visible[r]);
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

template <class Cfg> TN_FN void attention_mma(const tn_args *args) {
  attention_flash<MmaRows<Cfg>, Cfg>(args);
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CUDA_ATTENTION_CUH
