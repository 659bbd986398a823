//===- matmul.cuh - matmul of any types and strides
//----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// C[..., M, N] = epilogue(A[..., M, K] * B[..., K, N]): what has no faster
/// form.
///
///   entry   tn::matmul<Cfg, Epilogue>(args)
///
///   Cfg     using A, B, C, Sum              element types of the operands, the
///                                           result and the sums
///           static constexpr int rank       rank of all views; at least 2
///           using Operands = tn::types<...> element types of the epilogue's
///                                           operands
///   views   A, B, epilogue operands, C; any strides; batch dimensions are C's
///   grid    ceil(M / 64) * ceil(N / 64) * batches blocks of 256 threads
///
/// Elements are cast to Sum, multiplied and added there in order of k; integers
/// wrap. M, N, K may be 0. A block computes 64 x 64 elements of C, 16 of k at a
/// time from shared memory, a thread 4 x 4 that are 16 apart.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CUDA_MATMUL_CUH
#define TENON_KERNELS_CUDA_MATMUL_CUH

#include "kernels/cuda/epilogue.cuh"

namespace tn {
inline namespace TN_FORM {

inline constexpr int matmul_tile = 64, matmul_depth = 16;

/// Copies element (i, k), i < 64, k < 16, of a matrix to to[k][i], zeros beyond
/// its sizes; neighbouring threads along the dimension of stride 1.
template <class T, class Sum>
TN_FN void fill_tile(const T *from, int64_t step_i, int64_t step_k, int64_t i0,
                     int64_t size_i, int64_t k0, int64_t size_k,
                     Sum (&to)[matmul_depth][matmul_tile + 1]) {
  bool along_k = step_k == 1;
  for (int e = threadIdx.x; e < matmul_tile * matmul_depth; e += 256) {
    int i = along_k ? e / matmul_depth : e % matmul_tile;
    int k = along_k ? e % matmul_depth : e / matmul_tile;
    bool inside = i0 + i < size_i && k0 + k < size_k;
    to[k][i] = inside
                   ? tn_cast<Sum>(from[(i0 + i) * step_i + (k0 + k) * step_k])
                   : Sum(0);
  }
}

template <class Cfg, class Epilogue = Identity>
TN_FN void matmul(const tn_args *args) {
  using A = typename Cfg::A;
  using B = typename Cfg::B;
  using C = typename Cfg::C;
  using Sum = typename Cfg::Sum;
  constexpr int operands = Cfg::Operands::count, last = 2 + operands;
  constexpr int rank = Cfg::rank, row = rank - 2, column = rank - 1;
  static_assert(operands <= max_epilogue && Cfg::threads == 256);
  __shared__ Sum tile_a[matmul_depth][matmul_tile + 1];
  __shared__ Sum tile_b[matmul_depth][matmul_tile + 1];
  const tn_view *v = args->views;
  const int64_t *shape = v[last].shape;
  int64_t m = shape[row], n = shape[column], depth = v[0].shape[column];
  int64_t across = ceil_div(n, matmul_tile);
  int64_t tiles = ceil_div(m, matmul_tile) * across;
  int64_t batch = blockIdx.x / tiles, tile = blockIdx.x - batch * tiles;
  int64_t i0 = tile / across * matmul_tile, j0 = tile % across * matmul_tile;
  auto base = [&](int i) {
    tn_view outer = {nullptr, shape, v[i].stride};
    return row_offset(outer, rank - 2, batch);
  };
  const A *a = (const A *)v[0].data + base(0);
  const B *b = (const B *)v[1].data + base(1);
  C *c = (C *)v[last].data + base(last);

  int ti = threadIdx.x / 16, tj = threadIdx.x % 16;
  Sum sums[4][4] = {};
  for (int64_t k0 = 0; k0 < depth; k0 += matmul_depth) {
    fill_tile(a, v[0].stride[row], v[0].stride[column], i0, m, k0, depth,
              tile_a);
    fill_tile(b, v[1].stride[column], v[1].stride[row], j0, n, k0, depth,
              tile_b);
    __syncthreads();
    TN_UNROLL
    for (int k = 0; k < matmul_depth; ++k) {
      Sum x[4], y[4];
      TN_UNROLL
      for (int i = 0; i < 4; ++i) {
        x[i] = tile_a[k][ti + 16 * i];
        y[i] = tile_b[k][tj + 16 * i];
      }
      TN_UNROLL
      for (int i = 0; i < 4; ++i)
        TN_UNROLL
      for (int j = 0; j < 4; ++j)
        sums[i][j] = tn_add(sums[i][j], tn_mul(x[i], y[j]));
    }
    __syncthreads();
  }

  EpilogueArgs e;
  set_operands<typename Cfg::Operands>(e, args, 2, shape, rank, batch);
  TN_UNROLL
  for (int i = 0; i < 4; ++i)
    TN_UNROLL
  for (int j = 0; j < 4; ++j) {
    int64_t r = i0 + ti + 16 * i, s = j0 + tj + 16 * j;
    if (r < m && s < n)
      c[r * v[last].stride[row] + s * v[last].stride[column]] =
          tn_cast<C>(Epilogue::apply(sums[i][j], e, r, s));
  }
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CUDA_MATMUL_CUH
