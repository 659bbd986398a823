//===- gemm.h - matmul by a constant, packed operand ----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// C[..., M, N] = epilogue(A[..., M, K] * B[K, N]) in f32, B a constant that
/// was packed when the model was compiled.
///
///   entry   tn::gemm<Cfg, Epilogue>(args)
///
///   Cfg     static constexpr int64_t N, K   the sizes of B; both >= 0
///           using B                         float, tn_f16 or tn_bf16: as what
///                                           B is stored
///           static constexpr int rank       rank of A, C and the epilogue's
///                                           operands; at least 2
///           using Operands = tn::types<...> element types of the epilogue's
///                                           operands: float or tn_bool each
///           static constexpr int products   with tiles (gemm_amx.h): how many
///                                           products of bf16 parts make one of
///                                           f32, 6 (as exact, the default), 3,
///                                           1, or 0 to keep to multiply-adds;
///                                           fewer where B is bf16
///
///   views   0              A    f32, last dimension contiguous
///           1              B    packed (gemm_pack.h); only `data` is read
///           2, 3, ...           epilogue operands (epilogue.h)
///           last           C    f32, last dimension contiguous
///   params  what the epilogue reads with tn::param
///   scratch none
///
/// Shapes: leading dimensions of A and C are equal. They are merged into rows
/// where all strides allow, which is the fast case; otherwise each outer index
/// is a product of its own. Any M, including 0. Operands need no alignment
/// (B: 64 bytes is faster). C may not overlap A or B; it may be the same memory
/// as a `load_full` operand with the same strides.
///
/// Numerics: halves become f32, exactly; f32 accumulation, one chain of fused
/// multiply-adds per element in order of k (the generic form rounds products
/// too). Products of many rows on a CPU with AMX are summed in another order,
/// see gemm_amx.h.
///
/// Work is cut into tiles of 32 columns (AVX2, generic: 16) by up to 14 (6, 2)
/// rows. A thread takes a range of column tiles and of row tiles; within it, as
/// many rows of A as fit in most of a 2 MB L2 cache meet one column tile of B
/// after another, so B is read from memory once for each such block of rows. A
/// product of few rows is bound by reading B once; it prefetches the next tile
/// of B.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CPU_GEMM_H
#define TENON_KERNELS_CPU_GEMM_H

#include "kernels/cpu/epilogue.h"
#include "kernels/cpu/gemm_amx.h"
#include "kernels/cpu/grid.h"
#include "kernels/cpu/micro.h"

