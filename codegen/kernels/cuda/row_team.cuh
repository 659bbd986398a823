//===- row_team.cuh - who works on a row
//---------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Kernels that work on whole rows give each to a warp (Cfg::row_per_warp) or
/// to a block. A row of a known, not too great length stays in registers
/// between the passes over it.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CUDA_ROW_TEAM_CUH
#define TENON_KERNELS_CUDA_ROW_TEAM_CUH

#include "kernels/common/strided.h"
#include "kernels/cuda/common.cuh"

namespace tn {
inline namespace TN_FORM {

template <class Cfg> struct RowTeam {
  static constexpr int size = Cfg::row_per_warp ? warp_size : Cfg::threads;
  static constexpr int per_block = Cfg::threads / size;

  static TN_FN int rank() {
    return Cfg::row_per_warp ? lane_id() : int(threadIdx.x);
  }
  /// The rows of this team are those from the first in steps.
  static TN_FN Range rows(int64_t n) {
    int64_t first = int64_t(blockIdx.x) * per_block;
    if constexpr (Cfg::row_per_warp)
      first += warp_id();
    return {first, n, int64_t(gridDim.x) * per_block};
  }
  template <class T, class F> static TN_FN T reduce(T x, F join) {
    if constexpr (Cfg::row_per_warp) {
      return warp_reduce(x, join);
    } else {
      __shared__ T slots[warp_size];
      return block_reduce(x, join, slots);
    }
  }
};

/// A row of Cfg::N elements (or, if that is dynamic, of n), of which each
/// thread of the team takes pieces of `Width` neighbours.
template <class Cfg, int Width> struct RowWalk {
  using Team = RowTeam<Cfg>;
  static constexpr int64_t pieces =
      Cfg::N == dynamic ? 0 : ceil_div(Cfg::N, int64_t(Width) * Team::size);
  /// Whether a thread's elements stay in registers, and how many there are.
  static constexpr bool held = pieces > 0 && pieces *Width <= 32;
  static constexpr int slots = held ? int(pieces) * Width : Width;

  /// f(slot, j) for the pieces that begin at j; slot numbers the first element.
  template <class F> static TN_FN void each(int64_t n, F f) {
    if constexpr (held) {
      TN_UNROLL
      for (int i = 0; i < pieces; ++i) {
        int64_t j = (int64_t(i) * Team::size + Team::rank()) * Width;
        if (j < n)
          f(i * Width, j);
      }
    } else {
      for (int64_t j = int64_t(Team::rank()) * Width; j < n;
           j += int64_t(Team::size) * Width)
        f(0, j);
    }
  }
};

/// Width neighbours as one access moves them.
template <class T, int Width>
struct __align__(sizeof(T) * Width < 16 ? sizeof(T) * Width : 16) Piece {
  T x[Width];
};

/// Width elements of a row, as floats.
template <class T, int Width>
TN_FN void load_piece(const T *row, int64_t j, int64_t stride, float *to) {
  if constexpr (Width == 1) {
    to[0] = tn_cast<float>(row[j * stride]);
  } else {
    Piece<T, Width> piece = *(const Piece<T, Width> *)(row + j);
    TN_UNROLL
    for (int k = 0; k < Width; ++k)
      to[k] = tn_cast<float>(piece.x[k]);
  }
}
template <class T, int Width>
TN_FN void store_piece(T *row, int64_t j, int64_t stride, const float *from) {
  if constexpr (Width == 1) {
    row[j * stride] = tn_cast<T>(from[0]);
  } else {
    Piece<T, Width> piece;
    TN_UNROLL
    for (int k = 0; k < Width; ++k)
      piece.x[k] = tn_cast<T>(from[k]);
    *(Piece<T, Width> *)(row + j) = piece;
  }
}

/// Whether a view's rows can be moved in pieces of Width elements.
template <class T, int Width>
TN_FN bool has_pieces(const tn_view &v, int rank) {
  constexpr int64_t bytes = sizeof(Piece<T, Width>);
  bool fit = v.stride[rank - 1] == 1 && uint64_t(v.data) % bytes == 0;
  TN_UNROLL
  for (int d = 0; d < rank - 1; ++d)
    fit = fit && v.stride[d] * int64_t(sizeof(T)) % bytes == 0;
  return fit;
}

/// The row's length: a constant where Cfg knows it.
template <class Cfg> TN_FN int64_t row_length(const tn_view &x) {
  return Cfg::N == dynamic ? extent(x, Cfg::rank - Cfg::axes, Cfg::rank)
                           : Cfg::N;
}

/// Row `r` of v, whose outer sizes are `shape`'s.
template <class Cfg, class T>
TN_FN T *row_of(const tn_view &v, const int64_t *shape, int64_t r) {
  tn_view outer = {nullptr, shape, v.stride};
  return (T *)v.data + row_offset(outer, Cfg::rank - Cfg::axes, r);
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CUDA_ROW_TEAM_CUH
