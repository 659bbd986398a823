//===- reduce_extreme.h - the greatest or least of a whole tensor ---------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
///   entry   tn::reduce_extreme<Cfg>(args)
///             y = the greatest or least element of x; NaN if there is one
///   Cfg     static constexpr int rank       of x and y
///           static constexpr bool greatest
///   views   x (f32, any strides), y (f32, one element)
///   params  none
///   scratch a float for each thread, of at most `most_threads`
///
/// Of nothing: the lowest value, or the highest. A zero has no sign. Threads
/// share the elements; the first joins what they found.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CPU_REDUCE_EXTREME_H
#define TENON_KERNELS_CPU_REDUCE_EXTREME_H

#include "kernels/common/strided.h"
#include "kernels/cpu/vec_ops.h"

namespace tn {
inline namespace TN_FORM {

inline constexpr int64_t most_threads = 1024;

template <bool Greatest, class V> TN_FN V extreme(V a, V b) {
  if constexpr (Greatest)
    return tn_max(a, b);
  else
    return tn_min(a, b);
}

/// Of n elements at x, `step` apart, and `start`.
template <bool Greatest>
TN_FN float extreme_of(const float *x, int64_t step, int64_t n, float start) {
  int64_t i = 0;
  if (step == 1 && n >= vf::width) {
    constexpr int parts = 4;
    vf part[parts];
    for (vf &p : part)
      p = vf(start);
    for (; i + parts * vf::width <= n; i += parts * vf::width) {
      TN_UNROLL
      for (int p = 0; p < parts; ++p)
        part[p] = extreme<Greatest>(part[p], load(x + i + p * vf::width));
    }
    for (; i + vf::width <= n; i += vf::width)
      part[0] = extreme<Greatest>(part[0], load(x + i));
    for (int p = 1; p < parts; ++p)
      part[0] = extreme<Greatest>(part[0], part[p]);
    if (any(~(part[0] == part[0])))
      return __builtin_nanf("");
    start = Greatest ? reduce_max(part[0]) : reduce_min(part[0]);
  }
  for (; i < n; ++i)
    start = extreme<Greatest>(start, x[i * step]);
  return start;
}

template <class Cfg> void reduce_extreme(const tn_args *args) {
  const tn_view &x = args->views[0];
  float *found = (float *)args->scratch;
  int which[1] = {0};
  Space<1> s = space_of<1>(args->views, which, x.shape, Cfg::rank);
  int inner = s.rank - 1;
  float best = Cfg::greatest ? tn_lowest<float>() : tn_highest<float>();
  Range mine = share(args, s.count(s.rank), 64);
  for (int64_t i = mine.begin; i < mine.end;) {
    int64_t row = i / s.shape[inner], j = i - row * s.shape[inner];
    int64_t n = min_of(s.shape[inner] - j, mine.end - i), offset[1];
    s.locate(row, inner, offset);
    int64_t step = s.stride[0][inner];
    best = extreme_of<Cfg::greatest>(
        (const float *)x.data + offset[0] + j * step, step, n, best);
    i += n;
  }
  found[args->thread] = best;
  args->barrier(args);
  if (args->thread != 0)
    return;
  for (int64_t t = 1; t < args->threads; ++t)
    best = extreme<Cfg::greatest>(best, found[t]);
  *(float *)args->views[1].data =
      best == best ? best + 0.0f : __builtin_nanf("");
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CPU_REDUCE_EXTREME_H
