//===- attention_shape.cuh - the sizes of attention's tiles ---------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What follows from attention's Cfg: tiles in shared memory, threads. No
/// device code: the host's tests use it too.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CUDA_ATTENTION_SHAPE_CUH
#define TENON_KERNELS_CUDA_ATTENTION_SHAPE_CUH

#include "kernels/cuda/layout.cuh"

namespace tn {
inline namespace TN_FORM {

/// A tuning: a block has BM queries of one head, and meets BN keys at a time.
template <int BM_, int BN_> struct AttentionTiling {
  static constexpr int BM = BM_, BN = BN_;
};

template <class Cfg> struct AttentionShape : Cfg::Tiling {
  using Cfg::Tiling::BM, Cfg::Tiling::BN;
  static constexpr int D = Cfg::D, Dv = Cfg::Dv;
  static constexpr int size = sizeof(typename Cfg::T);
  /// Halves have tensor cores: 16 queries for each warp. f32 has four warps.
  static constexpr bool tensor = size == 2;
  static constexpr int warps = tensor ? BM / 16 : 4, threads = warps * 32;
  static constexpr int warp_rows = BM / warps;
  static_assert(BM % 16 == 0 && BN % 16 == 0);

  /// k-steps of the two products, and 8-column tiles of the second.
  static constexpr int qk_steps = (D + 15) / 16, pv_steps = BN / 16;
  static constexpr int value_tiles = (Dv + 15) / 16 * 2;

  static constexpr int key_chunks = padded_chunks(D * size);
  /// f32: eight lanes read as many chunks of a row.
  static constexpr int value_chunks =
      int(max_of(padded_chunks(Dv * size), tensor ? 2 : 8));
  using QTile = Tile<BM, key_chunks>;
  using KTile = Tile<BN, key_chunks>;
  using VTile = Tile<BN, value_chunks>;
  /// The result of halves on its way out; in the place of q.
  using OTile = Tile<BM, value_chunks>;

  /// Of the mask, f32 for each warp; the pitch keeps rows in different banks.
  static constexpr int mask_pitch = BN + 8;
  static constexpr int mask_bytes = warp_rows * mask_pitch * 4;

  static constexpr int q_bytes =
      int(max_of(QTile::bytes, tensor ? OTile::bytes : 0));
  static constexpr int k_at = q_bytes, v_at = k_at + KTile::bytes,
                       mask_at = v_at + VTile::bytes;
  /// f32 has the weights in the same place.
  static constexpr int shared_bytes =
      mask_at + (Cfg::has_mask || !tensor ? warps * mask_bytes : 0);

  /// Whether a warp keeps its queries in registers.
  static constexpr bool keep_queries = D <= 128;
};

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CUDA_ATTENTION_SHAPE_CUH
