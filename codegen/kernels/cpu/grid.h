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

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CPU_GRID_H
