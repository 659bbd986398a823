//===- micro.h - the register-tiled product that matmuls are made of ------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// C[rows, tile_columns] (+)= A[rows, K] * B[K, tile_columns] with all of C in
/// registers. B lies in *panels* of 16 columns, [K][16] each; a tile is as wide
/// as one or two panels and up to `tile_rows` high:
///
///   AVX-512  14 x 32   28 accumulators, 2 of B, 1 broadcast of A
///   AVX2      6 x 16   12 accumulators, 2 of B, 1 broadcast
///   generic   2 x 16    8 accumulators, 4 of B, 1 broadcast
///
/// A has contiguous rows at any distance: broadcasts read it in place, since
/// packing it was measured not to pay. Every element of C is one chain of fused
/// multiply-adds in order of k, whatever the height of the tile, so results do
/// not depend on how rows are cut into tiles. B may be stored in halves, which
/// are widened, exactly, as they are loaded.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CPU_MICRO_H
#define TENON_KERNELS_CPU_MICRO_H

#include "kernels/cpu/gemm_pack.h"
#include "kernels/cpu/grid.h"
#include "kernels/cpu/vec_half.h"

namespace tn {
inline namespace TN_FORM {

#if defined(TN_AVX512)
inline constexpr int tile_rows = 14, tile_panels = 2;
#elif defined(TN_AVX2)
inline constexpr int tile_rows = 6, tile_panels = 1;
#else
inline constexpr int tile_rows = 2, tile_panels = 1;
#endif
inline constexpr int tile_columns = tile_panels * panel_columns;
/// Elements of B in a cache line of 64 bytes.
template <class B> inline constexpr int line_elements = 64 / int(sizeof(B));

/// The operands of one tile.
template <class B> struct TileOf {
  const float *a; ///< [rows][K], rows `lda` apart
  int64_t lda;
  const B *b[tile_panels]; ///< panels [K][16]
  int64_t k;
  float *c; ///< [rows][tile_columns], rows `ldc` apart
  int64_t ldc;
  bool accumulate; ///< add to C instead of writing it
  /// What the caller reads next: with Lines > 0 each step of k fetches that
  /// many cache lines at `next` into the L2 cache and moves on by `next_step`
  /// elements.
  const B *next;
  int64_t next_step;
};
using Tile = TileOf<float>;

/// Hides a pointer's origin from the optimiser. It would otherwise give each
/// row of A a pointer of its own, of which there are too few registers.
TN_FN void opaque(const float *&p) { __asm__("" : "+r"(p)); }

/// The sums of one tile; `Lines` as Tile::next says.
template <int Rows, int Lines, class B>
__attribute__((noinline)) void micro(const TileOf<B> &t) {
  constexpr int vectors = tile_columns / vf::width;
  constexpr int per_panel = panel_columns / vf::width;
  // Three rows share a pointer: x86 addresses p, p + lda and p + 2 lda
  // directly.
  constexpr int groups = (Rows + 2) / 3;
  const int64_t lda = t.lda, ldc = t.ldc;
  float *const c = t.c;
  vf acc[Rows][vectors];
  TN_UNROLL
  for (int i = 0; i < Rows; ++i) {
    TN_UNROLL
    for (int j = 0; j < vectors; ++j)
      acc[i][j] = t.accumulate ? load(c + i * ldc + j * vf::width) : vf(0);
  }
  const float *a[groups];
  const B *b[tile_panels], *next = t.next;
  TN_UNROLL
  for (int g = 0; g < groups; ++g)
    a[g] = t.a + 3 * g * lda;
  TN_UNROLL
  for (int p = 0; p < tile_panels; ++p)
    b[p] = t.b[p];
  for (int64_t k = t.k; k > 0; --k) {
    vf row[vectors];
    TN_UNROLL
    for (int j = 0; j < vectors; ++j)
      row[j] = load_single(b[j / per_panel] + j % per_panel * vf::width);
    TN_UNROLL
    for (int p = 0; p < tile_panels; ++p)
      b[p] += panel_columns;
    if constexpr (Lines > 0) {
      TN_UNROLL
      for (int line = 0; line < Lines; ++line)
        __builtin_prefetch(next + line * line_elements<B>, 0, 2);
      next += t.next_step;
    }
    TN_UNROLL
    for (int i = 0; i < Rows; ++i) {
      vf left = vf(a[i / 3][i % 3 * lda]);
      TN_UNROLL
      for (int j = 0; j < vectors; ++j)
        acc[i][j] = fma(left, row[j], acc[i][j]);
    }
    TN_UNROLL
    for (int g = 0; g < groups; ++g) {
      ++a[g];
      opaque(a[g]);
    }
  }
  TN_UNROLL
  for (int i = 0; i < Rows; ++i) {
    TN_UNROLL
    for (int j = 0; j < vectors; ++j)
      store(c + i * ldc + j * vf::width, acc[i][j]);
  }
}

/// `micro<rows>` for 1 <= rows <= Rows.
template <int Lines = 0, class B>
TN_FN void micro_tile(int64_t rows, const TileOf<B> &t) {
  with_rows<tile_rows>(rows, [&](auto n) { micro<n, Lines>(t); });
}

/// C[rows, columns] (+)= A[rows, K] * B with B's panels one after another in
/// `panels`. C has whole tiles of columns. `t` brings lda, k, ldc, accumulate.
TN_FN void multiply_panels(Tile &t, const float *a, const float *panels,
                           int64_t rows, int64_t columns, float *c) {
  for (int64_t j = 0; j < columns; j += tile_columns) {
    for (int p = 0; p < tile_panels; ++p) {
      // A last tile of one panel reads it twice.
      int64_t column = j + p * panel_columns;
      t.b[p] = panels + (column < columns ? column : j) * t.k;
    }
    for (int64_t i = 0; i < rows; i += tile_rows) {
      t.a = a + i * t.lda;
      t.c = c + i * t.ldc + j;
      micro_tile(min_of(tile_rows, rows - i), t);
    }
  }
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CPU_MICRO_H
