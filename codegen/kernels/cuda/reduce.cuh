//===- reduce.cuh - reductions over axes
//---------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
///   entry   tn::reduce_blocks<Cfg>(args)
///   Cfg     as tn::reduce of kernels/common/reduce.h, whose results these are,
///   and
///           static constexpr bool per_block   a block for each element of y,
///           else
///                                             a thread
///   views   x, y
///   grid    a block or thread for each element of y; fewer will do
///
/// A block's threads take the reduced elements in turns; their partial results
/// are joined in an order that depends on the shapes alone.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CUDA_REDUCE_CUH
#define TENON_KERNELS_CUDA_REDUCE_CUH

#include "kernels/common/reduce.h"
#include "kernels/cuda/common.cuh"

namespace tn {
inline namespace TN_FORM {

/// The element of x that is number `e` of those reduced into one of y.
template <class Cfg> TN_FN int64_t reduced_offset(const tn_view &x, int64_t e) {
  int64_t offset = 0;
  TN_UNROLL
  for (int d = Cfg::rank - 1; d >= 0; --d) {
    if (!(Cfg::axes >> d & 1))
      continue;
    int64_t q = e / x.shape[d];
    offset += (e - q * x.shape[d]) * x.stride[d];
    e = q;
  }
  return offset;
}

template <class Cfg, class R>
TN_FN typename R::A accumulate_block(const typename Cfg::T *in,
                                     const tn_view &x, int64_t n,
                                     double shift) {
  using A = typename R::A;
  __shared__ A slots[warp_size];
  A part = R::start();
  for (int64_t e = threadIdx.x; e < n; e += blockDim.x)
    part = R::join(part, R::lift(in[reduced_offset<Cfg>(x, e)], shift));
  return block_reduce(part, [](A a, A b) { return R::join(a, b); }, slots);
}

template <class Cfg> TN_FN void reduce_blocks(const tn_args *args) {
  using T = typename Cfg::T;
  if constexpr (!Cfg::per_block)
    return reduce<Cfg>(args);
  const tn_view &x = args->views[0], &y = args->views[1];
  int64_t kept = 1, n = 1;
  TN_UNROLL
  for (int d = 0; d < Cfg::rank; ++d)
    (Cfg::axes >> d & 1 ? n : kept) *= x.shape[d];
  for (int64_t e = blockIdx.x; e < kept; e += gridDim.x) {
    int64_t from = 0, to = 0, rest = e;
    TN_UNROLL
    for (int d = Cfg::rank - 1; d >= 0; --d) {
      if (Cfg::axes >> d & 1)
        continue;
      int64_t q = rest / x.shape[d], i = rest - q * x.shape[d];
      from += i * x.stride[d];
      to += i * y.stride[d];
      rest = q;
    }
    const T *in = (const T *)x.data + from;
    T result;
    if constexpr (Cfg::op == Reduce::log_sum_exp) {
      using Max = Reducer<Reduce::max, T>;
      using Sum = WideReducer<T>;
      double shift = double(accumulate_block<Cfg, Max>(in, x, n, 0));
      if (!(tn_abs(shift) < __builtin_inf()) || n == 0)
        shift = 0;
      result =
          Sum::finish(accumulate_block<Cfg, Sum>(in, x, n, shift), n, shift);
    } else {
      using R = Reducer<Cfg::op, T>;
      result = R::finish(accumulate_block<Cfg, R>(in, x, n, 0), n, 0);
    }
    if (threadIdx.x == 0)
      ((T *)y.data)[to] = result;
  }
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CUDA_REDUCE_CUH
