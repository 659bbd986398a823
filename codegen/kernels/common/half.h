//===- half.h - elements of 16-bit floating-point types -------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// `tn_f16` (IEEE binary16) and `tn_bf16` (the upper half of a float) as they
/// lie in memory. Nothing is computed in them: a kernel loads one, casts it to
/// f32 (exactly) and casts what comes out back. Casting to them rounds once,
/// to nearest, halves to even: beyond the largest finite value to infinity,
/// below the least normal one to a denormal. NaN stays NaN, with its sign (on a
/// GPU, without).
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_COMMON_HALF_H
#define TENON_KERNELS_COMMON_HALF_H

#include "kernels/common/form.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

inline namespace TN_FORM {

struct tn_f16 {
  static constexpr int mantissa = 10, bias = 15;
  uint16_t bits;
};

struct tn_bf16 {
  static constexpr int mantissa = 7, bias = 127;
  uint16_t bits;
};

template <class T> inline constexpr bool tn_is_half = false;
template <> inline constexpr bool tn_is_half<tn_f16> = true;
template <> inline constexpr bool tn_is_half<tn_bf16> = true;

template <class T>
concept tn_half = tn_is_half<T>;

/// x, exactly.
TN_FN float tn_to_float(tn_f16 x) {
#if defined(__F16C__)
  return _cvtsh_ss(x.bits);
#elif defined(__CUDA_ARCH__)
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(x.bits));
  return f;
#else
  uint32_t sign = uint32_t(x.bits & 0x8000) << 16, rest = x.bits & 0x7fff;
  // Denormals are multiples of 2^-24; infinity and NaN have the top exponent.
  uint32_t bits =
      rest < 0x400 ? __builtin_bit_cast(uint32_t, float(rest) * 0x1p-24f)
                   : (rest << 13) + (rest < 0x7c00 ? 112u << 23 : 224u << 23);
  return __builtin_bit_cast(float, sign | bits);
#endif
}
TN_FN float tn_to_float(tn_bf16 x) {
  return __builtin_bit_cast(float, uint32_t(x.bits) << 16);
}

/// x rounded to nearest, halves to even.
template <tn_half To> TN_FN To tn_round_to(double x) {
  constexpr uint64_t infinity = uint64_t(2 * To::bias + 1) << To::mantissa;
  constexpr uint64_t one = 1;
  uint64_t bits = __builtin_bit_cast(uint64_t, x);
  uint64_t sign = bits >> 63 << 15, magnitude = bits & (~uint64_t(0) >> 1);
  if (magnitude > uint64_t(0x7ff) << 52)
    return {uint16_t(sign | infinity | one << (To::mantissa - 1))};
  int exponent = int(magnitude >> 52) - 1023;
  if (exponent > To::bias)
    return {uint16_t(sign | infinity)};
  bool normal = exponent >= 1 - To::bias;
  int shift = 52 - To::mantissa + (normal ? 0 : 1 - To::bias - exponent);
  if (shift > 53) // less than half of the least denormal
    return {uint16_t(sign)};
  uint64_t significand = (magnitude & ((one << 52) - 1)) | one << 52;
  uint64_t half = one << (shift - 1), rest = significand & (2 * half - 1);
  uint64_t rounded = significand >> shift;
  rounded += rest > half || (rest == half && (rounded & 1));
  // The leading bit, and a carry out of the rounding, raise the exponent.
  if (normal)
    rounded += uint64_t(exponent + To::bias - 1) << To::mantissa;
  return {uint16_t(sign | rounded)};
}

template <tn_half To> TN_FN To tn_round_to(float x) {
#if defined(__F16C__)
  if constexpr (To::mantissa == tn_f16::mantissa)
    return {uint16_t(_cvtss_sh(x, 0))};
#endif
#if defined(__CUDA_ARCH__)
  To result;
  if constexpr (To::mantissa == tn_f16::mantissa) {
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(x));
    return result;
  }
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(x));
  return result;
#endif
#endif
  if constexpr (To::mantissa == tn_bf16::mantissa) {
    uint32_t bits = __builtin_bit_cast(uint32_t, x);
    if (x != x)
      return {uint16_t(bits >> 16 | 0x40)};
    return {uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
  }
  return tn_round_to<To>(double(x));
}

/// A 64-bit integer with more bits than a double holds: the last bit kept says
/// whether any below it was set, so that rounding again is rounding once.
template <tn_half To> TN_FN To tn_round_to(uint64_t magnitude, bool negative) {
  if (magnitude >> 53)
    magnitude = (magnitude >> 11 | ((magnitude & 0x7ff) != 0)) << 11;
  double x = double(magnitude);
  return tn_round_to<To>(negative ? -x : x);
}

} // namespace TN_FORM

#endif // TENON_KERNELS_COMMON_HALF_H
