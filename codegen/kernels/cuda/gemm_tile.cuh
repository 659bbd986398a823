//===- gemm_tile.cuh - one tile of a matrix product -----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The main loop of gemm.cuh: sums of a BM x BN tile over a range of k, in
/// registers, from a ring of stages in shared memory that cp.async fills. The
/// arithmetic is one of
///
///   Math::tensor   f16, bf16, int8, fp8 by mma.sync
///   Math::tf32     f32 operands rounded to tf32, by mma.sync
///   Math::tf32x3   f32 operands split into two tf32 each, three products:
///                  relative error of a product about 2^-21
///   Math::fma      f32 by fused multiply-adds, in order of k
///
/// A stage holds BM rows of A and, for Layout::nk, BN rows of B, each of
/// `k_bytes` bytes of k; or, for Layout::kn, k rows of BN elements of B.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CUDA_GEMM_TILE_CUH
#define TENON_KERNELS_CUDA_GEMM_TILE_CUH

#include "kernels/cuda/copy.cuh"
#include "kernels/cuda/gemm_shape.cuh"
#include "kernels/cuda/mma.cuh"

namespace tn {
inline namespace TN_FORM {

/// The operands of one product; strides in elements.
struct GemmArgs {
  const char *a, *b;
  char *c;
  int m, n, k;
  /// From one row of A (C) to the next; of B, from one k (Layout::kn) or one
  /// column (Layout::nk) to the next.
  int64_t lda, ldb, ldc;
};

/// The sums of a warp, made by mma.sync.
template <class Cfg> struct MmaSums {
  using S = GemmShape<Cfg>;
  using Element = typename S::Operand;
  using Sum = typename Mma<Element>::Sum;
  static constexpr int row_tiles = S::WM / 16, column_tiles = S::WN / 8;
  static constexpr bool split = Cfg::math == Math::tf32x3;
  static constexpr int parts = split ? 2 : 1;

  Sum sum[row_tiles][column_tiles][4];

  TN_FN void clear() {
    TN_UNROLL
    for (int i = 0; i < row_tiles; ++i)
      TN_UNROLL
    for (int j = 0; j < column_tiles; ++j)
      TN_UNROLL
    for (int x = 0; x < 4; ++x)
      sum[i][j][x] = 0;
  }

  /// Operand words as mma wants them: part 0 the number, part 1 what rounding
  /// lost.
  static TN_FN void refine(uint32_t word, uint32_t &number, uint32_t &rest) {
    if constexpr (Cfg::math == Math::tensor) {
      number = word;
    } else {
      number = to_tf32(float_of(word));
      if constexpr (split)
        rest = to_tf32(float_of(word) - float_of(number));
    }
  }

  static TN_FN void load_a(uint32_t (&f)[parts][row_tiles][4], uint32_t a,
                           int step) {
    Place p = place_a(lane_id(), step);
    TN_UNROLL
    for (int i = 0; i < row_tiles; ++i) {
      uint32_t r[4];
      load_matrices(r,
                    a + S::ATile::at(S::warp_row() + i * 16 + p.row, p.chunk));
      TN_UNROLL
      for (int x = 0; x < 4; ++x)
        refine(r[x], f[0][i][x], f[parts - 1][i][x]);
    }
  }

  static TN_FN void load_b(uint32_t (&f)[parts][column_tiles][2], uint32_t b,
                           int step) {
    TN_UNROLL
    for (int j = 0; j < column_tiles; j += 2) {
      uint32_t r[4];
      int column = S::warp_column() + j * 8;
      if constexpr (Cfg::b == Layout::nk) {
        Place p = place_nk(lane_id(), step);
        load_matrices(r, b + S::BTile::at(column + p.row, p.chunk));
      } else if constexpr (S::size == 2) {
        Place p = place_kn(lane_id(), step);
        load_matrices_transposed(r,
                                 b + S::BTile::at(p.row, column / 8 + p.chunk));
      } else {
        static_assert(S::size == 4, "int8 and fp8 need Layout::nk");
        TN_UNROLL
        for (int x = 0; x < 4; ++x)
          r[x] = load_shared4(b + S::word_kn(lane_id(), step, column, x));
      }
      TN_UNROLL
      for (int x = 0; x < 4; ++x)
        refine(r[x], f[0][j + x / 2][x % 2], f[parts - 1][j + x / 2][x % 2]);
    }
  }

  /// Adds the product of one stage's tiles.
  TN_FN void multiply(uint32_t a, uint32_t b) {
    TN_UNROLL
    for (int step = 0; step < S::k_bytes / 32; ++step) {
      uint32_t fa[parts][row_tiles][4], fb[parts][column_tiles][2];
      load_a(fa, a, step);
      load_b(fb, b, step);
      // The small terms first.
      TN_UNROLL
      for (int term = split ? 0 : 2; term < 3; ++term)
        TN_UNROLL
      for (int i = 0; i < row_tiles; ++i)
        TN_UNROLL
      for (int j = 0; j < column_tiles; ++j)
        Mma<Element>::run(sum[i][j], fa[term == 0 ? parts - 1 : 0][i],
                          fb[term == 1 ? parts - 1 : 0][j]);
    }
  }

  /// Writes rows 16 slab ... 16 slab + 15 of the warp's tile.
  TN_FN void put(int slab, uint32_t to) const {
    int row = fragment_row(lane_id()), column = fragment_column(lane_id());
    TN_UNROLL
    for (int j = 0; j < column_tiles; ++j) {
      const Sum(&s)[4] = sum[slab][j];
      uint32_t at = to + (row * S::slab_pitch + j * 8 + column) * 4;
      store_shared8(at, __builtin_bit_cast(uint32_t, s[0]),
                    __builtin_bit_cast(uint32_t, s[1]));
      store_shared8(at + 8 * S::slab_pitch * 4,
                    __builtin_bit_cast(uint32_t, s[2]),
                    __builtin_bit_cast(uint32_t, s[3]));
    }
  }

  static constexpr int count = row_tiles * column_tiles * 4;
  TN_FN Sum &at(int i) {
    return sum[i / 4 / column_tiles][i / 4 % column_tiles][i % 4];
  }
};

/// The sums of a warp, made by fused multiply-adds: a thread has rows
/// lane / 8 + 4 i and, of every 32 columns (kn) or 8 columns (nk), 4 or 1.
template <class Cfg> struct FmaSums {
  using S = GemmShape<Cfg>;
  using Sum = float;
  static constexpr int rows = S::WM / 4, columns = S::WN / 8;

  float sum[rows][columns];

  TN_FN void clear() {
    TN_UNROLL
    for (int i = 0; i < rows; ++i)
      TN_UNROLL
    for (int j = 0; j < columns; ++j)
      sum[i][j] = 0;
  }

  /// The column of the warp's tile that sum[..][j] belongs to.
  static TN_FN int column(int j) {
    int x = lane_id() % 8;
    return Cfg::b == Layout::kn ? x * 4 + j / 4 * 32 + j % 4 : x + j * 8;
  }

  TN_FN void multiply(uint32_t a, uint32_t b) {
    TN_UNROLL
    for (int chunk = 0; chunk < S::k_bytes / 16; ++chunk) {
      float fb[4][columns]; // by k
      TN_UNROLL
      for (int j = 0; j < (Cfg::b == Layout::kn ? columns : columns * 4);
           j += 4) {
        if constexpr (Cfg::b == Layout::kn) {
          TN_UNROLL
          for (int k = 0; k < 4; ++k) {
            Words4 v = load_shared16(
                b + S::BTile::at(chunk * 4 + k,
                                 (S::warp_column() + column(j)) / 4));
            TN_UNROLL
            for (int x = 0; x < 4; ++x)
              fb[k][j + x] = float_of(v.x[x]);
          }
        } else {
          Words4 v = load_shared16(
              b + S::BTile::at(S::warp_column() + column(j / 4), chunk));
          TN_UNROLL
          for (int k = 0; k < 4; ++k)
            fb[k][j / 4] = float_of(v.x[k]);
        }
      }
      TN_UNROLL
      for (int i = 0; i < rows; ++i) {
        Words4 fa = load_shared16(
            a + S::ATile::at(S::warp_row() + lane_id() / 8 + 4 * i, chunk));
        TN_UNROLL
        for (int k = 0; k < 4; ++k)
          TN_UNROLL
        for (int j = 0; j < columns; ++j)
          sum[i][j] = __fmaf_rn(float_of(fa.x[k]), fb[k][j], sum[i][j]);
      }
    }
  }

  TN_FN void put(int slab, uint32_t to) const {
    TN_UNROLL
    for (int i = 0; i < 4; ++i) {
      int row = lane_id() / 8 + 4 * i;
      TN_UNROLL
      for (int j = 0; j < columns; ++j)
        store_shared4(to + (row * S::slab_pitch + column(j)) * 4,
                      bits_of(sum[slab * 4 + i][j]));
    }
  }

  static constexpr int count = rows * columns;
  TN_FN Sum &at(int i) { return sum[i / columns][i % columns]; }
};

template <class Cfg, bool Fma> struct SumsOf {
  using type = MmaSums<Cfg>;
};
template <class Cfg> struct SumsOf<Cfg, true> {
  using type = FmaSums<Cfg>;
};
template <class Cfg>
using sums_of = typename SumsOf<Cfg, Cfg::math == Math::fma>::type;

/// Starts the copies of k block `block` into stage `slot`.
template <class Cfg>
TN_FN void fetch_stage(const GemmArgs &g, int row, int column, int block,
                       uint32_t shared, int slot) {
  using S = GemmShape<Cfg>;
  uint32_t to = shared + slot * S::stage_bytes;
  int64_t k = int64_t(block) * S::BK;
  Source a = {g.a + (row * g.lda + k) * S::size, g.lda * S::size, g.m - row,
              int(g.k - k) * S::size};
  copy_tile<typename S::ATile, S::threads, Cfg::align_a>(to, a, threadIdx.x);
  Source b;
  if constexpr (Cfg::b == Layout::nk)
    b = {g.b + (column * g.ldb + k) * S::size, g.ldb * S::size, g.n - column,
         int(g.k - k) * S::size};
  else
    b = {g.b + (k * g.ldb + column) * S::size, g.ldb * S::size, int(g.k - k),
         (g.n - column) * S::size};
  copy_tile<typename S::BTile, S::threads, Cfg::align_b>(to + S::ATile::bytes,
                                                         b, threadIdx.x);
}

/// Fills stages with tiles of two matrices. Other sources have the same two
/// functions.
template <class Cfg> struct MatrixSource {
  int row, column;

  /// What follows is about the tile at (row, column).
  TN_FN void place(const GemmArgs &, int tile_row, int tile_column) {
    row = tile_row;
    column = tile_column;
  }
  TN_FN void fetch(const GemmArgs &g, int block, uint32_t shared,
                   int slot) const {
    fetch_stage<Cfg>(g, row, column, block, shared, slot);
  }
};

/// Sums of the tile at (row, column) over k blocks [begin, end). All threads of
/// the block call it; shared memory is free again when it returns.
template <class Cfg, class From>
TN_FN void sum_tile(const GemmArgs &g, From &source, int row, int column,
                    int begin, int end, sums_of<Cfg> &sums) {
  using S = GemmShape<Cfg>;
  constexpr int stages = S::stages;
  uint32_t shared = shared_address(shared_memory());
  sums.clear();
  source.place(g, row, column);
  TN_UNROLL
  for (int s = 0; s < stages - 1; ++s) {
    if (begin + s < end)
      source.fetch(g, begin + s, shared, s);
    commit_copies();
  }
  int slot = 0, next = stages - 1;
  for (int block = begin; block < end; ++block) {
    wait_copies<stages - 2>();
    // Also: everybody has read the slot that is filled next.
    __syncthreads();
    if (block + stages - 1 < end)
      source.fetch(g, block + stages - 1, shared, next);
    commit_copies();
    uint32_t at = shared + slot * S::stage_bytes;
    sums.multiply(at, at + S::ATile::bytes);
    slot = slot + 1 == stages ? 0 : slot + 1;
    next = next + 1 == stages ? 0 : next + 1;
  }
  wait_copies<0>();
  __syncthreads();
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CUDA_GEMM_TILE_CUH
