//===- small_types.h - casts from and to types that are only stored -------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
///   entry   tn::small_cast<Cfg>(args)     y = x in y's type
///   Cfg     using From, To       C++ types; uint8_t where `from` or `to` says
///           static constexpr tn::Small from, to   none: the C++ type says it
///           static constexpr bool saturate        floats out of range
///           static constexpr bool to_bool         To is tn_bool
///           static constexpr int rank
///   views   x, y of one shape; those below a byte are contiguous
///
/// 8-bit floats are ONNX's: e4m3fn has no infinity and one NaN, the fnuz forms
/// have no negative zero either (its code is NaN), e5m2 is IEEE's, e8m0 is a
/// power of two. Rounding is half to even. Out of range: with `saturate` the
/// largest finite value, else infinity or NaN, whichever there is; f4e2m1
/// always saturates. Integers of 4 and 2 bits keep the low bits of what a cast
/// to i32 (of floats) or i64 gives. Threads take bytes of y.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_COMMON_SMALL_TYPES_H
#define TENON_KERNELS_COMMON_SMALL_TYPES_H

#include "kernels/common/scalar_ops.h"
#include "kernels/common/strided.h"

namespace tn {
inline namespace TN_FORM {

enum class Small {
  none,
  f8e4m3fn,
  f8e4m3fnuz,
  f8e5m2,
  f8e5m2fnuz,
  f8e8m0,
  f4e2m1,
  i4,
  u4,
  i2,
  u2
};

/// The parts of a small float; e8m0 has a way of its own.
struct SmallFormat {
  int mantissa, exponent, bias;
  bool fnuz, ieee;
  /// The largest finite value's code, and without `saturate` the least
  /// magnitude that is out of range.
  uint32_t largest;
  double too_large;
};

template <Small S> TN_FN constexpr SmallFormat small_format() {
  if constexpr (S == Small::f8e4m3fn) // Half of the way up still rounds down.
    return {3, 4, 7, false, false, 0x7e, 464.00000000000006};
  else if constexpr (S == Small::f8e4m3fnuz)
    return {3, 4, 8, true, false, 0x7f, 248};
  else if constexpr (S == Small::f8e5m2)
    return {2, 5, 15, false, true, 0x7b, 61440};
  else if constexpr (S == Small::f8e5m2fnuz)
    return {2, 5, 16, true, false, 0x7f, 61440};
  else
    return {1, 2, 1, false, false, 0x7, __builtin_inf()};
}

template <Small S>
inline constexpr bool is_small_int =
    S == Small::i4 || S == Small::u4 || S == Small::i2 || S == Small::u2;

template <Small S>
inline constexpr int small_bits = S == Small::none                        ? 0
                                  : S == Small::i2 || S == Small::u2      ? 2
                                  : is_small_int<S> || S == Small::f4e2m1 ? 4
                                                                          : 8;

/// 2^k, for exponents of normal doubles.
TN_FN double power_of_two(int k) {
  return __builtin_bit_cast(double, uint64_t(k + 1023) << 52);
}

/// The exponent of a positive double; denormal ones give -1023.
TN_FN int exponent_of(double x) {
  return int(__builtin_bit_cast(uint64_t, x) >> 52 & 0x7ff) - 1023;
}

/// The value of a code.
template <Small S> TN_FN float small_value(uint32_t code) {
  if constexpr (S == Small::f8e8m0) {
    return code == 255 ? __builtin_nanf("")
                       : float(power_of_two(int(code) - 127));
  } else {
    constexpr SmallFormat f = small_format<S>();
    constexpr uint32_t sign = 1u << (f.mantissa + f.exponent);
    uint32_t rest = code & (sign - 1);
    if (f.fnuz && code == sign)
      return __builtin_nanf("");
    float value;
    if (rest > f.largest) {
      value = f.ieee && rest == f.largest + 1 ? __builtin_inff()
                                              : __builtin_nanf("");
    } else {
      int e = int(rest >> f.mantissa);
      uint32_t m = rest & ((1u << f.mantissa) - 1);
      m |= e != 0 ? 1u << f.mantissa : 0;
      value = float(double(m) *
                    power_of_two(int(max_of(e, 1)) - f.bias - f.mantissa));
    }
    return code & sign ? -value : value;
  }
}

/// The code of a positive power of two next to x; 0 and less give the least.
TN_FN uint32_t e8m0_code(double x, bool saturate) {
  double largest = power_of_two(127);
  if (x != x || (!saturate && (x < 0 ? -x : x) >= 1.5 * largest))
    return 255;
  if (!(x > 0))
    return 0;
  if (x > largest)
    return 254;
  int e = int(max_of(exponent_of(x), -127));
  double fraction = x / power_of_two(e);
  int code = e + 127;
  code += fraction > 1.5 || (fraction == 1.5 && (code & 1));
  return uint32_t(code);
}

/// The code of the value next to x.
template <Small S> TN_FN uint32_t small_code(double x, bool saturate) {
  if constexpr (S == Small::f8e8m0) {
    return e8m0_code(x, saturate);
  } else {
    constexpr SmallFormat f = small_format<S>();
    constexpr uint32_t sign_bit = 1u << (f.mantissa + f.exponent);
    constexpr uint32_t nan = f.fnuz   ? sign_bit
                             : f.ieee ? f.largest + 1 + (1u << (f.mantissa - 1))
                             : S == Small::f4e2m1 ? 0
                                                  : sign_bit - 1;
    if (x != x)
      return nan;
    uint32_t sign = __builtin_bit_cast(uint64_t, x) >> 63 != 0 ? sign_bit : 0;
    double a = x < 0 ? -x : x;
    double largest = small_value<S>(f.largest);
    if (S == Small::f4e2m1 || saturate)
      a = a > largest ? largest : a;
    else if (a >= f.too_large)
      return f.ieee ? sign | (f.largest + 1) : f.fnuz ? nan : sign | nan;
    int e = int(max_of(exponent_of(a), 1 - f.bias));
    // Consecutive codes are consecutive values: a carry lands right by itself.
    uint32_t steps = uint32_t(tn_libm_rint(a * power_of_two(f.mantissa - e)));
    uint32_t code = (uint32_t(e + f.bias - 1) << f.mantissa) + steps;
    code = code > f.largest ? f.largest : code;
    return f.fnuz && code == 0 ? 0 : sign | code;
  }
}

/// Element i of x as a number that is computed with.
template <class Cfg> TN_FN auto load_small(const tn_view &x, int64_t i) {
  using From = typename Cfg::From;
  constexpr Small S = Cfg::from;
  constexpr int bits = small_bits<S>;
  if constexpr (S == Small::none) {
    From value = ((const From *)x.data)[row_offset(x, Cfg::rank, i)];
    if constexpr (tn_half<From>)
      return tn_to_float(value);
    else
      return value;
  } else if constexpr (bits == 8) {
    return small_value<S>(
        ((const uint8_t *)x.data)[row_offset(x, Cfg::rank, i)]);
  } else {
    constexpr int per = 8 / bits;
    uint32_t code = ((const uint8_t *)x.data)[i / per] >> (i % per * bits) &
                    ((1u << bits) - 1);
    if constexpr (!is_small_int<S>)
      return small_value<S>(code);
    else if constexpr (S == Small::i4 || S == Small::i2)
      return int32_t(code << (32 - bits)) >> (32 - bits);
    else
      return int32_t(code);
  }
}

/// The code of a number in a small type.
template <class Cfg, class V> TN_FN uint32_t code_of(V value) {
  if constexpr (!is_small_int<Cfg::to>)
    return small_code<Cfg::to>(double(value), Cfg::saturate);
  else if constexpr (tn_is_float<V>)
    return uint32_t(tn_cast<int32_t>(value));
  else
    return uint32_t(value);
}

template <class Cfg> void small_cast(const tn_args *args) {
  const tn_view &x = args->views[0], &y = args->views[1];
  constexpr int bits = small_bits<Cfg::to>;
  constexpr int per = bits == 0 ? 1 : 8 / bits;
  int64_t n = extent(y, 0, Cfg::rank);
  Range mine = share(args, ceil_div(n, per), 64);
  for (int64_t group = mine.begin; group < mine.end; group += mine.step) {
    if constexpr (per == 1) {
      int64_t to = row_offset(y, Cfg::rank, group);
      auto value = load_small<Cfg>(x, group);
      if constexpr (Cfg::to != Small::none) {
        ((uint8_t *)y.data)[to] = uint8_t(code_of<Cfg>(value));
      } else {
        using To = typename Cfg::To;
        if constexpr (Cfg::to_bool)
          ((To *)y.data)[to] = tn_to_bool(value);
        else if constexpr (tn_half<To>)
          ((To *)y.data)[to] = tn_cast<To>(float(value));
        else
          ((To *)y.data)[to] = tn_cast<To>(value);
      }
    } else {
      uint32_t packed = 0;
      for (int k = 0; k < per && group * per + k < n; ++k)
        packed |= (code_of<Cfg>(load_small<Cfg>(x, group * per + k)) &
                   ((1u << bits) - 1))
                  << (k * bits);
      ((uint8_t *)y.data)[group] = uint8_t(packed);
    }
  }
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_COMMON_SMALL_TYPES_H
