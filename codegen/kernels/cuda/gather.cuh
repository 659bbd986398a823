//===- gather.cuh - rows chosen by index
//---------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
///   entry   tn::gather_rows<Cfg>(args)     y[o.., i.., n..] =
///                                            data[o.., indices[i..], n..]
///   Cfg     using T, Index
///           static constexpr int data_rank, axis, indices_rank
///           static constexpr bool row_per_warp   a warp, else a thread, a row
///   views   data, indices, y; any strides
///   grid    a warp or thread for each row y[o.., i.., :]; fewer will do
///
/// As tn::gather of kernels/common/gather.h in what it gives. Rows of 4-byte
/// elements that are contiguous and aligned move 16 bytes a lane.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CUDA_GATHER_CUH
#define TENON_KERNELS_CUDA_GATHER_CUH

#include "kernels/common/gather.h"
#include "kernels/cuda/row_team.cuh"

namespace tn {
inline namespace TN_FORM {

template <class Cfg> TN_FN void gather_rows(const tn_args *args) {
  using T = typename Cfg::T;
  using Index = typename Cfg::Index;
  constexpr int axis = Cfg::axis, rank = Cfg::data_rank;
  constexpr int indices_rank = Cfg::indices_rank;
  constexpr int inner = rank - axis - 1, first = axis + indices_rank;
  constexpr int width = sizeof(T) < 4 ? 4 : 16 / sizeof(T);
  if constexpr (!Cfg::row_per_warp)
    return gather<Cfg>(args);
  const tn_view &data = args->views[0], &indices = args->views[1];
  const tn_view &y = args->views[2];
  int64_t chosen = extent(indices, 0, indices_rank), size = data.shape[axis];
  int64_t n = extent(y, first, first + inner);
  // One run of memory on both sides?
  bool run = true;
  int64_t expected = 1;
  TN_UNROLL
  for (int d = inner - 1; d >= 0; --d) {
    run = run && y.stride[first + d] == expected &&
          data.stride[axis + 1 + d] == expected;
    expected *= y.shape[first + d];
  }
  Range mine = RowTeam<Cfg>::rows(extent(y, 0, axis) * chosen);
  for (int64_t r = mine.begin; r < mine.end; r += mine.step) {
    int64_t outer = r / chosen, i = r - outer * chosen;
    T *out = (T *)y.data + offset_of(y.shape, y.stride, 0, first, r);
    const T *in =
        (const T *)data.data + offset_of(y.shape, data.stride, 0, axis, outer);
    int64_t at = ((const Index *)indices.data)[offset_of(
        indices.shape, indices.stride, 0, indices_rank, i)];
    if (!take_index(args, at, size, 1, axis, i))
      continue;
    in += at * data.stride[axis];
    constexpr uint64_t bytes = sizeof(Piece<T, width>);
    bool wide = run && n % width == 0 &&
                uint64_t(out) % bytes == 0 && uint64_t(in) % bytes == 0;
    if (wide) {
      for (int64_t j = lane_id(); j < n / width; j += warp_size)
        ((Piece<T, width> *)out)[j] = ((const Piece<T, width> *)in)[j];
      continue;
    }
    for (int64_t j = lane_id(); j < n; j += warp_size) {
      int64_t to = offset_of(y.shape + first, y.stride + first, 0, inner, j);
      int64_t from =
          offset_of(y.shape + first, data.stride + axis + 1, 0, inner, j);
      out[to] = in[from];
    }
  }
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CUDA_GATHER_CUH
