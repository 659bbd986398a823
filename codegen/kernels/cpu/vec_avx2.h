//===- vec_avx2.h - vectors of 8 f32, AVX2 and FMA ----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The contract is in vec.h, the only file that includes this one.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CPU_VEC_AVX2_H
#define TENON_KERNELS_CPU_VEC_AVX2_H

#include "kernels/common/form.h"

#include <immintrin.h>

namespace tn {
inline namespace TN_FORM {

/// All bits of a lane are set where it is true.
struct vm {
  __m256 m;
  vm() = default;
  explicit TN_FN vm(__m256 m) : m(m) {}
};

struct vf {
  static constexpr int width = 8;
  __m256 v;
  vf() = default;
  explicit TN_FN vf(__m256 v) : v(v) {}
  TN_FN vf(float x) : v(_mm256_set1_ps(x)) {}
};

struct vi {
  __m256i v;
  vi() = default;
  explicit TN_FN vi(__m256i v) : v(v) {}
  TN_FN vi(int32_t x) : v(_mm256_set1_epi32(x)) {}
};

TN_FN vf operator+(vf a, vf b) { return vf(_mm256_add_ps(a.v, b.v)); }
TN_FN vf operator-(vf a, vf b) { return vf(_mm256_sub_ps(a.v, b.v)); }
TN_FN vf operator*(vf a, vf b) { return vf(_mm256_mul_ps(a.v, b.v)); }
TN_FN vf operator/(vf a, vf b) { return vf(_mm256_div_ps(a.v, b.v)); }
TN_FN vf operator-(vf a) {
  return vf(_mm256_xor_ps(a.v, _mm256_set1_ps(-0.0f)));
}

TN_FN vm operator<(vf a, vf b) {
  return vm(_mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ));
}
TN_FN vm operator<=(vf a, vf b) {
  return vm(_mm256_cmp_ps(a.v, b.v, _CMP_LE_OQ));
}
TN_FN vm operator==(vf a, vf b) {
  return vm(_mm256_cmp_ps(a.v, b.v, _CMP_EQ_OQ));
}

TN_FN vm operator&(vm a, vm b) { return vm(_mm256_and_ps(a.m, b.m)); }
TN_FN vm operator|(vm a, vm b) { return vm(_mm256_or_ps(a.m, b.m)); }
TN_FN vm operator^(vm a, vm b) { return vm(_mm256_xor_ps(a.m, b.m)); }
TN_FN vm mask_of(bool x) {
  return vm(_mm256_castsi256_ps(_mm256_set1_epi32(x ? -1 : 0)));
}
TN_FN vm operator~(vm a) { return a ^ mask_of(true); }
TN_FN bool any(vm a) { return _mm256_movemask_ps(a.m) != 0; }
TN_FN bool all(vm a) { return _mm256_movemask_ps(a.m) == 0xff; }
TN_FN __m256i first_lanes_bits(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n > 8 ? 8 : int32_t(n)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
TN_FN vm first_lanes(int64_t n) {
  return vm(_mm256_castsi256_ps(first_lanes_bits(n)));
}

TN_FN vi operator+(vi a, vi b) { return vi(_mm256_add_epi32(a.v, b.v)); }
TN_FN vi operator-(vi a, vi b) { return vi(_mm256_sub_epi32(a.v, b.v)); }
TN_FN vi operator&(vi a, vi b) { return vi(_mm256_and_si256(a.v, b.v)); }
TN_FN vi operator|(vi a, vi b) { return vi(_mm256_or_si256(a.v, b.v)); }
TN_FN vi operator^(vi a, vi b) { return vi(_mm256_xor_si256(a.v, b.v)); }
template <int N> TN_FN vi shift_left(vi a) {
  return vi(_mm256_slli_epi32(a.v, N));
}
template <int N> TN_FN vi shift_right(vi a) {
  return vi(_mm256_srai_epi32(a.v, N));
}
TN_FN vm is_zero(vi a) {
  return vm(
      _mm256_castsi256_ps(_mm256_cmpeq_epi32(a.v, _mm256_setzero_si256())));
}

TN_FN vf fma(vf a, vf b, vf c) { return vf(_mm256_fmadd_ps(a.v, b.v, c.v)); }
TN_FN vf fnma(vf a, vf b, vf c) { return vf(_mm256_fnmadd_ps(a.v, b.v, c.v)); }
TN_FN vf select(vm m, vf a, vf b) {
  return vf(_mm256_blendv_ps(b.v, a.v, m.m));
}
TN_FN vf min_raw(vf a, vf b) { return vf(_mm256_min_ps(a.v, b.v)); }
TN_FN vf max_raw(vf a, vf b) { return vf(_mm256_max_ps(a.v, b.v)); }
TN_FN vf abs(vf a) { return vf(_mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.v)); }
TN_FN vf sqrt(vf a) { return vf(_mm256_sqrt_ps(a.v)); }
TN_FN vf floor(vf a) { return vf(_mm256_floor_ps(a.v)); }
TN_FN vf ceil(vf a) { return vf(_mm256_ceil_ps(a.v)); }
TN_FN vf round_even(vf a) {
  return vf(_mm256_round_ps(a.v, _MM_FROUND_TO_NEAREST_INT | 8));
}
TN_FN vf trunc(vf a) {
  return vf(_mm256_round_ps(a.v, _MM_FROUND_TO_ZERO | 8));
}
TN_FN vf copysign(vf magnitude, vf sign) {
  __m256 s = _mm256_set1_ps(-0.0f);
  return vf(
      _mm256_or_ps(_mm256_andnot_ps(s, magnitude.v), _mm256_and_ps(s, sign.v)));
}

TN_FN vi to_int(vf a) { return vi(_mm256_cvtps_epi32(a.v)); }
TN_FN vf to_float(vi a) { return vf(_mm256_cvtepi32_ps(a.v)); }
TN_FN vi bits(vf a) { return vi(_mm256_castps_si256(a.v)); }
TN_FN vf from_bits(vi a) { return vf(_mm256_castsi256_ps(a.v)); }

/// In two steps, since 2^n alone may lie outside f32's range.
TN_FN vf scale2(vf x, vf n) {
  vi whole = to_int(n), half = shift_right<1>(whole);
  vi rest = whole - half;
  return x * from_bits(shift_left<23>(half + vi(127))) *
         from_bits(shift_left<23>(rest + vi(127)));
}

TN_FN vf load(const float *p) { return vf(_mm256_loadu_ps(p)); }
TN_FN void store(float *p, vf x) { _mm256_storeu_ps(p, x.v); }
TN_FN vf load_n(const float *p, int64_t n) {
  return vf(_mm256_maskload_ps(p, first_lanes_bits(n)));
}
TN_FN void store_n(float *p, vf x, int64_t n) {
  _mm256_maskstore_ps(p, first_lanes_bits(n), x.v);
}

TN_FN vm load_mask(const uint8_t *p) {
  __m256i w = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p));
  return vm(_mm256_castsi256_ps(_mm256_cmpgt_epi32(w, _mm256_setzero_si256())));
}
TN_FN vm load_mask_n(const uint8_t *p, int64_t n) {
  uint8_t b[8] = {};
  for (int64_t i = 0; i < n && i < 8; ++i)
    b[i] = p[i];
  return load_mask(b);
}
TN_FN void store_mask_n(uint8_t *p, vm x, int64_t n) {
  int b = _mm256_movemask_ps(x.m);
  for (int64_t i = 0; i < n && i < 8; ++i)
    p[i] = (b >> i) & 1;
}
TN_FN void store_mask(uint8_t *p, vm x) {
  __m256i w = _mm256_srli_epi32(_mm256_castps_si256(x.m), 31);
  __m128i h = _mm_packs_epi32(_mm256_castsi256_si128(w),
                              _mm256_extracti128_si256(w, 1));
  _mm_storel_epi64((__m128i *)p, _mm_packs_epi16(h, h));
}

TN_FN float reduce_add(vf a) {
  __m128 q =
      _mm_add_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  q = _mm_add_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}
TN_FN float reduce_max(vf a) {
  __m128 q =
      _mm_max_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  q = _mm_max_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_max_ss(q, _mm_movehdup_ps(q)));
}
TN_FN float reduce_min(vf a) {
  __m128 q =
      _mm_min_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  q = _mm_min_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_min_ss(q, _mm_movehdup_ps(q)));
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CPU_VEC_AVX2_H
