//===- scalar_ops.h - one function per elementwise op ---------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The elementwise ops of the graph IR, one function `tn_<mnemonic>` each, on
/// scalars: double, float, the integers of 8 to 64 bits, and bool, which is
/// stored as a byte that is 0 or 1 and has the type `tn_bool` (uint8_t).
/// Generated units call them by name. `cpu/vec_ops.h` overloads every one that
/// has a meaning on f32 and bool for the vector types `tn::vf` and `tn::vm`.
/// f16 and bf16 (half.h) are cast from and to, and chosen between.
///
/// Rules that hold throughout:
///  * Nothing traps. Integer division and remainder by zero give 0, and
///    INT_MIN / -1 wraps to INT_MIN. Integer arithmetic wraps.
///  * NaN goes through min, max, clip and every function; comparisons with NaN
///    are false (not_equal does not exist: it is not(equal)).
///  * Comparisons and is_* return tn_bool; and, or, xor, not take tn_bool.
///  * A cast from float to an integer truncates toward zero. Out of range, and
///    for NaN, it gives what x86 conversions give, which is also what ONNX
///    Runtime gives on x86: to i32 INT32_MIN; to i64 INT64_MIN; to i8, i16, u8
///    and u16 the low bits of the conversion to i32; to u32 the low bits of the
///    conversion to i64; to u64 values of 2^63 and more are handled, negative
///    ones wrap, NaN gives 2^63. A cast between integers wraps. A cast to bool
///    is its own function, `tn_to_bool` (x != 0; NaN is true).
///  * A constant argument (alpha, ...) has the element's type.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_COMMON_SCALAR_OPS_H
#define TENON_KERNELS_COMMON_SCALAR_OPS_H

#include "kernels/common/form.h"
#include "kernels/common/half.h"