namespace tn {
inline namespace TN_FORM {

/// The rows [begin, end) of tile `t` when m rows are cut into `tiles` of nearly
/// equal height.
TN_FN Range row_tile(int64_t m, int64_t tiles, int64_t t) {
  return share(m, 1, t, tiles);
}

/// One product C[m, n] = epilogue(A[m, k] * B) with plain row strides.
template <class B> struct Gemm {
  const float *a;
  int64_t lda;
  const B *b; ///< packed
  float *c;
  int64_t ldc;
  int64_t m, n, k;

  TN_FN const B *panel(int64_t column) const {
    return b + column / panel_columns * panel_columns * k;
  }

  /// The panels of column tile `x`. Where the last tile has one panel too few,
  /// it reads its first one again and the result is dropped.
  TN_FN void panels(int64_t x, const B *(&p)[tile_panels]) const {
    for (int i = 0; i < tile_panels; ++i) {
      int64_t column = x * tile_columns + i * panel_columns;
      p[i] = panel(column < n ? column : x * tile_columns);
    }
  }

  /// Row tiles `rows` of `row_tiles`, column tiles `columns`.
  template <class Epilogue>
  void run(Range rows, int64_t row_tiles, Range columns,
           EpilogueArgs &e) const {
    // All rows at once if they nearly fill a 2 MB cache; else blocks of 768 KB,
    // which leave room for B and for a second thread on the same core.
    constexpr int64_t whole_floats = 7 << 16, block_floats = 3 << 16;
    int64_t tile_floats = tile_rows * max_of(k, 1);
    int64_t block = (rows.end - rows.begin) * tile_floats <= whole_floats
                        ? max_of(1, rows.end - rows.begin)
                        : max_of(1, block_floats / tile_floats);
    for (int64_t r = rows.begin; r < rows.end; r += block)
      for (int64_t x = columns.begin; x < columns.end; ++x)
        run_column<Epilogue>({r, min_of(r + block, rows.end)}, row_tiles, x,
                             x + 1 < columns.end ? x + 1 : columns.begin, e);
  }

  /// One column tile against a block of row tiles; `next` is the column tile to
  /// prefetch meanwhile.
  template <class Epilogue>
  TN_FN void run_column(Range rows, int64_t row_tiles, int64_t x, int64_t next,
                        EpilogueArgs &e) const {
    alignas(64) float sums[tile_rows * tile_columns];
    int64_t col = x * tile_columns, width = min_of(tile_columns, n - col);
    TileOf<B> t;
    t.lda = lda;
    t.k = k;
    t.accumulate = false;
    panels(x, t.b);
    // The next tile's panels lie together; each row tile fetches its part, so
    // that memory is read all the time and never in bursts.
    int64_t tiles = rows.end - rows.begin;
    t.next = panel(next * tile_columns);
    t.next_step = ceil_div(tile_columns, tiles);
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      Range at = row_tile(m, row_tiles, r);
      float *out = c + at.begin * ldc + col;
      t.a = a + at.begin * lda;
      bool direct = same_type<Epilogue, Identity> && width == tile_columns;
      t.c = direct ? out : sums;
      t.ldc = direct ? ldc : tile_columns;
      constexpr int line = line_elements<B>;
      if (t.next_step > line)
        micro_tile<ceil_div(tile_columns, line)>(at.end - at.begin, t);
      else
        micro_tile<1>(at.end - at.begin, t);
      t.next += t.next_step * k;
      if (!direct)
        finish_tile<Epilogue>(sums, tile_columns, out, ldc, at.end - at.begin,
                              width, at.begin, col, e);
    }
  }
};

template <class Cfg, class Epilogue = Identity> void gemm(const tn_args *args) {
  constexpr int operands = Cfg::Operands::count, count = 2 + operands;
  static_assert(operands <= max_epilogue && Cfg::rank >= 2);
  const tn_view *v = args->views;
  int which[count] = {0, 2 + operands};
  for (int i = 0; i < operands; ++i)
    which[2 + i] = 2 + i;
  Space<count> s =
      space_of<count>(v, which, v[2 + operands].shape, Cfg::rank - 1);

  int64_t m = s.shape[s.rank - 1], outer = s.count(s.rank - 1);
  if (m == 0 || Cfg::N == 0)
    return;
  using B = typename Cfg::B;
  bool amx = uses_amx<Cfg>(m);
  int64_t row_tiles = ceil_div(m, amx ? amx_rows : tile_rows);
  GridShare mine = share_grid(
      outer * row_tiles, ceil_div(Cfg::N, tile_columns), args->thread,
      args->threads,
      amx ? amx_cost : [](int64_t r, int64_t c) { return r * c; });
  EpilogueArgs e;
  e.params = args->params;
  each_matrix(mine.rows, row_tiles, [&](int64_t index, Range tiles) {
    int64_t offset[count];
    s.locate(index, s.rank - 1, offset);
    set_operands<typename Cfg::Operands>(e, v + 2, s, 2, offset, Cfg::rank);
    Gemm<B> g = {(const float *)v[0].data + offset[0],
                 s.stride[0][s.rank - 1],
                 (const B *)v[1].data,
                 (float *)v[2 + operands].data + offset[1],
                 s.stride[1][s.rank - 1],
                 m,
                 Cfg::N,
                 Cfg::K};
    if (amx)
      run_amx<Cfg, Epilogue>(g, tiles, mine.columns, e);
    else
      g.template run<Epilogue>(tiles, row_tiles, mine.columns, e);
  });
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CPU_GEMM_H
