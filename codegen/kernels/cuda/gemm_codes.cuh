//===- gemm_codes.cuh - many rows times a matrix of 2, 4 or 8 bits --------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// gemm.cuh's product with the matrix of gemv_codes.cuh, B[k, n] = (q[n, k] -
/// zero[n, k / block]) * scale[n, k / block]: codes become numbers as a stage
/// is filled, so that q is read once for BM rows.
///
///   entry   tn::gemm_codes<Cfg, Epilogue>(args)
///
///   Cfg     In, Out, Operands, Tiling, math, align_a, stream, rank   as in
///           gemm.cuh; In is tn_f16, tn_bf16 or float
///           b   Layout::nk
///           Scale, Zero, bits, block, zeros, zero   as in gemv_codes.cuh
///
///   views   A; q, scales, and zeros if there are any, as in gemv_codes.cuh;
///           epilogue operands; C
///   params, grid, block, shared, scratch   as in gemm.cuh
///
/// Weights are computed in f32 and rounded to In, once.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CUDA_GEMM_CODES_CUH
#define TENON_KERNELS_CUDA_GEMM_CODES_CUH

#include "kernels/cuda/gemm.cuh"
#include "kernels/cuda/gemv_codes.cuh"

namespace tn {
inline namespace TN_FORM {

/// Fills stages: of A by copies, of B with numbers that codes stand for. The
/// codes of the next stage are on their way while this one is multiplied.
template <class Cfg> struct CodesSource {
  using S = GemmShape<Cfg>;
  using T = typename Cfg::In;
  static constexpr int width = 16 / sizeof(T);
  using Matrix = CodesMatrix<Cfg, width>;
  /// 16-byte chunks of a tile of B: those of a column are neighbours, and so
  /// are the threads that have them.
  static constexpr int chunks = S::BTile::chunks,
                       places = S::BN * chunks / S::threads;
  static_assert(!S::is_kn && S::BN * chunks % S::threads == 0);
  /// Multiply-adds leave no registers for codes on their way, nor need them.
  static constexpr bool ahead = Cfg::math != Math::fma;

  const Matrix &b;
  int row, column;
  int ready; ///< the stage whose codes are in `pieces`; -1: none
  typename Matrix::Piece pieces[places];
  float scales[places], zeros[places];

  TN_FN explicit CodesSource(const Matrix &b) : b(b) {}

  TN_FN void place(const GemmArgs &, int tile_row, int tile_column) {
    row = tile_row;
    column = tile_column;
    ready = -1;
  }

  /// A thread's column number i in a tile, and its chunk's place in a row.
  static TN_FN int column_of(int i) {
    return (int(threadIdx.x) + i * S::threads) / chunks;
  }
  static TN_FN int chunk_of(int i) {
    return (int(threadIdx.x) + i * S::threads) % chunks;
  }

  TN_FN void load(const GemmArgs &g, int stage) {
    TN_UNROLL
    for (int i = 0; i < places; ++i) {
      int n = column + column_of(i), k = stage * S::BK + chunk_of(i) * width;
      // What lies beyond the matrix is (0 - 0) * 0.
      pieces[i] = 0;
      scales[i] = zeros[i] = 0;
      if (n < g.n && k < g.k) {
        pieces[i] = b.fetch(n, k);
        scales[i] = b.scale_of(n, k / int(Cfg::block));
        zeros[i] = b.zero_of(n, k / int(Cfg::block));
      }
    }
    ready = stage;
  }

  TN_FN void fetch(const GemmArgs &g, int stage, uint32_t shared, int slot) {
    uint32_t to = shared + slot * S::stage_bytes;
    int64_t k = int64_t(stage) * S::BK;
    Source a = {g.a + (row * g.lda + k) * S::size, g.lda * S::size, g.m - row,
                int(g.k - k) * S::size};
    copy_tile<typename S::ATile, S::threads, Cfg::align_a>(to, a, threadIdx.x);
    if (ready != stage)
      load(g, stage);
    TN_UNROLL
    for (int i = 0; i < places; ++i) {
      float w[width];
      Matrix::widen(pieces[i], scales[i], zeros[i], w);
      union {
        Words4 words;
        T x[width];
      } u;
      TN_UNROLL
      for (int j = 0; j < width; ++j)
        u.x[j] = tn_cast_to<T>(w[j]);
      store_shared16(to + S::ATile::bytes +
                         S::BTile::at(column_of(i), chunk_of(i)),
                     u.words);
    }
    if constexpr (ahead)
      load(g, stage + 1);
  }
};

template <class Cfg, class Epilogue = Identity>
TN_FN void gemm_codes(const tn_args *args) {
  using S = GemmShape<Cfg>;
  using Source = CodesSource<Cfg>;
  constexpr int rank = Cfg::rank, extras = 3 + Cfg::zeros;
  static_assert(Cfg::threads == S::threads);
  const tn_view *v = args->views;
  const tn_view &a = v[0], &c = v[extras + Cfg::Operands::count];
  GemmArgs g;
  g.m = int(c.shape[rank - 2]);
  g.n = int(c.shape[rank - 1]);
  g.k = int(a.shape[rank - 1]);
  g.lda = a.stride[rank - 2];
  g.ldc = c.stride[rank - 2];
  typename Source::Matrix b = codes_matrix<Cfg, Source::width>(args, g.k);
  int64_t batches = extent(c, 0, rank - 2);
  for (int64_t batch = blockIdx.z; batch < batches; batch += gridDim.z) {
    tn_view of_a = {nullptr, c.shape, a.stride};
    g.a = a.data + row_offset(of_a, rank - 2, batch) * S::size;
    g.c = c.data +
          row_offset(c, rank - 2, batch) * int64_t(sizeof(typename Cfg::Out));
    EpilogueArgs e;
    set_operands<typename Cfg::Operands>(e, args, extras, c.shape, rank, batch);
    Source source(b);
    gemm_batch<Cfg, Epilogue>(g, e, source, args, batch);
  }
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CUDA_GEMM_CODES_CUH
