//===- gemv.cuh - a few rows times a matrix, bound by reading it ----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// C[..., M, N] = epilogue(norm(A)[..., M, K] * B[..., K, N]) for few rows M, as
/// in decoding: B is read once from end to end, in 16-byte pieces, each warp a
/// contiguous run of every column.
///
///   entry   tn::gemv<Cfg, Epilogue>(args)
///
///   Cfg     using In            tn_f16, tn_bf16 or float: B, gamma, beta
///           using A             the same, or float
///           using Out           the same, or float
///           using Operands      tn::types<...> of the epilogue's operands
///           using Tiling        tn::GemvTiling<...>, one of tunings.def
///           static constexpr int rows   rows of A that are handled together,
///                                       1 to 8; more rows read B again
///           static constexpr int rank   of A, B, C; at least 2
///           static constexpr int threads   Tiling::threads
///           static constexpr tn::RowNorm norm   none, rms or layer: each row of
///                               A is normalised on its way (norm.cuh has the
///                               formulas), with
///           static constexpr float epsilon
///           static constexpr bool has_gamma, has_beta
///           static constexpr bool pair   B has 2 N columns: C[.., n] is
///                               epilogue(sum of column n) with the sum of
///                               column N + n as its only operand, a scalar;
///                               Operands is empty then
///
///   views   0              A    last dimension contiguous
///           1              B    seen as [..., K, N], K contiguous: strides
///                               (1, ldb)
///           next           gamma, beta [K], contiguous, where Cfg has them
///           next           epilogue operands
///           last           C    last dimension contiguous
///   params  what the epilogue reads
///   grid    x ceil(N / Tiling::columns), y ceil(M / rows), z min(batches,
///           65535)
///   block   Tiling::threads
///   shared, scratch   none
///
/// Rows that begin on multiples of 16 bytes are fast, others right. Sums in
/// f32; a product's order of k does not depend on M or N. C may be the memory of
/// an epilogue operand with the same strides, but not of A.
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

/// What a row goes through before it is multiplied.
enum class RowNorm { none, rms, layer };

/// One product's sizes and operands, but for B; strides in elements.
template <class Cfg> struct GemvArgs {
  using In = typename Cfg::In;
  const typename Cfg::A *a;
  const In *gamma, *beta;
  char *c;
  int m, n, k;
  int64_t lda, ldc;
};

/// `Rows` rows of A as they are multiplied. Where fewer are left, the last one
/// stands for those beyond.
template <class Cfg, int Rows> struct GemvRows {
  using In = typename Cfg::In;
  using A = typename Cfg::A;
  static constexpr bool normed = Cfg::norm != RowNorm::none;

  const GemvArgs<Cfg> &g;
  int first, left;
  float mean[Rows], factor[Rows];

  TN_FN GemvRows(const GemvArgs<Cfg> &g, int first)
      : g(g), first(first), left(g.m - first) {
    if constexpr (normed)
      measure();
  }

  TN_FN const A *row(int r) const {
    return g.a + (first + (r < left ? r : left - 1)) * g.lda;
  }

  /// f of each element of a row, added up by all threads of the block.
  template <class F> TN_FN float sum_of(int r, F f) const {
    constexpr int width = 16 / sizeof(A);
    __shared__ float slots[warp_size];
    float sum = 0;
    for (int at = threadIdx.x * width; at < g.k; at += Cfg::threads * width) {
      lanes<A, width> v = load_lanes<width>(row(r) + at, g.k - at);
      TN_UNROLL
      for (int i = 0; i < width; ++i)
        if (at + i < g.k)
          sum += f(to_float(v.x[i]));
    }
    return block_reduce(sum, Add(), slots);
  }

  TN_FN void measure() {
    TN_UNROLL
    for (int r = 0; r < Rows; ++r) {
      mean[r] = 0;
      if constexpr (Cfg::norm == RowNorm::layer)
        mean[r] = sum_of(r, [](float x) { return x; }) / float(g.k);
      float centre = mean[r];
      float squares =
          sum_of(r, [=](float x) { return (x - centre) * (x - centre); });
      factor[r] = 1.0f / sqrtf(squares / float(g.k) + Cfg::epsilon);
    }
  }

  /// Elements at ... at + Width - 1 of every row; 0 beyond the end.
  template <int Width>
  TN_FN void load(int at, float (&x)[Rows][Width]) const {
    lanes<In, Width> gamma, beta;
    if constexpr (normed && Cfg::has_gamma)
      gamma = load_lanes<Width>(g.gamma + at, g.k - at);
    if constexpr (normed && Cfg::has_beta)
      beta = load_lanes<Width>(g.beta + at, g.k - at);
    TN_UNROLL
    for (int r = 0; r < Rows; ++r) {
      lanes<A, Width> v = load_lanes<Width>(row(r) + at, g.k - at);
      TN_UNROLL
      for (int i = 0; i < Width; ++i) {
        float e = to_float(v.x[i]);
        if constexpr (normed) {
          e = (e - mean[r]) * factor[r];
          if constexpr (Cfg::has_gamma)
            e *= to_float(gamma.x[i]);
          if constexpr (Cfg::has_beta)
            e += to_float(beta.x[i]);
          e = at + i < g.k ? e : 0.0f;
        }
        x[r][i] = e;
      }
    }
  }
};

