//===- gemm_shape.cuh - the sizes of a GEMM's tiles -----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What follows from a GEMM's Cfg: sizes, the layout of a stage, which warp has
/// which part. No device code: the host's tests use it too.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CUDA_GEMM_SHAPE_CUH
#define TENON_KERNELS_CUDA_GEMM_SHAPE_CUH

#include "kernels/cuda/layout.cuh"

namespace tn {
inline namespace TN_FORM {

enum class Math { tensor, tf32, tf32x3, fma };

/// A tuning: a block makes BM x BN elements of C, a warp WM x WN of them, from
/// stages of KBytes bytes of k.
template <int BM_, int BN_, int KBytes, int WM_, int WN_, int Stages>
struct GemmTiling {
  static constexpr int BM = BM_, BN = BN_, k_bytes = KBytes, WM = WM_, WN = WN_,
                       stages = Stages;
};

struct tf32;

/// The element type that mma multiplies.
template <class In, Math> struct OperandOf {
  using type = In;
};
template <class In> struct OperandOf<In, Math::tf32> {
  using type = tf32;
};
template <class In> struct OperandOf<In, Math::tf32x3> {
  using type = tf32;
};

template <class Cfg> struct GemmShape : Cfg::Tiling {
  using T = typename Cfg::Tiling;
  using Operand = typename OperandOf<typename Cfg::In, Cfg::math>::type;
  using T::BM, T::BN, T::k_bytes, T::WM, T::WN, T::stages;
  static constexpr int size = sizeof(typename Cfg::In);
  static constexpr int BK = k_bytes / size;
  static constexpr int warps_across = BN / WN, warps = BM / WM * warps_across;
  static constexpr int threads = warps * 32;
  static_assert(BM % WM == 0 && BN % WN == 0 && WM % 16 == 0 && WN % 16 == 0);
  static_assert(stages >= 2 && k_bytes % 32 == 0);
  static_assert(Cfg::math != Math::fma || (WM % 16 == 0 && WN % 32 == 0));

  static constexpr bool is_kn = Cfg::b == Layout::kn;
  using ATile = Tile<BM, k_bytes / 16>;
  using BTile = Tile<is_kn ? BK : BN, (is_kn ? BN * size : k_bytes) / 16,
                     is_kn && size == 4 ? Access::words : Access::matrix>;
  static constexpr int stage_bytes = ATile::bytes + BTile::bytes;

  /// Sums leave a warp through shared memory, 16 rows at a time; the pitch (in
  /// words) keeps the rows' pieces in different banks.
  static constexpr int slab_pitch = WN + 8;
  static constexpr int slab_bytes = 16 * slab_pitch * 4;

  static constexpr int shared_bytes =
      int(max_of(stages * stage_bytes, warps *slab_bytes));

  /// Where word `x` of an mma's B fragments for columns column ... column + 15
  /// lies in a [k, n] tile of 32-bit elements.
  static TN_BOTH constexpr int word_kn(int lane, int step, int column, int x) {
    int k = step * 8 + (lane & 3) + x % 2 * 4;
    int n = column + x / 2 * 8 + (lane >> 2);
    return BTile::at(k, n / 4) + n % 4 * 4;
  }

#if defined(__CUDACC__)
  static TN_FN int warp_row() { return threadIdx.x / 32 / warps_across * WM; }
  static TN_FN int warp_column() {
    return threadIdx.x / 32 % warps_across * WN;
  }
#endif
};

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CUDA_GEMM_SHAPE_CUH
