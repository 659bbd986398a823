//===- strided.h - walking n-dimensional views ----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What most kernels share, on CPUs and GPUs: the static split of work over
/// threads, and `Space`, an index space with the strides of several operands,
/// whose dimensions are merged at run time wherever every operand allows it.
///
/// Strides count elements throughout.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_COMMON_STRIDED_H
#define TENON_KERNELS_COMMON_STRIDED_H

#include "kernels/common/form.h"
#include "runtime/format/abi.h"

namespace tn {
inline namespace TN_FORM {

/// The greatest rank of a view.
inline constexpr int max_rank = 8;

/// A list of element types.
template <class... T> struct types {
  static constexpr int count = sizeof...(T);
  static constexpr int64_t size[] = {int64_t(sizeof(T))..., 0};
};

/// The I-th type of a list.
template <int I, class T, class... Rest> struct TypeAt {
  using type = typename TypeAt<I - 1, Rest...>::type;
};
template <class T, class... Rest> struct TypeAt<0, T, Rest...> {
  using type = T;
};
template <int I, class List> struct TypeIn;
template <int I, class... T> struct TypeIn<I, types<T...>> {
  using type = typename TypeAt<I, T...>::type;
};
template <int I, class List> using type_at = typename TypeIn<I, List>::type;

template <class A, class B> inline constexpr bool same_type = false;
template <class A> inline constexpr bool same_type<A, A> = true;

#if defined(__CUDACC__)

inline constexpr bool on_device = true;

/// Indices begin, begin + step, ... below end.
struct Range {
  int64_t begin, end, step;
};

/// This thread's share of [0, n): neighbours take neighbours.
TN_FN Range share(const tn_args *, int64_t n, int64_t = 1) {
  return {int64_t(blockIdx.x) * blockDim.x + threadIdx.x, n,
          int64_t(gridDim.x) * blockDim.x};
}

#else

inline constexpr bool on_device = false;

/// A half-open range of indices. Kernels for both targets step by `step`.
struct Range {
  int64_t begin, end;
  static constexpr int64_t step = 1;
};

/// The share of `thread` in [0, n), in multiples of `grain`. Shares differ by
/// at most one grain; what is computed for an index may not depend on them.
TN_FN Range share(int64_t n, int64_t grain, int64_t thread, int64_t threads) {
  int64_t grains = ceil_div(n, grain);
  int64_t low = grains / threads, extra = grains % threads;
  int64_t begin = thread * low + min_of(thread, extra);
  int64_t end = begin + low + (thread < extra ? 1 : 0);
  return {min_of(begin * grain, n), min_of(end * grain, n)};
}

TN_FN Range share(const tn_args *args, int64_t n, int64_t grain = 1) {
  return share(n, grain, args->thread, args->threads);
}

#endif

/// Whether this is the thread that does what one thread must do alone.
TN_FN bool is_first_thread(const tn_args *args) {
  return share(args, 1).begin == 0 && share(args, 1).end == 1;
}

/// The number of elements of the dimensions [from, to) of a view.
TN_FN int64_t extent(const tn_view &v, int from, int to) {
  int64_t n = 1;
  for (int d = from; d < to; ++d)
    n *= v.shape[d];
  return n;
}

/// The offset of the `index`-th row of a view whose outer `rank` dimensions
/// enumerate the rows in row-major order.
TN_FN int64_t row_offset(const tn_view &v, int rank, int64_t index) {
  if (rank == 0)
    return 0;
  int64_t offset = 0;
  for (int d = rank - 1; d > 0; --d) {
    int64_t q = index / v.shape[d];
    offset += (index - q * v.shape[d]) * v.stride[d];
    index = q;
  }
  return offset + index * v.stride[0];
}

/// An index space of `rank` dimensions with a stride per operand and dimension.
template <int Operands> struct Space {
  int rank = 0;
  int64_t shape[max_rank];
  int64_t stride[Operands][max_rank];

  /// Adds an innermost dimension; sizes of 1 vanish, and it is merged with the
  /// one before it where all operands step over both evenly.
  TN_FN void push(int64_t size, const int64_t (&step)[Operands]) {
    if (size == 1)
      return;
    bool merge = rank > 0;
    for (int o = 0; o < Operands && merge; ++o)
      merge = stride[o][rank - 1] == step[o] * size;
    int d = merge ? rank - 1 : rank++;
    shape[d] = merge ? shape[d] * size : size;
    for (int o = 0; o < Operands; ++o)
      stride[o][d] = step[o];
  }

  /// Makes sure there is an innermost dimension.
  TN_FN void finish() {
    if (rank > 0)
      return;
    rank = 1;
    shape[0] = 1;
    for (int o = 0; o < Operands; ++o)
      stride[o][0] = 0;
  }

  TN_FN int64_t count(int dims) const {
    int64_t n = 1;
    for (int d = 0; d < dims; ++d)
      n *= shape[d];
    return n;
  }

  /// Offsets of all operands at position `index` of the first `dims`
  /// dimensions.
  TN_FN void locate(int64_t index, int dims,
                    int64_t (&offset)[Operands]) const {
    for (int o = 0; o < Operands; ++o)
      offset[o] = 0;
    for (int d = dims - 1; d >= 0; --d) {
      int64_t q = index / shape[d], r = index - q * shape[d];
      for (int o = 0; o < Operands; ++o)
        offset[o] += r * stride[o][d];
      index = q;
    }
  }
};

/// The space of the dimensions [0, rank) of views[which[...]], whose shapes
/// there equal `shape`.
template <int Operands>
TN_FN Space<Operands> space_of(const tn_view *views,
                               const int (&which)[Operands],
                               const int64_t *shape, int rank) {
  Space<Operands> s;
  for (int d = 0; d < rank; ++d) {
    int64_t step[Operands];
    for (int o = 0; o < Operands; ++o)
      step[o] = views[which[o]].stride[d];
    s.push(shape[d], step);
  }
  s.finish();
  return s;
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_COMMON_STRIDED_H