/// B as it lies in memory, [N, K]. What multiply_rows wants of a matrix: `width`
/// neighbours of a column in one Piece, `words` of them under way together.
template <class Cfg> struct DenseMatrix {
  using In = typename Cfg::In;
  static constexpr int width = 16 / sizeof(In), words = 2;
  using Piece = lanes<In, width>;

  const In *data;
  int64_t ldb;
  int k;

  TN_FN Piece fetch(int column, int at) const {
    return load_lanes<width>(data + column * ldb + at, k - at);
  }
  TN_FN void widen(const Piece &piece, int, int, float (&w)[width]) const {
    TN_UNROLL
    for (int i = 0; i < width; ++i)
      w[i] = to_float(piece.x[i]);
  }
};

/// The block's columns, from `column` on, of `Rows` rows. `partial` is shared
/// memory for k_split * parts * Rows * columns sums.
template <class Cfg, int Rows, class Matrix> struct GemvBlock {
  using T = typename Cfg::Tiling;
  static constexpr int parts = Cfg::pair ? 2 : 1, per_warp = T::per_warp * parts,
                       width = Matrix::width, words = Matrix::words;

  const GemvArgs<Cfg> &g;
  const Matrix &b;
  int row, column;
  float *partial;

  /// The column of B that a warp's sum j is of; one beyond the end is the last.
  TN_FN int column_of(int j) const {
    int at = column + warp_id() / T::k_split * T::per_warp + j % T::per_warp;
    return (at < g.n ? at : g.n - 1) + j / T::per_warp * g.n;
  }

  TN_FN void sum_columns(const GemvRows<Cfg, Rows> &rows) {
    // A lane has `width` neighbours of each column, its neighbour the next.
    constexpr int span = 32 * width * T::k_split;
    float sum[Rows][per_warp] = {};
    TN_PRAGMA(unroll 1)
    for (int at = (warp_id() % T::k_split * 32 + lane_id()) * width; at < g.k;
         at += words * span) {
      typename Matrix::Piece pieces[words][per_warp] = {};
      TN_UNROLL
      for (int i = 0; i < words; ++i)
        TN_UNROLL
      for (int j = 0; j < per_warp; ++j)
        if (at + i * span < g.k)
          pieces[i][j] = b.fetch(column_of(j), at + i * span);
      TN_UNROLL
      for (int i = 0; i < words; ++i) {
        int from = at + i * span;
        if (from >= g.k)
          break;
        float x[Rows][width];
        rows.load(from, x);
        TN_UNROLL
        for (int j = 0; j < per_warp; ++j) {
          float y[width];
          b.widen(pieces[i][j], column_of(j), from, y);
          TN_UNROLL
          for (int r = 0; r < Rows; ++r)
            TN_UNROLL
          for (int e = 0; e < width; ++e)
            sum[r][j] = __fmaf_rn(x[r][e], y[e], sum[r][j]);
        }
      }
    }
    TN_UNROLL
    for (int r = 0; r < Rows; ++r)
      TN_UNROLL
    for (int j = 0; j < per_warp; ++j)
      put_sum(r, j, sum[r][j]);
  }

  static TN_FN int slot(int split, int part, int r, int j) {
    return ((split * parts + part) * Rows + r) * T::columns + j;
  }

  /// The lanes' sums of row r and the warp's column j are added up.
  TN_FN void put_sum(int r, int j, float sum) {
    sum = warp_reduce(sum, Add());
    int group = warp_id() / T::k_split;
    if (lane_id() == 0)
      partial[slot(warp_id() % T::k_split, j / T::per_warp, r,
                   group * T::per_warp + j % T::per_warp)] = sum;
  }

  /// The parts of k are added up in order and stored, neighbouring threads
  /// neighbouring columns.
  template <class Epilogue> TN_FN void finish(EpilogueArgs &e) {
    using Out = typename Cfg::Out;
    __syncthreads();
    for (int x = threadIdx.x; x < Rows * T::columns; x += T::threads) {
      int r = x / T::columns, j = x % T::columns;
      if (row + r >= g.m || column + j >= g.n)
        continue;
      float sum[parts] = {};
      TN_UNROLL
      for (int part = 0; part < parts; ++part)
        TN_UNROLL
      for (int s = 0; s < T::k_split; ++s)
        sum[part] += partial[slot(s, part, r, j)];
      if constexpr (Cfg::pair)
        e.operand[0] = {(const char *)&sum[1], 0, 0};
      ((Out *)g.c)[(row + r) * g.ldc + column + j] =
          tn_cast_to<Out>(Epilogue::apply(sum[0], e, row + r, column + j));
    }
    __syncthreads();
  }

  template <class Epilogue> TN_FN void run(EpilogueArgs &e) {
    sum_columns(GemvRows<Cfg, Rows>(g, row));
    finish<Epilogue>(e);
  }
};

