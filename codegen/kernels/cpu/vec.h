//===- vec.h - vectors of f32 on the CPU ----------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The vector types that CPU kernels are written in. One header a form, chosen
/// by the flags of the translation unit, and the same names in each:
///
///   vf   `vf::width` lanes of f32 (16 with AVX-512, 8 with AVX2, else 4)
///   vi   as many lanes of i32
///   vm   as many truth values
///
///   vf(x), vi(x)                 every lane x; the conversion is implicit
///   + - * / unary-  on vf        + - & | ^ on vi      & | ^ ~ on vm
///   < <= > >= ==    on vf        vm; false where a lane is NaN
///   fma(a, b, c)                 a * b + c            fnma: c - a * b
///   select(m, a, b)              m ? a : b, lane by lane
///   min_raw(a, b), max_raw       a < b ? a : b        so b where a or b is NaN
///   abs, sqrt, floor, ceil, round_even, trunc, copysign(magnitude, sign)
///   to_int(x)                    rounds to nearest even, |x| < 2^31
///   to_float(i), bits(x), from_bits(i)
///   shift_left<N>(i), shift_right<N>(i)               arithmetic
///   scale2(x, n)                 x * 2^n for an integral n, -252 <= n <= 254,
///                                right at both ends of the range of f32
///   load(p), store(p, x)         unaligned
///   load_n(p, n), store_n        the first n lanes, n >= 0; other lanes are 0
///                                and their memory is not touched
///   load_mask(p), store_mask, load_mask_n, store_mask_n   bytes of 0 or 1
///   first_lanes(n)               vm, true in lanes below n
///   any(m), all(m)
///   reduce_add(x), reduce_max(x), reduce_min(x)   max and min without NaN
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CPU_VEC_H
#define TENON_KERNELS_CPU_VEC_H

#include "kernels/common/form.h"

#if defined(TN_AVX512)
#include "kernels/cpu/vec_avx512.h"
#elif defined(TN_AVX2)
#include "kernels/cpu/vec_avx2.h"
#else
#include "kernels/cpu/vec_generic.h"
#endif

namespace tn {
inline namespace TN_FORM {

TN_FN vm operator>(vf a, vf b) { return b < a; }
TN_FN vm operator>=(vf a, vf b) { return b <= a; }
TN_FN vf &operator+=(vf &a, vf b) { return a = a + b; }
TN_FN vf &operator*=(vf &a, vf b) { return a = a * b; }

/// Lanes p[0], p[stride], ... for the first n lanes, 0 beyond.
TN_FN vf load_strided(const float *p, int64_t stride, int64_t n) {
  alignas(64) float lanes[vf::width] = {};
  for (int64_t i = 0; i < n; ++i)
    lanes[i] = p[i * stride];
  return load(lanes);
}

/// The first n lanes to p[0], p[stride], ...
TN_FN void store_strided(float *p, int64_t stride, vf x, int64_t n) {
  alignas(64) float lanes[vf::width];
  store(lanes, x);
  for (int64_t i = 0; i < n; ++i)
    p[i * stride] = lanes[i];
}

/// As `load_strided`, of bytes that are 0 or 1.
TN_FN vm load_mask_strided(const uint8_t *p, int64_t stride, int64_t n) {
  alignas(64) uint8_t lanes[vf::width] = {};
  for (int64_t i = 0; i < n; ++i)
    lanes[i] = p[i * stride];
  return load_mask(lanes);
}

/// As `store_strided`, of bytes that are 0 or 1.
TN_FN void store_mask_strided(uint8_t *p, int64_t stride, vm x, int64_t n) {
  alignas(64) uint8_t lanes[vf::width];
  store_mask(lanes, x);
  for (int64_t i = 0; i < n; ++i)
    p[i * stride] = lanes[i];
}

/// Applies a scalar function to each lane: for functions too rare to deserve a
/// vector form.
template <class F> TN_FN vf map_lanes(vf x, F f) {
  alignas(64) float lanes[vf::width];
  store(lanes, x);
  for (int i = 0; i < vf::width; ++i)
    lanes[i] = f(lanes[i]);
  return load(lanes);
}

/// As `map_lanes`, of two arguments.
template <class F> TN_FN vf map_lanes(vf x, vf y, F f) {
  alignas(64) float lanes[vf::width], others[vf::width];
  store(lanes, x);
  store(others, y);
  for (int i = 0; i < vf::width; ++i)
    lanes[i] = f(lanes[i], others[i]);
  return load(lanes);
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CPU_VEC_H
