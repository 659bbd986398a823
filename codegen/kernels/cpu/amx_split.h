//===- amx_split.h - f32 as a sum of bf16 parts ---------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The matrix unit multiplies bf16 only. A number x of f32 is the sum of three
/// of bf16, hi + mid + lo, each the first 8 bits of what the ones before leave:
/// that is exact, for 24 bits are three times 8. Of the nine products of two
/// such sums the six largest are added up; what is left out, mid * lo twice and
/// lo * lo, is some 6e-8 of the product. With two parts, the first rounded to
/// nearest, three of four products are; what is left out is some 4e-6.
///
/// The parts of a number below 2^-110 may be denormal, which the unit takes for
/// zero; a part of a number that is not finite is not finite.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CPU_AMX_SPLIT_H
#define TENON_KERNELS_CPU_AMX_SPLIT_H

#include "kernels/common/half.h"
#include "kernels/cpu/amx_tile.h"

#if defined(TN_AMX_TILES)

namespace tn {
inline namespace TN_FORM {

/// One product of parts.
struct PartProduct {
  int a, b;
};

/// How a product of f32 and B is made of products of parts, part 0 being the
/// largest. Orders are such that neighbours share a part.
template <class B, int Products> struct Split;

template <> struct Split<float, 6> {
  using Stored = float;
  static constexpr int products = 6, a_parts = 3, b_parts = 3;
  static constexpr PartProduct order[] = {{0, 2}, {0, 1}, {0, 0},
                                          {2, 0}, {1, 0}, {1, 1}};
};
template <> struct Split<float, 3> {
  using Stored = float;
  static constexpr int products = 3, a_parts = 2, b_parts = 2;
  static constexpr PartProduct order[] = {{0, 1}, {0, 0}, {1, 0}};
};
/// B is a part itself: as exact as f32, with a rounded to 16 bits, and to 8.
template <> struct Split<tn_bf16, 3> {
  using Stored = tn_bf16;
  static constexpr int products = 3, a_parts = 3, b_parts = 1;
  static constexpr PartProduct order[] = {{2, 0}, {1, 0}, {0, 0}};
};
template <> struct Split<tn_bf16, 2> {
  using Stored = tn_bf16;
  static constexpr int products = 2, a_parts = 2, b_parts = 1;
  static constexpr PartProduct order[] = {{1, 0}, {0, 0}};
};

/// The upper half of each lane: x's in the lower half of the result, y's in the
/// upper.
TN_FN __m512i join_upper(vf x, vf y) {
  return _mm512_mask_blend_epi16(0xaaaaaaaa, _mm512_srli_epi32(bits(x).v, 16),
                                 bits(y).v);
}

TN_FN vf upper(vf x) { return from_bits(bits(x) & vi(int32_t(0xffff0000))); }

/// A number whose upper half is x rounded to bf16, to nearest even; NaN becomes
/// a quiet one.
TN_FN vf round_upper(vf x) {
  __m512i u = bits(x).v, one = _mm512_set1_epi32(1);
  __m512i up = _mm512_add_epi32(_mm512_and_si512(_mm512_srli_epi32(u, 16), one),
                                _mm512_set1_epi32(0x7fff));
  return vf(_mm512_castsi512_ps(_mm512_mask_add_epi32(
      _mm512_or_si512(u, _mm512_set1_epi32(0x400000)), (x == x).m, u, up)));
}

/// `Parts` parts of the numbers x and y, those of lane i side by side, to 64
/// bytes at each of out, out + step, ... Three are all there is of a number;
/// fewer are rounded where `Rounds` says so.
template <int Parts, bool Rounds = (Parts < 3)>
TN_FN void split_lanes(vf x, vf y, uint16_t *out, int64_t step) {
  TN_UNROLL
  for (int part = 0; part < Parts; ++part) {
    vf p = Rounds ? round_upper(x) : x, q = Rounds ? round_upper(y) : y;
    _mm512_store_si512(out + part * step, join_upper(p, q));
    if (part + 1 < Parts) {
      x = x - upper(p);
      y = y - upper(q);
    }
  }
}

/// A row's n floats rounded to bf16, and zeros up to a multiple of 32.
TN_FN void halve_row(const float *in, int64_t n, uint16_t *out) {
  // The upper halves of the lanes of two vectors.
  alignas(64) uint16_t upper_halves[32];
  for (int i = 0; i < 32; ++i)
    upper_halves[i] = uint16_t(2 * i + 1);
  __m512i which = _mm512_load_si512(upper_halves);
  auto halve = [&](vf x, vf y, uint16_t *to) {
    _mm512_storeu_si512(to,
                        _mm512_permutex2var_epi16(bits(round_upper(x)).v, which,
                                                  bits(round_upper(y)).v));
  };
  int64_t j = 0;
  for (; j + 32 <= n; j += 32)
    halve(load(in + j), load(in + j + 16), out + j);
  if (j < n)
    halve(load_n(in + j, min_of(16, n - j)),
          n - j > 16 ? load_n(in + j + 16, n - j - 16) : vf(0), out + j);
}

/// The larger magnitude; a NaN counts for nothing.
TN_FN vf max_magnitude(vf x, vf y) {
  return vf(_mm512_range_ps(x.v, y.v, 0x0b));
}

} // namespace TN_FORM
} // namespace tn

#endif // TN_AMX_TILES
#endif // TENON_KERNELS_CPU_AMX_SPLIT_H
