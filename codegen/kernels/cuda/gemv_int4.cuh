//===- gemv_int4.cuh - a few rows times a matrix of 4-bit weights ---------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// C[M, N] = epilogue(A[M, K] * W[K, N]), W[k, n] = (q[n, k] - zero[n, k /
/// block])
/// * scale[n, k / block] with 4-bit q that stay packed up to the register: the
/// layout of com.microsoft MatMulNBits. Bound by reading q.
///
///   entry   tn::gemv_int4<Cfg, Epilogue>(args)
///
///   Cfg     using In            tn_f16, tn_bf16 or float: A
///           using Scale         element type of the scales: the same
///           using Out, Operands, Tiling, rows, threads   as in gemv.cuh
///           static constexpr int block    16, 32, 64, 128 or 256
///           static constexpr bool zeros   whether there are zero points;
///           without
///                                         them each is 8
///           static constexpr int rank     of A, C and the epilogue's operands
///
///   views   0   A       last dimension contiguous
///           1   q       u8 [N, ceil(K / block), block / 2], contiguous,
///           4-byte
///                       aligned; the lower half of a byte is the even k. What
///                       lies beyond K in the last block is not used
///           2   scales  [N, ceil(K / block)], contiguous
///           3   zeros   (if zeros) u8 [N, ceil(ceil(K / block) / 2)],
///                       contiguous, two to a byte, the lower half first
///           ...         epilogue operands
///           last C      last dimension contiguous
///   grid    x ceil(N / Tiling::columns), y ceil(rows of A / rows), z 1; the
///           leading dimensions of A and C must be rows of one even step
///   block   Tiling::threads
///   shared, scratch   none
///
/// A is not rounded and weights are exact in f32; sums in f32.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CUDA_GEMV_INT4_CUH
#define TENON_KERNELS_CUDA_GEMV_INT4_CUH

#include "kernels/cuda/gemv.cuh"

namespace tn {
inline namespace TN_FORM {

/// The packed weights, scales and zero points of one matrix.
template <class Cfg> struct Int4Matrix {
  using Scale = typename Cfg::Scale;
  static constexpr int block_bytes = Cfg::block / 2;
  const uint8_t *q;
  const Scale *scales;
  const uint8_t *zeros;
  int blocks; ///< along k

  /// Eight weights of column n, k = at ... at + 7, from their packed word.
  TN_FN void unpack(uint32_t word, int n, int at, float (&w)[8]) const {
    int block = at / Cfg::block;
    float scale = to_float(scales[int64_t(n) * blocks + block]);
    int zero = 8;
    if constexpr (Cfg::zeros) {
      uint8_t two = zeros[int64_t(n) * ((blocks + 1) / 2) + block / 2];
      zero = block % 2 ? two >> 4 : two & 15;
    }
    TN_UNROLL
    for (int i = 0; i < 8; ++i)
      w[i] = float(int(word >> (4 * i) & 15) - zero) * scale;
  }
};

template <class Cfg, class Epilogue = Identity>
TN_FN void gemv_int4(const tn_args *args) {
  using T = typename Cfg::Tiling;
  using In = typename Cfg::In;
  constexpr int rank = Cfg::rank, rows = Cfg::rows,
                first_extra = 3 + Cfg::zeros;
  static_assert(Cfg::threads == T::threads && Cfg::block % 16 == 0);
  __shared__ float partial[T::k_split * rows * T::columns];
  const tn_view a = args->views[0],
                c = args->views[first_extra + Cfg::Operands::count];
  int m = int(extent(c, 0, rank - 1)), n = int(c.shape[rank - 1]),
      k = int(a.shape[rank - 1]);
  Int4Matrix<Cfg> w;
  w.q = (const uint8_t *)args->views[1].data;
  w.scales = (const typename Cfg::Scale *)args->views[2].data;
  w.zeros = (const uint8_t *)args->views[first_extra - 1].data;
  w.blocks = (k + Cfg::block - 1) / Cfg::block;
  int64_t column_bytes = int64_t(w.blocks) * w.block_bytes;
  int row = blockIdx.y * rows, column = blockIdx.x * T::columns;
  int first = column + warp_id() / T::k_split * T::per_warp;
  int64_t lda = a.stride[rank - 2];
  const In *pa = (const In *)a.data;

  // A lane has 8 weights of each column at a time, its neighbour the next 8;
  // several such words are on their way together.
  constexpr int words = 4, span = 32 * 8 * T::k_split;
  float sum[rows][T::per_warp] = {};
  TN_PRAGMA(unroll 1)
  for (int at = (warp_id() % T::k_split * 32 + lane_id()) * 8; at < k;
       at += words * span) {
    uint32_t packed[words][T::per_warp] = {};
    TN_UNROLL
    for (int i = 0; i < words; ++i)
      TN_UNROLL
    for (int j = 0; j < T::per_warp; ++j)
      if (at + i * span < k)
        packed[i][j] = *(const uint32_t *)(w.q +
                                           (first + j < n ? first + j : n - 1) *
                                               column_bytes +
                                           (at + i * span) / 2);
    TN_UNROLL
    for (int i = 0; i < words; ++i) {
      int from = at + i * span;
      if (from >= k)
        break;
      lanes<In, 8> x[rows];
      TN_UNROLL
      for (int r = 0; r < rows; ++r)
        x[r] = load_lanes<8>(pa + (row + r < m ? row + r : m - 1) * lda + from,
                             k - from);
      TN_UNROLL
      for (int j = 0; j < T::per_warp; ++j) {
        float y[8];
        w.unpack(packed[i][j], first + j < n ? first + j : n - 1, from, y);
        TN_UNROLL
        for (int r = 0; r < rows; ++r)
          TN_UNROLL
        for (int x8 = 0; x8 < 8; ++x8)
          sum[r][j] = __fmaf_rn(to_float(x[r].x[x8]), y[x8], sum[r][j]);
      }
    }
  }
  TN_UNROLL
  for (int r = 0; r < rows; ++r)
    TN_UNROLL
  for (int j = 0; j < T::per_warp; ++j)
    put_sum<Cfg>(partial, r, j, sum[r][j]);
  // One matrix of m rows, whatever the rank.
  EpilogueArgs e;
  set_operands<typename Cfg::Operands>(e, args, first_extra, c.shape, rank, 0);
  finish_columns<Cfg, Epilogue>(partial, c.data, c.stride[rank - 2], m, n, row,
                                column, e);
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CUDA_GEMV_INT4_CUH
