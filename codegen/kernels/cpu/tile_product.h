//===- tile_product.h - products whose operands lie ready for tiles -------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// C[m, N] = epilogue(A[m, K] * B[K, N]) on AMX where nothing has to be packed:
/// A is of 8- or 16-bit numbers, rows contiguous, and B lies in panels of 16
/// columns whose lines of 64 bytes hold the two or four numbers of each column
/// that belong together (codes_pack.h), so that 16 lines are a tile. A row of A
/// has a multiple of 64 bytes.
///
/// A unit of work is 32 rows by 32 columns, four tiles. As many rows as fit in
/// half a 2 MB L2 cache meet one pair of panels after another. The last tile of
/// rows begins with rows that the one before it had. Sums of a unit are
/// finished while the next one's are made, and the panels after these are
/// fetched. So are lines of C: tiles are loaded from L2, and a store that waits
/// for its line would have them wait too.
///
/// Each element's sum is one chain in order of k, whatever the thread.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CPU_TILE_PRODUCT_H
#define TENON_KERNELS_CPU_TILE_PRODUCT_H

#include "kernels/cpu/amx_tile.h"
#include "kernels/cpu/codes_pack.h"
#include "kernels/cpu/epilogue.h"
#include "kernels/cpu/grid.h"

namespace tn {
inline namespace TN_FORM {

/// Rows and columns of a unit of work.
inline constexpr int64_t unit_rows = 32, unit_columns = 2 * panel_columns;

/// A thread's share of units.
TN_FN GridShare share_units(const tn_args *args, int64_t row_units, int64_t n) {
  return share_grid(row_units, ceil_div(n, unit_columns), args->thread,
                    args->threads,
                    [](int64_t r, int64_t c) { return r * (c + 1); });
}

/// What is multiplied; strides of A and B in bytes.
struct TileOperands {
  const char *a;
  int64_t lda;
  const char *b;
  int64_t panel;
  float *c;
  int64_t ldc, m;
};

#if defined(TN_AMX_TILES)

/// Whether run_tiles takes so many rows of so many bytes.
constexpr bool tiles_serve(int64_t rows, int64_t row_bytes) {
  return row_bytes % tile_line == 0 && rows >= 16;
}

/// `Kind` has the type of sums, `multiply` of tiles and `to_f32`.
template <class Kind, int64_t N, int64_t RowBytes, class Epilogue>
struct TileProduct : TileOperands {
  static constexpr int64_t steps = RowBytes / tile_line,
                           step_bytes = 16 * tile_line, rows_ahead = 4;
  using Sum = typename Kind::Sum;
  EpilogueArgs &e;
  /// Sums of a unit being made and of one being finished.
  alignas(64) Sum sums[2][unit_rows * unit_columns];
  alignas(64) Sum starts[unit_columns];
  int now = 0;
  /// What is still to be finished: rows [row, end) from `from` on.
  int64_t from = 0, row = 0, end = 0, col = 0;

  TN_FN TileProduct(const TileOperands &o, EpilogueArgs &e)
      : TileOperands(o), e(e) {}

  /// The first row that tile `t` of 16 rows reads.
  TN_FN int64_t tile_row(int64_t t) const { return min_of(t * 16, m - 16); }
  TN_FN const char *panel_of(int64_t column) const {
    return b + column / panel_columns * panel;
  }

  template <class Begin>
  void run(Range pairs, Range columns, const Begin &begin) {
    constexpr int64_t block = max_of(1, (1 << 20) / (unit_rows * RowBytes));
    Tiles tiles;
    for (int64_t p = pairs.begin; p < pairs.end; p += block)
      for (int64_t x = columns.begin; x < columns.end; ++x) {
        int64_t to = min_of(pairs.end, p + block);
        // The first of the two panels again, where there is but one.
        int64_t first = x * unit_columns, second = first + panel_columns;
        second = second < N ? second : first;
        begin(first, starts);
        begin(second, starts + panel_columns);
        int64_t after = x + 1 < columns.end ? x + 1 : columns.begin;
        const char *ahead = panel_of(after * unit_columns);
        int64_t lines = ceil_div(2 * 16, to - p);
        for (int64_t q = p; q < to; ++q, ahead += steps * lines * tile_line) {
          if (m - q * unit_rows > 16)
            multiply<2>(q, panel_of(first), panel_of(second), ahead, lines);
          else
            multiply<1>(q, panel_of(first), panel_of(second), ahead, lines);
          begin_finish(q, first);
        }
      }
    finish(end - row);
  }

  /// Row pair `q` by two panels, while the sums before it are finished and
  /// `lines` lines of what comes next are fetched in each step.
  template <int RowTiles>
  __attribute__((noinline)) void multiply(int64_t q, const char *b0,
                                          const char *b1, const char *ahead,
                                          int64_t lines) {
    const char *a0 = a + tile_row(2 * q) * lda, *a1 = a0;
    if constexpr (RowTiles > 1)
      a1 = a + tile_row(2 * q + 1) * lda;
    int64_t pending = end - row, due = 0;
    // One line of starts serves all rows.
    tile_load<0>(starts, 0);
    tile_load<1>(starts + 16, 0);
    if constexpr (RowTiles > 1) {
      tile_load<2>(starts, 0);
      tile_load<3>(starts + 16, 0);
    }
    for (int64_t s = 0; s < steps; ++s) {
      tile_load<4>(a0 + s * tile_line, lda);
      tile_load<6>(b0 + s * step_bytes);
      Kind::template multiply<0, 4, 6>();
      tile_load<7>(b1 + s * step_bytes);
      Kind::template multiply<1, 4, 7>();
      if constexpr (RowTiles > 1) {
        tile_load<5>(a1 + s * tile_line, lda);
        Kind::template multiply<2, 5, 6>();
        Kind::template multiply<3, 5, 7>();
      }
      for (int64_t l = 0; l < lines; ++l, ahead += tile_line)
        __builtin_prefetch(ahead, 0, 2);
      for (due += pending; due >= steps; due -= steps)
        finish(1);
    }
    finish(end - row);
    constexpr int64_t line = unit_columns * sizeof(Sum);
    Sum *out = sums[now];
    tile_store<0>(out, line);
    tile_store<1>(out + 16, line);
    if constexpr (RowTiles > 1) {
      tile_store<2>(out + 16 * unit_columns, line);
      tile_store<3>(out + 16 * unit_columns + 16, line);
    }
  }

  TN_FN void begin_finish(int64_t q, int64_t column) {
    from = q * unit_rows;
    row = from;
    end = min_of(from + unit_rows, m);
    col = column;
    now ^= 1;
    for (int64_t r = row; r < row + rows_ahead; ++r)
      fetch_line(r);
  }

  /// Row `r` of C among those to be finished, for writing.
  TN_FN void fetch_line(int64_t r) const {
    if (r >= end)
      return;
    __builtin_prefetch(c + r * ldc + col, 1);
    __builtin_prefetch(c + r * ldc + col + panel_columns, 1);
  }

  /// Finishes `count` rows.
  TN_FN void finish(int64_t count) {
    for (; count > 0; --count, ++row) {
      fetch_line(row + rows_ahead);
      // Where the row lies in its tile, which may begin with earlier rows.
      int64_t tile = (row - from) / 16, t = from / 16 + tile;
      const Sum *in =
          sums[now ^ 1] + (tile * 16 + row - tile_row(t)) * unit_columns;
      alignas(64) float out[unit_columns];
      for (int64_t j = 0; j < unit_columns; j += vf::width)
        store(out + j, Kind::to_f32(in + j));
      finish_tile<Epilogue>(out, unit_columns, c + row * ldc + col, ldc, 1,
                            min_of(unit_columns, N - col), row, col, e);
    }
  }
};

/// Row pairs `pairs`, pairs of panels `columns`; begin(column, starts) gives
/// what the sums of a panel's columns begin with.
template <class Kind, int64_t N, int64_t RowBytes, class Epilogue, class Begin>
TN_FN void run_tiles(const TileOperands &o, Range pairs, Range columns,
                     EpilogueArgs &e, const Begin &begin) {
  if constexpr (RowBytes % tile_line == 0)
    TileProduct<Kind, N, RowBytes, Epilogue>(o, e).run(pairs, columns, begin);
}

#else

constexpr bool tiles_serve(int64_t, int64_t) { return false; }
template <class Kind, int64_t N, int64_t RowBytes, class Epilogue, class Begin>
TN_FN void run_tiles(const TileOperands &, Range, Range, EpilogueArgs &,
                     const Begin &) {}

#endif

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CPU_TILE_PRODUCT_H
