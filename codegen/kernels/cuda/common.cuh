//===- common.cuh - what every CUDA unit begins with ----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A CUDA unit is called like a CPU one: a kernel is a function template
///
///   template <class Cfg> TN_FN void kernel(const tn_args *args);
///   template <class Cfg, class Epilogue> TN_FN void kernel(const tn_args
///   *args);
///
/// on the same `tn_args` (runtime/format/abi.h): views[i] with data, shape and
/// stride (in elements; the results last), params, scratch. `barrier`, `thread`
/// and `threads` mean nothing on a device, and `team` is what
/// `tn::launch_counters` gives. A unit's entry point is
///
///   TN_UNIT(3, tn::loop<Cfg3, Functor3>)
///
/// which receives the views by value (`Launch`), so that sizes and pointers
/// come out of the constant bank: index views and their dimensions with numbers
/// known when compiling, in loops that are unrolled (TN_UNROLL).
///
/// Every Cfg has, besides what its kernel wants and written by the lowering:
///
///   static constexpr int num_views, num_params   of the launch
///   static constexpr int view_rank    the greatest rank of the views, at least
///   1 static constexpr int threads      of a block (blocks are
///   one-dimensional)
///
/// The grid is up to three-dimensional and its formulas stand in the plan, with
/// those of dynamic shared memory, at `tn::shared_memory()`. A launch with an
/// empty grid does not take place.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CUDA_COMMON_CUH
#define TENON_KERNELS_CUDA_COMMON_CUH

#include "kernels/cuda/builtins.cuh"

#include "kernels/common/form.h"
#include "kernels/common/scalar_ops.h"
#include "runtime/format/abi.h"

namespace tn {
inline namespace TN_FORM {

/// A view as the runtime packs it: unused dimensions are 0.
template <int Rank> struct PackedView {
  char *data;
  int64_t shape[Rank], stride[Rank];
};

/// What a unit is launched with: one kernel parameter.
template <int Views, int Rank, int Params> struct Launch {
  PackedView<Rank> views[Views];
  char *scratch;
  int64_t params[Params > 0 ? Params : 1];
  tn_fault *fault; ///< of this launch alone; or null
  uint32_t *counters;
};
template <class Cfg>
using launch_of = Launch<Cfg::num_views, Cfg::view_rank, Cfg::num_params>;

/// Views I and on, as kernels want them. A recursion, not a loop, which would
/// be unrolled only after memory has become registers.
template <class Cfg, int I = 0>
TN_FN void unpack_views(tn_view *views, const launch_of<Cfg> &launch) {
  views[I] = {launch.views[I].data, launch.views[I].shape,
              launch.views[I].stride};
  if constexpr (I + 1 < Cfg::num_views)
    unpack_views<Cfg, I + 1>(views, launch);
}

/// A second argument of __launch_bounds__: kernels with a tiling or a split
/// want registers rather than many blocks, and would else be made to spill
/// some.
template <class Cfg> inline constexpr int blocks_wanted = 0;
template <class Cfg>
  requires requires { typename Cfg::Tiling; } || requires { Cfg::split; }
inline constexpr int blocks_wanted<Cfg> = 1;

/// The entry point of unit NUMBER, which has the Cfg of that number; the rest
/// names the kernel.
#define TN_UNIT(NUMBER, ...)                                                   \
  extern "C" __global__ void __launch_bounds__(Cfg##NUMBER::threads,           \
                                               tn::blocks_wanted<Cfg##NUMBER>) \
      tn_unit_##NUMBER(                                                        \
          const __grid_constant__ tn::launch_of<Cfg##NUMBER> launch) {         \
    tn_view views[Cfg##NUMBER::num_views];                                     \
    tn::unpack_views<Cfg##NUMBER>(views, launch);                              \
    tn_args args = {views,   launch.params,   launch.scratch,                  \
                    nullptr, launch.counters, 0,                               \
                    1,       launch.fault};                                    \
    __VA_ARGS__(&args);                                                        \
  }

/// rt::maxLaunchCounters (runtime/format/plan.h) numbers that all launches
/// share, one after another: 0 at entry, and a kernel leaves them so.
TN_FN uint32_t *launch_counters(const tn_args *args) {
  return (uint32_t *)args->team;
}

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

inline constexpr int warp_size = 32;
inline constexpr unsigned all_lanes = 0xffffffffu;

TN_FN int lane_id() { return threadIdx.x % warp_size; }
TN_FN int warp_id() { return threadIdx.x / warp_size; }
/// This thread's number in the whole (one-dimensional) grid, and how many there
/// are.
TN_FN int64_t global_thread() {
  return int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
}
TN_FN int64_t global_threads() { return int64_t(gridDim.x) * blockDim.x; }

/// The block's dynamic shared memory, 1024-byte aligned.
TN_FN char *shared_memory() {
  extern __shared__ __align__(1024) char tn_dynamic_shared[];
  return tn_dynamic_shared;
}

//===----------------------------------------------------------------------===//
// Reductions: the result is in every lane (warp_) or thread (block_).
//===----------------------------------------------------------------------===//

template <class T, class F> TN_FN T warp_reduce(T x, F join) {
  TN_UNROLL
  for (int step = warp_size / 2; step > 0; step /= 2)
    x = join(x, __shfl_xor_sync(all_lanes, x, step));
  return x;
}

/// Of all threads of the block, whose number is a multiple of 32. `slots` is
/// shared memory for 32 values, and free again when this returns.
template <class T, class F> TN_FN T block_reduce(T x, F join, T *slots) {
  x = warp_reduce(x, join);
  int warps = blockDim.x / warp_size;
  if (warps == 1)
    return x;
  if (lane_id() == 0)
    slots[warp_id()] = x;
  __syncthreads();
  x = slots[0];
  for (int w = 1; w < warps; ++w)
    x = join(x, slots[w]);
  __syncthreads();
  return x;
}

struct Add {
  template <class T> TN_FN T operator()(T a, T b) const { return a + b; }
};
/// The greater; a NaN stays only where both are.
struct Greater {
  template <class T> TN_FN T operator()(T a, T b) const {
    return b > a || a != a ? b : a;
  }
};

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CUDA_COMMON_CUH