/// All batches of a product whose B takes views 1 ... 1 + b_views; matrix(batch)
/// gives B.
template <class Cfg, class Epilogue, class Matrix, class Make>
TN_FN void gemv_batches(const tn_args *args, int b_views, Make matrix) {
  using T = typename Cfg::Tiling;
  using In = typename Cfg::In;
  constexpr int rank = Cfg::rank, rows = Cfg::rows;
  static_assert(Cfg::threads == T::threads);
  static_assert(!Cfg::pair || Cfg::Operands::count == 0);
  __shared__ float
      partial[T::k_split * (Cfg::pair ? 2 : 1) * rows * T::columns];
  int gamma = 1 + b_views, beta = gamma + Cfg::has_gamma;
  int extras = beta + Cfg::has_beta;
  const tn_view a = args->views[0],
                c = args->views[extras + Cfg::Operands::count];
  GemvArgs<Cfg> g;
  g.m = int(c.shape[rank - 2]);
  g.n = int(c.shape[rank - 1]);
  g.k = int(a.shape[rank - 1]);
  g.lda = a.stride[rank - 2];
  g.ldc = c.stride[rank - 2];
  g.gamma = (const In *)args->views[Cfg::has_gamma ? gamma : 0].data;
  g.beta = (const In *)args->views[Cfg::has_beta ? beta : 0].data;
  int row = blockIdx.y * rows, column = blockIdx.x * T::columns;
  int64_t batches = extent(c, 0, rank - 2);
  for (int64_t batch = blockIdx.z; batch < batches; batch += gridDim.z) {
    tn_view of_a = {nullptr, c.shape, a.stride};
    g.a = (const typename Cfg::A *)a.data + row_offset(of_a, rank - 2, batch);
    g.c = c.data + row_offset(c, rank - 2, batch) *
                       int64_t(sizeof(typename Cfg::Out));
    Matrix b = matrix(c, batch, g.k);
    EpilogueArgs e;
    set_operands<typename Cfg::Operands>(e, args, extras, c.shape, rank, batch);
    // One row alone, the usual case, does not pay for others.
    if (rows > 1 && g.m - row == 1)
      GemvBlock<Cfg, 1, Matrix>{g, b, row, column, partial}
          .template run<Epilogue>(e);
    else
      GemvBlock<Cfg, rows, Matrix>{g, b, row, column, partial}
          .template run<Epilogue>(e);
  }
}

template <class Cfg, class Epilogue = Identity>
TN_FN void gemv(const tn_args *args) {
  constexpr int rank = Cfg::rank;
  using In = typename Cfg::In;
  gemv_batches<Cfg, Epilogue, DenseMatrix<Cfg>>(
      args, 1, [&](const tn_view &c, int64_t batch, int k) {
        const tn_view &b = args->views[1];
        tn_view of_b = {nullptr, c.shape, b.stride};
        return DenseMatrix<Cfg>{(const In *)b.data +
                                    row_offset(of_b, rank - 2, batch),
                                b.stride[rank - 1], k};
      });
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CUDA_GEMV_CUH
