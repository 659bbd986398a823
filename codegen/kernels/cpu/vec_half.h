//===- vec_half.h - vectors of f32 out of halves --------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// load_single(p)   vf::width elements at p, float, tn_f16 or tn_bf16, as f32
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CPU_VEC_HALF_H
#define TENON_KERNELS_CPU_VEC_HALF_H

#include "kernels/common/half.h"
#include "kernels/cpu/vec.h"

namespace tn {
inline namespace TN_FORM {

TN_FN vf load_single(const float *p) { return load(p); }

#if defined(TN_AVX512)

TN_FN vf load_single(const tn_f16 *p) {
  return vf(_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p)));
}
TN_FN vf load_single(const tn_bf16 *p) {
  __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
  return vf(_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16)));
}

#elif defined(TN_AVX2)

TN_FN vf load_single(const tn_f16 *p) {
  return vf(_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)));
}
TN_FN vf load_single(const tn_bf16 *p) {
  __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
  return vf(_mm256_castsi256_ps(_mm256_slli_epi32(wide, 16)));
}

#else

template <tn_half T> TN_FN vf load_single(const T *p) {
  vf x;
  for (int i = 0; i < vf::width; ++i)
    x.v[i] = tn_to_float(p[i]);
  return x;
}

#endif

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CPU_VEC_HALF_H
