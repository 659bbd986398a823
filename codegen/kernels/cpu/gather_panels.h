//===- gather_panels.h - rows of a table that a GEMM has packed -----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A language model's embedding is often its output projection too. The GEMM
/// wants the table [entries, columns] transposed and in panels (gemm_pack.h):
/// this gather reads the panels, so that the artifact holds the table once. A
/// row's elements lie a cache line apart, which costs a few microseconds a row
/// and next to nothing beside the GEMM.
///
///   entry   tn::gather_panels<Cfg>(args)
///             y[i.., c] = table[indices[i..] / 16, c, indices[i..] % 16]
///   Cfg     using Index                        int32_t or int64_t
///           static constexpr int indices_rank
///           static constexpr int64_t entries   of the table
///           using T                            its elements, only copied
///           static constexpr bool pairs        whether two columns share a
///                                              line, as codes_pack.h has 16
///                                              bits
///   views   table (T, the panels [ceil(entries / 16), columns, 16], with pairs
///           [ceil(entries / 16), ceil(columns / 2), 32]; its last dimension
///           contiguous), indices, y [indices.., columns]
///   params  none
///   scratch none
///
/// A negative index counts from the end. One out of range is a fault (fault.h)
/// of axis 0. Threads take ranges of rows.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CPU_GATHER_PANELS_H
#define TENON_KERNELS_CPU_GATHER_PANELS_H

#include "kernels/common/fault.h"
#include "kernels/common/strided.h"
#include "kernels/cpu/gemm_pack.h"

namespace tn {
inline namespace TN_FORM {

template <class Cfg> void gather_panels(const tn_args *args) {
  using Index = typename Cfg::Index;
  using T = typename Cfg::T;
  constexpr int rank = Cfg::indices_rank;
  const tn_view &table = args->views[0], &indices = args->views[1];
  const tn_view &y = args->views[2];
  int64_t columns = y.shape[rank], step = y.stride[rank];
  Range mine = share(args, extent(indices, 0, rank));
  for (int64_t r = mine.begin; r < mine.end; ++r) {
    int64_t at = ((const Index *)indices.data)[row_offset(indices, rank, r)];
    if (!take_index(args, at, Cfg::entries, 1, 0, r))
      continue;
    constexpr int64_t together = Cfg::pairs ? 2 : 1;
    const T *in = (const T *)table.data + at / panel_columns * table.stride[0] +
                  at % panel_columns * together;
    T *out = (T *)y.data + row_offset(y, rank, r);
    for (int64_t c = 0; c < columns; ++c)
      out[c * step] = in[c / together * table.stride[1] + c % together];
  }
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CPU_GATHER_PANELS_H
