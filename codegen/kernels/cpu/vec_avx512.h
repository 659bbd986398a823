//===- vec_avx512.h - vectors of 16 f32, AVX-512 F, BW, DQ, VL ----------===//
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
#ifndef TENON_KERNELS_CPU_VEC_AVX512_H
#define TENON_KERNELS_CPU_VEC_AVX512_H

#include "kernels/common/form.h"

#include <immintrin.h>

namespace tn {
inline namespace TN_FORM {

struct vm {
  __mmask16 m;
  vm() = default;
  explicit TN_FN vm(__mmask16 m) : m(m) {}
};

struct vf {
  static constexpr int width = 16;
  __m512 v;
  vf() = default;
  explicit TN_FN vf(__m512 v) : v(v) {}
  TN_FN vf(float x) : v(_mm512_set1_ps(x)) {}
};

struct vi {
  __m512i v;
  vi() = default;
  explicit TN_FN vi(__m512i v) : v(v) {}
  TN_FN vi(int32_t x) : v(_mm512_set1_epi32(x)) {}
};

TN_FN vf operator+(vf a, vf b) { return vf(_mm512_add_ps(a.v, b.v)); }
TN_FN vf operator-(vf a, vf b) { return vf(_mm512_sub_ps(a.v, b.v)); }
TN_FN vf operator*(vf a, vf b) { return vf(_mm512_mul_ps(a.v, b.v)); }
TN_FN vf operator/(vf a, vf b) { return vf(_mm512_div_ps(a.v, b.v)); }
TN_FN vf operator-(vf a) {
  return vf(_mm512_xor_ps(a.v, _mm512_set1_ps(-0.0f)));
}

TN_FN vm operator<(vf a, vf b) {
  return vm(_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ));
}
TN_FN vm operator<=(vf a, vf b) {
  return vm(_mm512_cmp_ps_mask(a.v, b.v, _CMP_LE_OQ));
}
TN_FN vm operator==(vf a, vf b) {
  return vm(_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ));
}

TN_FN vm operator&(vm a, vm b) { return vm(__mmask16(a.m & b.m)); }
TN_FN vm operator|(vm a, vm b) { return vm(__mmask16(a.m | b.m)); }
TN_FN vm operator^(vm a, vm b) { return vm(__mmask16(a.m ^ b.m)); }
TN_FN vm operator~(vm a) { return vm(__mmask16(~a.m)); }
TN_FN bool any(vm a) { return a.m != 0; }
TN_FN bool all(vm a) { return a.m == 0xffff; }
TN_FN vm mask_of(bool x) { return vm(__mmask16(x ? 0xffff : 0)); }
TN_FN vm first_lanes(int64_t n) {
  return vm(__mmask16(n >= 16 ? 0xffffu : (1u << n) - 1));
}

TN_FN vi operator+(vi a, vi b) { return vi(_mm512_add_epi32(a.v, b.v)); }
TN_FN vi operator-(vi a, vi b) { return vi(_mm512_sub_epi32(a.v, b.v)); }
TN_FN vi operator&(vi a, vi b) { return vi(_mm512_and_si512(a.v, b.v)); }
TN_FN vi operator|(vi a, vi b) { return vi(_mm512_or_si512(a.v, b.v)); }
TN_FN vi operator^(vi a, vi b) { return vi(_mm512_xor_si512(a.v, b.v)); }
template <int N> TN_FN vi shift_left(vi a) {
  return vi(_mm512_slli_epi32(a.v, N));
}
template <int N> TN_FN vi shift_right(vi a) {
  return vi(_mm512_srai_epi32(a.v, N));
}
TN_FN vm is_zero(vi a) { return vm(_mm512_testn_epi32_mask(a.v, a.v)); }

TN_FN vf fma(vf a, vf b, vf c) { return vf(_mm512_fmadd_ps(a.v, b.v, c.v)); }
TN_FN vf fnma(vf a, vf b, vf c) { return vf(_mm512_fnmadd_ps(a.v, b.v, c.v)); }
TN_FN vf select(vm m, vf a, vf b) {
  return vf(_mm512_mask_blend_ps(m.m, b.v, a.v));
}
TN_FN vf min_raw(vf a, vf b) { return vf(_mm512_min_ps(a.v, b.v)); }
TN_FN vf max_raw(vf a, vf b) { return vf(_mm512_max_ps(a.v, b.v)); }
TN_FN vf abs(vf a) { return vf(_mm512_abs_ps(a.v)); }
TN_FN vf sqrt(vf a) { return vf(_mm512_sqrt_ps(a.v)); }
TN_FN vf floor(vf a) {
  return vf(_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEG_INF | 8));
}
TN_FN vf ceil(vf a) {
  return vf(_mm512_roundscale_ps(a.v, _MM_FROUND_TO_POS_INF | 8));
}
TN_FN vf round_even(vf a) {
  return vf(_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | 8));
}
TN_FN vf trunc(vf a) {
  return vf(_mm512_roundscale_ps(a.v, _MM_FROUND_TO_ZERO | 8));
}
TN_FN vf copysign(vf magnitude, vf sign) {
  __m512 s = _mm512_set1_ps(-0.0f);
  return vf(
      _mm512_or_ps(_mm512_andnot_ps(s, magnitude.v), _mm512_and_ps(s, sign.v)));
}

TN_FN vi to_int(vf a) { return vi(_mm512_cvtps_epi32(a.v)); }
TN_FN vf to_float(vi a) { return vf(_mm512_cvtepi32_ps(a.v)); }
TN_FN vi bits(vf a) { return vi(_mm512_castps_si512(a.v)); }
TN_FN vf from_bits(vi a) { return vf(_mm512_castsi512_ps(a.v)); }
TN_FN vf scale2(vf x, vf n) { return vf(_mm512_scalef_ps(x.v, n.v)); }

TN_FN vf load(const float *p) { return vf(_mm512_loadu_ps(p)); }
TN_FN void store(float *p, vf x) { _mm512_storeu_ps(p, x.v); }
TN_FN vf load_n(const float *p, int64_t n) {
  return vf(_mm512_maskz_loadu_ps(first_lanes(n).m, p));
}
TN_FN void store_n(float *p, vf x, int64_t n) {
  _mm512_mask_storeu_ps(p, first_lanes(n).m, x.v);
}

TN_FN vm load_mask_n(const uint8_t *p, int64_t n) {
  __m128i b = _mm_maskz_loadu_epi8(first_lanes(n).m, p);
  return vm(_mm_test_epi8_mask(b, b));
}
TN_FN vm load_mask(const uint8_t *p) {
  __m128i b = _mm_loadu_si128((const __m128i *)p);
  return vm(_mm_test_epi8_mask(b, b));
}
TN_FN void store_mask_n(uint8_t *p, vm x, int64_t n) {
  _mm_mask_storeu_epi8(p, first_lanes(n).m, _mm_maskz_set1_epi8(x.m, 1));
}
TN_FN void store_mask(uint8_t *p, vm x) {
  _mm_storeu_si128((__m128i *)p, _mm_maskz_set1_epi8(x.m, 1));
}

TN_FN float reduce_add(vf a) {
  __m256 h = _mm256_add_ps(_mm512_castps512_ps256(a.v),
                           _mm512_extractf32x8_ps(a.v, 1));
  __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  q = _mm_add_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}
TN_FN float reduce_max(vf a) { return _mm512_reduce_max_ps(a.v); }
TN_FN float reduce_min(vf a) { return _mm512_reduce_min_ps(a.v); }

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CPU_VEC_AVX512_H
