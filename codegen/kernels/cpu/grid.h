//===- grid.h - a matmul's tiles, shared out to threads -------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CPU_GRID_H
#define TENON_KERNELS_CPU_GRID_H

#include "kernels/common/strided.h"

namespace tn {
inline namespace TN_FORM {

/// The part of a grid of row tiles x column tiles that a thread computes.
struct GridShare {
  Range rows, columns;
};

/// What a share of so many row tiles and column tiles costs.
using GridCost = int64_t (*)(int64_t rows, int64_t columns);

/// Splits the grid so that the greatest share costs least; among equals, by
/// columns rather than rows, so that each thread reads its own part of B.
inline GridShare share_grid(int64_t row_tiles, int64_t column_tiles,
                            int64_t thread, int64_t threads, GridCost cost) {
  int64_t best = INT64_MAX, across = 1;
  for (int64_t c = threads; c >= 1; --c) {
    int64_t here =
        cost(ceil_div(row_tiles, threads / c), ceil_div(column_tiles, c));
    if (here < best) {
      best = here;
      across = c;
    }
  }
  int64_t down = threads / across;
  if (thread >= across * down)
    return {{0, 0}, {0, 0}};
  return {share(row_tiles, 1, thread / across, down),
          share(column_tiles, 1, thread % across, across)};
}

/// Calls f(index, tiles) for each matrix of `per_matrix` row tiles that a share
/// of rows has tiles of.
template <class F>
TN_FN void each_matrix(Range rows, int64_t per_matrix, const F &f) {
  for (int64_t r = rows.begin; r < rows.end;) {
    int64_t index = r / per_matrix, begin = r - index * per_matrix;
    int64_t end = min_of(per_matrix, begin + rows.end - r);
    f(index, Range{begin, end});
    r += end - begin;
  }
}

/// A number of rows that the compiler knows.
template <int N> struct Rows {
  constexpr operator int() const { return N; }
};

/// f(Rows<rows>{}) for 1 <= rows <= Most.
template <int Most, class F> TN_FN void with_rows(int64_t rows, const F &f) {
  if (rows == Most)
    return f(Rows<Most>{});
  if constexpr (Most > 1)
    with_rows<Most - 1>(rows, f);
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CPU_GRID_H
