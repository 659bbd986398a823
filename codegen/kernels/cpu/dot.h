//===- dot.h - products of 8-bit numbers, four to a lane -----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// `vb`, the bytes of a vector, four to each lane of `vi`, and
///
///   load_bytes(p)             4 * vf::width bytes
///   splat_word(p)             the four bytes at p in every lane
///   code_bytes<At, Bits>(x)   of each byte the Bits bits from bit At up
///   dot<Bits>(acc, w, a)      acc + the sum of a lane's four products, w below
///                             2^Bits without a sign, a with one and not -128
///   store_i8(p, x)            x's lanes, each within a signed byte, to p
///
/// With AVX-512-VNNI `dot` is one instruction. Else codes of 2 and 4 bits
/// multiply into pairs of 16 bits, which 2 * 15 * 127 does not overflow; those
/// of 8 bits are widened first.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CPU_DOT_H
#define TENON_KERNELS_CPU_DOT_H

#include "kernels/cpu/vec.h"

namespace tn {
inline namespace TN_FORM {

#if defined(TN_AVX512)

struct vb {
  __m512i v;
};
TN_FN vb load_bytes(const uint8_t *p) { return {_mm512_loadu_si512(p)}; }
TN_FN vb splat_word(const int8_t *p) {
  int32_t word;
  __builtin_memcpy(&word, p, sizeof(word));
  return {_mm512_set1_epi32(word)};
}
template <int At, int Bits> TN_FN vb code_bytes(vb x) {
  if constexpr (Bits == 8)
    return x;
  else
    return {_mm512_and_si512(_mm512_srli_epi16(x.v, At),
                             _mm512_set1_epi8((1 << Bits) - 1))};
}
template <int Bits> TN_FN vi dot(vi acc, vb w, vb a) {
#if defined(__AVX512VNNI__)
  return vi(_mm512_dpbusd_epi32(acc.v, w.v, a.v));
#else
  if constexpr (Bits == 8) {
    __m512i low = _mm512_set1_epi16(0xff);
    __m512i even =
        _mm512_madd_epi16(_mm512_and_si512(w.v, low),
                          _mm512_srai_epi16(_mm512_slli_epi16(a.v, 8), 8));
    __m512i odd =
        _mm512_madd_epi16(_mm512_srli_epi16(w.v, 8), _mm512_srai_epi16(a.v, 8));
    return vi(_mm512_add_epi32(acc.v, _mm512_add_epi32(even, odd)));
  } else {
    __m512i pairs = _mm512_maddubs_epi16(w.v, a.v);
    return vi(_mm512_add_epi32(acc.v,
                               _mm512_madd_epi16(pairs, _mm512_set1_epi16(1))));
  }
#endif
}
TN_FN void store_i8(int8_t *p, vi x) {
  _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(x.v));
}

#elif defined(TN_AVX2)

struct vb {
  __m256i v;
};
TN_FN vb load_bytes(const uint8_t *p) {
  return {_mm256_loadu_si256((const __m256i *)p)};
}
TN_FN vb splat_word(const int8_t *p) {
  int32_t word;
  __builtin_memcpy(&word, p, sizeof(word));
  return {_mm256_set1_epi32(word)};
}
template <int At, int Bits> TN_FN vb code_bytes(vb x) {
  if constexpr (Bits == 8)
    return x;
  else
    return {_mm256_and_si256(_mm256_srli_epi16(x.v, At),
                             _mm256_set1_epi8((1 << Bits) - 1))};
}
template <int Bits> TN_FN vi dot(vi acc, vb w, vb a) {
  if constexpr (Bits == 8) {
    __m256i low = _mm256_set1_epi16(0xff);
    __m256i even =
        _mm256_madd_epi16(_mm256_and_si256(w.v, low),
                          _mm256_srai_epi16(_mm256_slli_epi16(a.v, 8), 8));
    __m256i odd =
        _mm256_madd_epi16(_mm256_srli_epi16(w.v, 8), _mm256_srai_epi16(a.v, 8));
    return vi(_mm256_add_epi32(acc.v, _mm256_add_epi32(even, odd)));
  } else {
    __m256i pairs = _mm256_maddubs_epi16(w.v, a.v);
    return vi(_mm256_add_epi32(acc.v,
                               _mm256_madd_epi16(pairs, _mm256_set1_epi16(1))));
  }
}
TN_FN void store_i8(int8_t *p, vi x) {
  __m128i h = _mm_packs_epi32(_mm256_castsi256_si128(x.v),
                              _mm256_extracti128_si256(x.v, 1));
  _mm_storel_epi64((__m128i *)p, _mm_packs_epi16(h, h));
}

#else

typedef int16_t vs_native __attribute__((vector_size(16)));
typedef uint16_t vw_native __attribute__((vector_size(16)));
struct vb {
  vw_native v;
};
TN_FN vb load_bytes(const uint8_t *p) {
  vb x;
  __builtin_memcpy(&x.v, p, sizeof(x.v));
  return x;
}
TN_FN vb splat_word(const int8_t *p) {
  int32_t word;
  __builtin_memcpy(&word, p, sizeof(word));
  return {vw_native(vi(word).v)};
}
template <int At, int Bits> TN_FN vb code_bytes(vb x) {
  if constexpr (Bits == 8)
    return x;
  constexpr uint16_t mask = ((1 << Bits) - 1) * 0x101;
  return {(x.v >> At) & mask};
}
/// Adds both halves of each lane, with their signs.
TN_FN vi add_halves(vi acc, vs_native x) {
  vi words = vi(vi_native(x));
  return acc + shift_right<16>(shift_left<16>(words)) + shift_right<16>(words);
}
template <int Bits> TN_FN vi dot(vi acc, vb w, vb a) {
  // Each product fits 16 bits: 255 * 127.
  vs_native even = vs_native(w.v & 0xff) * (vs_native(a.v << 8) >> 8);
  vs_native odd = vs_native(w.v >> 8) * (vs_native(a.v) >> 8);
  return add_halves(add_halves(acc, even), odd);
}
TN_FN void store_i8(int8_t *p, vi x) {
  for (int i = 0; i < vf::width; ++i)
    p[i] = int8_t(x.v[i]);
}

#endif

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CPU_DOT_H
