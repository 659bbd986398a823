//===- gemv.cuh - a few rows times a matrix, bound by reading it ----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// C[..., M, N] = epilogue(A[..., M, K] * B[..., K, N]) for few rows M, as in
/// decoding: B is read once from end to end, in 16-byte pieces, each warp a
/// contiguous run of every column.
///
///   entry   tn::gemv<Cfg, Epilogue>(args)
///
///   Cfg     using In            tn_f16, tn_bf16 or float
///           using Out           the same, or float
///           using Operands      tn::types<...> of the epilogue's operands
///           using Tiling        tn::GemvTiling<...>, one of gemv_tunings.def
///           static constexpr int rows   rows of A that are handled together,
///                                       1 to 8; more rows read B again
///           static constexpr int rank   of A, B, C; at least 2
///           static constexpr int threads   Tiling::threads
///
///   views   0              A    last dimension contiguous
///           1              B    seen as [..., K, N], K contiguous: strides
///                               (1, ldb)
///           2, 3, ...           epilogue operands
///           last           C    last dimension contiguous
///   params  what the epilogue reads
///   grid    x ceil(N / Tiling::columns), y ceil(M / rows), z min(batches,
///   65535) block   Tiling::threads shared, scratch   none
///
/// Rows that begin on multiples of 16 bytes are fast, others right. Sums in
/// f32; a product's order of k does not depend on M or N.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CUDA_GEMV_CUH
#define TENON_KERNELS_CUDA_GEMV_CUH

#include "kernels/cuda/attention_rules.cuh"
#include "kernels/cuda/lanes.cuh"

namespace tn {
inline namespace TN_FORM {

/// A tuning: Warps warps, of which KSplit share the k of one column; each has
/// Columns columns at once.
template <int Warps, int KSplit, int Columns> struct GemvTiling {
  static_assert(Warps % KSplit == 0);
  static constexpr int threads = Warps * 32, k_split = KSplit,
                       per_warp = Columns, columns = Warps / KSplit * Columns;
};

/// What the sums of a block become: partial[k_split][rows][columns] in shared
/// memory are added up in order and stored, neighbouring threads neighbouring
/// columns.
template <class Cfg, class Epilogue>
TN_FN void finish_columns(const float *partial, char *c, int64_t ldc, int m,
                          int n, int row, int column, const EpilogueArgs &e) {
  using T = typename Cfg::Tiling;
  using Out = typename Cfg::Out;
  __syncthreads();
  for (int x = threadIdx.x; x < Cfg::rows * T::columns; x += T::threads) {
    int r = x / T::columns, j = x % T::columns;
    if (row + r >= m || column + j >= n)
      continue;
    float sum = 0;
    TN_UNROLL
    for (int s = 0; s < T::k_split; ++s)
      sum += partial[s * Cfg::rows * T::columns + x];
    ((Out *)c)[(row + r) * ldc + column + j] =
        tn_cast_to<Out>(Epilogue::apply(sum, e, row + r, column + j));
  }
  __syncthreads();
}

/// The same sum in every lane of a warp becomes element (r, j) of its part.
template <class Cfg>
TN_FN void put_sum(float *partial, int r, int j, float sum) {
  using T = typename Cfg::Tiling;
  sum = warp_reduce(sum, Add());
  int part = warp_id() % T::k_split, group = warp_id() / T::k_split;
  if (lane_id() == 0)
    partial[(part * Cfg::rows + r) * T::columns + group * T::per_warp + j] =
        sum;
}

template <class Cfg, class Epilogue = Identity>
TN_FN void gemv(const tn_args *args) {
  using T = typename Cfg::Tiling;
  using In = typename Cfg::In;
  constexpr int rank = Cfg::rank, rows = Cfg::rows, width = 16 / sizeof(In);
  static_assert(Cfg::threads == T::threads);
  __shared__ float partial[T::k_split * rows * T::columns];
  const tn_view a = args->views[0], b = args->views[1],
                c = args->views[2 + Cfg::Operands::count];
  int m = int(c.shape[rank - 2]), n = int(c.shape[rank - 1]),
      k = int(a.shape[rank - 1]);
  int row = blockIdx.y * rows, column = blockIdx.x * T::columns;
  int first = column + warp_id() / T::k_split * T::per_warp;
  int64_t lda = a.stride[rank - 2], ldb = b.stride[rank - 1];
  int64_t batches = extent(c, 0, rank - 2);
  for (int64_t batch = blockIdx.z; batch < batches; batch += gridDim.z) {
    tn_view of_a = {nullptr, c.shape, a.stride},
            of_b = {nullptr, c.shape, b.stride};
    const In *pa = (const In *)a.data + row_offset(of_a, rank - 2, batch);
    const In *pb = (const In *)b.data + row_offset(of_b, rank - 2, batch);
    float sum[rows][T::per_warp] = {};
    int step = 32 * width * T::k_split;
    TN_PRAGMA(unroll 2)
    for (int at = (warp_id() % T::k_split * 32 + lane_id()) * width; at < k;
         at += step) {
      lanes<In, width> y[T::per_warp];
      TN_UNROLL
      for (int j = 0; j < T::per_warp; ++j)
        y[j] = load_lanes<width>(
            pb + (first + j < n ? first + j : n - 1) * ldb + at, k - at);
      TN_UNROLL
      for (int r = 0; r < rows; ++r) {
        lanes<In, width> x = load_lanes<width>(
            pa + (row + r < m ? row + r : m - 1) * lda + at, k - at);
        TN_UNROLL
        for (int j = 0; j < T::per_warp; ++j)
          TN_UNROLL
        for (int i = 0; i < width; ++i)
          sum[r][j] =
              __fmaf_rn(to_float(x.x[i]), to_float(y[j].x[i]), sum[r][j]);
      }
    }
    TN_UNROLL
    for (int r = 0; r < rows; ++r)
      TN_UNROLL
    for (int j = 0; j < T::per_warp; ++j)
      put_sum<Cfg>(partial, r, j, sum[r][j]);
    EpilogueArgs e;
    set_operands<typename Cfg::Operands>(e, args, 2, c.shape, rank, batch);
    char *pc = c.data + row_offset(c, rank - 2, batch) *
                            int64_t(sizeof(typename Cfg::Out));
    finish_columns<Cfg, Epilogue>(partial, pc, c.stride[rank - 2], m, n, row,
                                  column, e);
  }
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CUDA_GEMV_CUH
