//===- vec_bytes.h - vectors of f32 that become bytes ---------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
///   vu8                  as many numbers of u8 as a vf has lanes
///   tn_cast<uint8_t>(x)  the lanes of a vf as the scalar cast has them
///   store_u8(p, x), store_u8_n(p, x, n)    all of them, the first n
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CPU_VEC_BYTES_H
#define TENON_KERNELS_CPU_VEC_BYTES_H

#include "kernels/cpu/vec_ops.h"

namespace tn {
inline namespace TN_FORM {

/// The low byte of each lane of `v`.
struct vu8 {
  vi v;
};

TN_FN void store_u8(uint8_t *p, vu8 x) {
#if defined(TN_AVX512)
  _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(x.v.v));
#elif defined(TN_AVX2)
  __m256i low = (x.v & vi(255)).v;
  __m128i h = _mm_packus_epi32(_mm256_castsi256_si128(low),
                               _mm256_extracti128_si256(low, 1));
  _mm_storel_epi64((__m128i *)p, _mm_packus_epi16(h, h));
#else
  for (int i = 0; i < vf::width; ++i)
    p[i] = uint8_t(x.v.v[i]);
#endif
}

TN_FN void store_u8_n(uint8_t *p, vu8 x, int64_t n) {
  uint8_t lanes[vf::width];
  store_u8(lanes, x);
  for (int64_t i = 0; i < n; ++i)
    p[i] = lanes[i];
}

} // namespace TN_FORM
} // namespace tn

inline namespace TN_FORM {

/// Truncates; what is out of the range of i32 or NaN is INT32_MIN.
template <class To>
  requires(tn_is_int<To> && sizeof(To) == 1 && !tn_is_signed<To>)
TN_FN tn::vu8 tn_cast(tn::vf x) {
#if defined(TN_AVX512)
  return {tn::vi(_mm512_cvttps_epi32(x.v))};
#elif defined(TN_AVX2)
  return {tn::vi(_mm256_cvttps_epi32(x.v))};
#else
  tn::vu8 out;
  for (int i = 0; i < tn::vf::width; ++i)
    out.v.v[i] = tn_truncate_i32(x.v[i]);
  return out;
#endif
}

} // namespace TN_FORM

#endif // TENON_KERNELS_CPU_VEC_BYTES_H