inline namespace TN_FORM {

using tn_bool = uint8_t;

//===----------------------------------------------------------------------===//
// Traits of element types
//===----------------------------------------------------------------------===//

template <class T> inline constexpr bool tn_is_float = false;
template <> inline constexpr bool tn_is_float<float> = true;
template <> inline constexpr bool tn_is_float<double> = true;

template <class T> inline constexpr bool tn_is_int = false;
template <> inline constexpr bool tn_is_int<int8_t> = true;
template <> inline constexpr bool tn_is_int<int16_t> = true;
template <> inline constexpr bool tn_is_int<int32_t> = true;
template <> inline constexpr bool tn_is_int<int64_t> = true;
template <> inline constexpr bool tn_is_int<uint8_t> = true;
template <> inline constexpr bool tn_is_int<uint16_t> = true;
template <> inline constexpr bool tn_is_int<uint32_t> = true;
template <> inline constexpr bool tn_is_int<uint64_t> = true;

/// The scalar element types; the vector types are not among them.
template <class T>
concept tn_scalar = tn_is_float<T> || tn_is_int<T>;

template <class T> inline constexpr bool tn_is_signed = T(-1) < T(0);

/// -infinity, or the least integer.
template <tn_scalar T> TN_FN constexpr T tn_lowest() {
  if constexpr (tn_is_float<T>)
    return T(-__builtin_inf());
  else if constexpr (!tn_is_signed<T>)
    return T(0);
  else
    return T(T(1) << (sizeof(T) * 8 - 2)) * T(-2);
}

/// +infinity, or the greatest integer.
template <tn_scalar T> TN_FN constexpr T tn_highest() {
  if constexpr (tn_is_float<T>)
    return T(__builtin_inf());
  else
    return T(~tn_lowest<T>());
}

/// A builtin of <math.h> on float or double.
#define TN_LIBM(NAME)                                                          \
  TN_FN float tn_libm_##NAME(float x) { return __builtin_##NAME##f(x); }       \
  TN_FN double tn_libm_##NAME(double x) { return __builtin_##NAME(x); }
TN_LIBM(exp)
TN_LIBM(expm1)
TN_LIBM(log)
TN_LIBM(log1p)
TN_LIBM(erf)
TN_LIBM(tanh)
TN_LIBM(sin)
TN_LIBM(cos)
TN_LIBM(tan)
TN_LIBM(asin)
TN_LIBM(acos)
TN_LIBM(atan)
TN_LIBM(sinh)
TN_LIBM(cosh)
TN_LIBM(asinh)
TN_LIBM(acosh)
TN_LIBM(atanh)
TN_LIBM(floor)
TN_LIBM(ceil)
TN_LIBM(rint)
TN_LIBM(sqrt)
TN_LIBM(fabs)
#undef TN_LIBM
TN_FN float tn_libm_fmod(float a, float b) { return __builtin_fmodf(a, b); }
TN_FN double tn_libm_fmod(double a, double b) { return __builtin_fmod(a, b); }
TN_FN float tn_libm_pow(float a, float b) { return __builtin_powf(a, b); }
TN_FN double tn_libm_pow(double a, double b) { return __builtin_pow(a, b); }

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

/// a + b; integers wrap.
template <tn_scalar T> TN_FN T tn_add(T a, T b) {
  if constexpr (tn_is_int<T>)
    return T(uint64_t(a) + uint64_t(b));
  else
    return a + b;
}

/// a - b; integers wrap.
template <tn_scalar T> TN_FN T tn_sub(T a, T b) {
  if constexpr (tn_is_int<T>)
    return T(uint64_t(a) - uint64_t(b));
  else
    return a - b;
}

/// a * b; integers wrap.
template <tn_scalar T> TN_FN T tn_mul(T a, T b) {
  if constexpr (tn_is_int<T>)
    return T(uint64_t(a) * uint64_t(b));
  else
    return a * b;
}

/// a / b; integers truncate toward zero, x / 0 is 0, INT_MIN / -1 is INT_MIN.
template <tn_scalar T> TN_FN T tn_div(T a, T b) {
  if constexpr (tn_is_int<T>) {
    if (b == 0)
      return 0;
    if (tn_is_signed<T> && b == T(-1))
      return tn_sub(T(0), a);
    return T(a / b);
  } else {
    return a / b;
  }
}

/// The remainder with the sign of a (C's % and fmod); x rem 0 is 0 for
/// integers.
template <tn_scalar T> TN_FN T tn_fmod(T a, T b) {
  if constexpr (tn_is_int<T>) {
    if (b == 0 || (tn_is_signed<T> && b == T(-1)))
      return 0;
    return T(a % b);
  } else {
    return tn_libm_fmod(a, b);
  }
}

/// The remainder with the sign of b (Python's %); x mod 0 is 0 for integers.
template <tn_scalar T> TN_FN T tn_mod(T a, T b) {
  T r = tn_fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? tn_add(r, b) : r;
}

/// a to the power b. Integers: by squaring, wrapping; a negative exponent gives
/// the truncated reciprocal (0 unless a is 1 or -1; 0 to a negative power is
/// 0). The exponent may have another type: float base with integer exponent and
/// the reverse go through double.
template <tn_scalar T, tn_scalar U> TN_FN T tn_pow(T a, U b) {
  if constexpr (tn_is_int<T> && tn_is_int<U>) {
    if (b < 0)
      return a == 1 ? T(1) : a == T(-1) ? (b % 2 ? T(-1) : T(1)) : T(0);
    T r = 1;
    for (uint64_t n = uint64_t(b); n; n >>= 1, a = tn_mul(a, a))
      if (n & 1)
        r = tn_mul(r, a);
    return r;
  } else if constexpr (sizeof(T) == 4 && tn_is_float<T> && sizeof(U) == 4 &&
                       tn_is_float<U>) {
    return tn_libm_pow(a, b);
  } else {
    return T(tn_libm_pow(double(a), double(b)));
  }
}

/// The lesser; NaN if either is NaN.
template <tn_scalar T> TN_FN T tn_min(T a, T b) {
  if constexpr (tn_is_float<T>)
    return a != a || a < b ? a : b;
  else
    return a < b ? a : b;
}

/// The greater; NaN if either is NaN.
template <tn_scalar T> TN_FN T tn_max(T a, T b) {
  if constexpr (tn_is_float<T>)
    return a != a || a > b ? a : b;
  else
    return a > b ? a : b;
}

/// min(max(x, lo), hi); NaN if x is NaN.
template <class T> TN_FN T tn_clip(T x, T lo, T hi) {
  return tn_min(tn_max(x, lo), hi);
}

/// -x; INT_MIN stays.
template <tn_scalar T> TN_FN T tn_neg(T x) {
  if constexpr (tn_is_int<T>)
    return tn_sub(T(0), x);
  else
    return -x;
}

/// |x|; INT_MIN stays.
template <tn_scalar T> TN_FN T tn_abs(T x) {
  if constexpr (tn_is_int<T>)
    return x < 0 ? tn_neg(x) : x;
  else
    return tn_libm_fabs(x);
}

/// -1, 0 or 1; sign(NaN) is NaN.
template <tn_scalar T> TN_FN T tn_sign(T x) {
  return x > 0 ? T(1) : x < 0 ? T(-1) : x == 0 ? T(0) : x;
}

//===----------------------------------------------------------------------===//
// Roots, exponentials, logarithms
//===----------------------------------------------------------------------===//

template <tn_scalar T> TN_FN T tn_sqrt(T x) { return tn_libm_sqrt(x); }

/// 1 / sqrt(x), correctly rounded twice.
template <tn_scalar T> TN_FN T tn_rsqrt(T x) { return T(1) / tn_libm_sqrt(x); }

template <tn_scalar T> TN_FN T tn_reciprocal(T x) { return T(1) / x; }

template <tn_scalar T> TN_FN T tn_exp(T x) { return tn_libm_exp(x); }

template <tn_scalar T> TN_FN T tn_log(T x) { return tn_libm_log(x); }

template <tn_scalar T> TN_FN T tn_erf(T x) { return tn_libm_erf(x); }

//===----------------------------------------------------------------------===//
// Trigonometric and hyperbolic functions
//===----------------------------------------------------------------------===//

template <tn_scalar T> TN_FN T tn_sin(T x) { return tn_libm_sin(x); }
template <tn_scalar T> TN_FN T tn_cos(T x) { return tn_libm_cos(x); }
template <tn_scalar T> TN_FN T tn_tan(T x) { return tn_libm_tan(x); }
template <tn_scalar T> TN_FN T tn_asin(T x) { return tn_libm_asin(x); }
template <tn_scalar T> TN_FN T tn_acos(T x) { return tn_libm_acos(x); }
template <tn_scalar T> TN_FN T tn_atan(T x) { return tn_libm_atan(x); }
template <tn_scalar T> TN_FN T tn_sinh(T x) { return tn_libm_sinh(x); }
template <tn_scalar T> TN_FN T tn_cosh(T x) { return tn_libm_cosh(x); }
template <tn_scalar T> TN_FN T tn_tanh(T x) { return tn_libm_tanh(x); }
template <tn_scalar T> TN_FN T tn_asinh(T x) { return tn_libm_asinh(x); }
template <tn_scalar T> TN_FN T tn_acosh(T x) { return tn_libm_acosh(x); }
template <tn_scalar T> TN_FN T tn_atanh(T x) { return tn_libm_atanh(x); }

//===----------------------------------------------------------------------===//
// Rounding
//===----------------------------------------------------------------------===//

template <tn_scalar T> TN_FN T tn_floor(T x) {
  if constexpr (tn_is_int<T>)
    return x;
  else
    return tn_libm_floor(x);
}

template <tn_scalar T> TN_FN T tn_ceil(T x) {
  if constexpr (tn_is_int<T>)
    return x;
  else
    return tn_libm_ceil(x);
}

/// To the nearest integer, halves to even.
template <tn_scalar T> TN_FN T tn_round(T x) {
  if constexpr (tn_is_int<T>)
    return x;
  else
    return tn_libm_rint(x);
}

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

/// 1 / (1 + e^-x), without overflow and with full relative accuracy at both
/// ends.
template <tn_scalar T> TN_FN T tn_sigmoid(T x) {
  T e = tn_exp(-tn_abs(x));
  return (x >= 0 ? T(1) : x != x ? x : e) / (T(1) + e);
}

/// max(x, 0); NaN stays.
template <tn_scalar T> TN_FN T tn_relu(T x) { return x < 0 ? T(0) : x; }

template <tn_scalar T> TN_FN T tn_leaky_relu(T x, T alpha) {
  return x < 0 ? tn_mul(alpha, x) : x;
}

/// x where x >= 0, slope * x elsewhere.
template <tn_scalar T> TN_FN T tn_prelu(T x, T slope) {
  return x < 0 ? tn_mul(slope, x) : x;
}

template <tn_scalar T> TN_FN T tn_elu(T x, T alpha) {
  return x < 0 ? alpha * tn_libm_expm1(x) : x;
}

/// gamma * (x > 0 ? x : alpha * (e^x - 1)).
template <tn_scalar T> TN_FN T tn_selu(T x, T alpha, T gamma) {
  return gamma * (x <= 0 ? alpha * tn_libm_expm1(x) : x);
}

/// max(0, x) + min(0, alpha * (e^(x / alpha) - 1)).
template <tn_scalar T> TN_FN T tn_celu(T x, T alpha) {
  return x < 0 ? alpha * tn_libm_expm1(x / alpha) : x;
}

template <tn_scalar T> TN_FN T tn_thresholded_relu(T x, T alpha) {
  return x > alpha ? x : T(0);
}

/// x / 2 * (1 + erf(x / sqrt(2))).
template <tn_scalar T> TN_FN T tn_gelu_erf(T x) {
  return T(0.5) * x * (T(1) + tn_erf(x * T(0.70710678118654752440)));
}

/// x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))), which is
/// x * sigmoid(2 * ...).
template <tn_scalar T> TN_FN T tn_gelu_tanh(T x) {
  T u = T(1.59576912160573071176) * x * (T(1) + T(0.044715) * x * x);
  return x * tn_sigmoid(u);
}

/// x * sigmoid(alpha * x).
template <tn_scalar T> TN_FN T tn_quick_gelu(T x, T alpha) {
  return x * tn_sigmoid(alpha * x);
}

/// max(0, min(1, alpha * x + beta)).
template <tn_scalar T> TN_FN T tn_hard_sigmoid(T x, T alpha, T beta) {
  return tn_clip(alpha * x + beta, T(0), T(1));
}

/// x * max(0, min(1, x / 6 + 1 / 2)).
template <tn_scalar T> TN_FN T tn_hard_swish(T x) {
  return x * tn_hard_sigmoid(x, T(1.0 / 6), T(0.5));
}

/// x * sigmoid(alpha * x).
template <tn_scalar T> TN_FN T tn_swish(T x, T alpha) {
  return x * tn_sigmoid(alpha * x);
}

/// log(1 + e^x), without overflow.
template <tn_scalar T> TN_FN T tn_softplus(T x) {
  return tn_max(x, T(0)) + tn_libm_log1p(tn_exp(-tn_abs(x)));
}

/// x * tanh(softplus(x)) = x * (e^2 + 2 e) / (e^2 + 2 e + 2) with e = e^x.
template <tn_scalar T> TN_FN T tn_mish(T x) {
  T e = tn_exp(tn_min(x, T(20)));
  T n = e * (e + T(2));
  return x * (n / (n + T(2)));
}

template <tn_scalar T> TN_FN T tn_softsign(T x) {
  return x / (T(1) + tn_abs(x));
}

/// x - lambd or x + lambd toward zero (with bias), 0 within [-lambd, lambd].
template <tn_scalar T> TN_FN T tn_shrink(T x, T bias, T lambd) {
  return x < -lambd ? x + bias : x > lambd ? x - bias : x != x ? x : T(0);
}

//===----------------------------------------------------------------------===//
// Tests and comparisons
//===----------------------------------------------------------------------===//

template <tn_scalar T> TN_FN tn_bool tn_is_nan(T x) { return x != x; }

/// Whether x is infinite, of a wanted sign.
template <tn_scalar T>
TN_FN tn_bool tn_is_inf(T x, bool positive = true, bool negative = true) {
  if constexpr (tn_is_float<T>)
    return (positive && x == tn_highest<T>()) ||
           (negative && x == tn_lowest<T>());
  else
    return 0;
}

template <tn_scalar T> TN_FN tn_bool tn_equal(T a, T b) { return a == b; }
template <tn_scalar T> TN_FN tn_bool tn_less(T a, T b) { return a < b; }
template <tn_scalar T> TN_FN tn_bool tn_less_equal(T a, T b) { return a <= b; }
template <tn_scalar T> TN_FN tn_bool tn_greater(T a, T b) { return a > b; }
template <tn_scalar T> TN_FN tn_bool tn_greater_equal(T a, T b) {
  return a >= b;
}

//===----------------------------------------------------------------------===//
// Logic and bits
//===----------------------------------------------------------------------===//

TN_FN tn_bool tn_and(tn_bool a, tn_bool b) { return a & b; }
TN_FN tn_bool tn_or(tn_bool a, tn_bool b) { return a | b; }
TN_FN tn_bool tn_xor(tn_bool a, tn_bool b) { return a ^ b; }
TN_FN tn_bool tn_not(tn_bool a) { return a == 0; }

template <tn_scalar T> TN_FN T tn_bitwise_and(T a, T b) { return T(a & b); }
template <tn_scalar T> TN_FN T tn_bitwise_or(T a, T b) { return T(a | b); }
template <tn_scalar T> TN_FN T tn_bitwise_xor(T a, T b) { return T(a ^ b); }
template <tn_scalar T> TN_FN T tn_bitwise_not(T a) { return T(~a); }

/// a << b; 0 when b is the width or more.
template <tn_scalar T> TN_FN T tn_shift_left(T a, T b) {
  return uint64_t(b) >= sizeof(T) * 8 ? T(0) : T(uint64_t(a) << uint64_t(b));
}

/// a >> b, logical: zeros come in from the left; 0 when b is the width or more.
template <tn_scalar T> TN_FN T tn_shift_right(T a, T b) {
  constexpr int width = sizeof(T) * 8;
  uint64_t bits = uint64_t(a) & (~uint64_t(0) >> (64 - width));
  return uint64_t(b) >= width ? T(0) : T(bits >> uint64_t(b));
}

/// c ? a : b.
template <tn_scalar T> TN_FN T tn_where(tn_bool c, T a, T b) {
  return c ? a : b;
}
template <tn_half T> TN_FN T tn_where(tn_bool c, T a, T b) { return c ? a : b; }

//===----------------------------------------------------------------------===//
// Casts
//===----------------------------------------------------------------------===//

/// x != 0.
template <tn_scalar T> TN_FN tn_bool tn_to_bool(T x) { return x != 0; }

/// Float to i64 as cvttsd2si does it: INT64_MIN when out of range or NaN.
TN_FN int64_t tn_truncate_i64(double x) {
  return x >= -0x1p63 && x < 0x1p63 ? int64_t(x) : INT64_MIN;
}

/// Float to i32 as cvttss2si does it: INT32_MIN when out of range or NaN.
TN_FN int32_t tn_truncate_i32(double x) {
  return x > -2147483649.0 && x < 2147483648.0 ? int32_t(x) : INT32_MIN;
}

/// x as a To; see the file comment for what happens out of range.
template <tn_scalar To, tn_scalar From> TN_FN To tn_cast(From x) {
  if constexpr (tn_is_float<From> && tn_is_int<To>) {
    if constexpr (sizeof(To) < 4)
      return To(tn_truncate_i32(x));
    else if constexpr (sizeof(To) == 4)
      return tn_is_signed<To> ? To(tn_truncate_i32(x)) : To(tn_truncate_i64(x));
    else if constexpr (tn_is_signed<To>)
      return To(tn_truncate_i64(x));
    else
      return x >= From(0x1p63)
                 ? To(tn_truncate_i64(double(x) - 0x1p63)) ^ (To(1) << 63)
                 : To(tn_truncate_i64(x));
  } else {
    return To(x);
  }
}

template <tn_half From> TN_FN tn_bool tn_to_bool(From x) {
  return tn_to_float(x) != 0;
}
template <tn_scalar To, tn_half From> TN_FN To tn_cast(From x) {
  return tn_cast<To>(tn_to_float(x));
}
template <tn_half To, tn_half From> TN_FN To tn_cast(From x) {
  return tn_round_to<To>(tn_to_float(x));
}
template <tn_half To, tn_scalar From> TN_FN To tn_cast(From x) {
  if constexpr (tn_is_float<From>)
    return tn_round_to<To>(x);
  else
    return tn_round_to<To>(x < 0 ? 0 - uint64_t(x) : uint64_t(x), x < 0);
}

} // namespace TN_FORM

#endif // TENON_KERNELS_COMMON_SCALAR_OPS_H
