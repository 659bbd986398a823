//===- vec_ops.h - elementwise ops on vectors -----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Overloads of the functions of scalar_ops.h for `tn::vf` (f32) and `tn::vm`
/// (bool), so that one functor serves both. They are not templates: a constant
/// argument may be written as a plain float and is spread over the lanes.
///
/// Errors against the exact value, in units of the last place, measured by
/// test/kernels/vec_ops_test.cpp with AVX2 and AVX-512 (the generic form, which
/// has no fused multiply-add, stays within one more):
///
///   exp 1   log 1   erf 2   tanh 2   sigmoid 3   sin, cos 1 (absolute, 2^-24)
///   log1p in softplus 3   expm1 in elu, selu, celu 3   gelu: see there
///
/// Infinities, NaN, denormals and huge arguments give what the scalar functions
/// give. tan, asin, acos, atan, sinh, cosh, asinh, acosh, atanh, pow and fmod
/// call the scalar function lane by lane.
///
/// Polynomials are minimax fits (Lawson-weighted least squares in double) of
/// the functions named beside them.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CPU_VEC_OPS_H
#define TENON_KERNELS_CPU_VEC_OPS_H

#include "kernels/common/scalar_ops.h"
#include "kernels/cpu/vec.h"

namespace tn {
inline namespace TN_FORM {
namespace math {

/// c[0] x^(n-1) + ... + c[n-1] by Horner's rule.
template <int N> TN_FN vf polynomial(vf x, const float (&c)[N]) {
  vf r = vf(c[0]);
  TN_UNROLL
  for (int i = 1; i < N; ++i)
    r = fma(r, x, vf(c[i]));
  return r;
}

/// x = n ln 2 + r with |r| <= ln 2 / 2; ln 2 in two parts so that n times the
/// first is exact.
struct ExpReduction {
  vf n, r;
};
TN_FN ExpReduction reduce_exp(vf x) {
  vf n = round_even(x * vf(1.44269504f));
  vf r = fnma(n, vf(0.693359375f), x);
  return {n, fnma(n, vf(-2.12194440e-4f), r)};
}

/// e^r - 1 for |r| <= ln 2 / 2.
TN_FN vf expm1_reduced(vf r) {
  vf p = polynomial(r, {0.0013950599823147058f, 0.008368954062461853f,
                        0.04166620597243309f, 0.166665181517601f, 0.5f});
  return fma(p * r, r, r);
}

/// e^x for -104 <= x <= 89, and NaN for NaN.
TN_FN vf exp_in_range(vf x) {
  ExpReduction d = reduce_exp(x);
  return scale2(expm1_reduced(d.r) + vf(1), d.n);
}

/// e^x. The order of the operands lets NaN through.
TN_FN vf exp(vf x) {
  return exp_in_range(max_raw(vf(-104.0f), min_raw(vf(89.0f), x)));
}

/// e^x for x <= 0, which is where a softmax needs it; NaN for NaN.
TN_FN vf exp_nonpositive(vf x) { return exp_in_range(max_raw(vf(-104.0f), x)); }

/// e^x - 1 for x <= 0; NaN for NaN.
TN_FN vf expm1_nonpositive(vf x) {
  ExpReduction d = reduce_exp(max_raw(vf(-40.0f), x));
  vf s = scale2(vf(1), d.n);
  return fma(s, expm1_reduced(d.r), s - vf(1));
}

/// log x = e ln 2 + log m with m in [sqrt(1/2), sqrt(2)).
TN_FN vf log(vf x) {
  vm tiny = x < vf(0x1p-126f);
  vf scaled = select(tiny, x * vf(0x1p23f), x);
  vi i = bits(scaled);
  vi e = shift_right<23>(i - vi(0x3f3504f3));
  vf f = from_bits(i - shift_left<23>(e)) - vf(1);
  vf n = to_float(e) - select(tiny, vf(23), vf(0));
  vf p = polynomial(f, {-0.07859545946121216f, 0.12881621718406677f,
                        -0.13128767907619476f, 0.14181196689605713f,
                        -0.16624553501605988f, 0.2000228613615036f,
                        -0.25000810623168945f, 0.33333316445350647f});
  vf f2 = f * f;
  vf low = fma(n, vf(-2.12194440e-4f), p * (f2 * f));
  vf r = fma(n, vf(0.693359375f), f + fnma(vf(0.5f), f2, low));
  r = select(x < vf(__builtin_inff()), r, x);
  r = select(x == vf(0), vf(-__builtin_inff()), r);
  return select(x < vf(0), vf(__builtin_nanf("")), r);
}

/// log(1 + y) for y >= 0; the rounding of 1 + y is made good.
TN_FN vf log1p_nonnegative(vf y) {
  vf u = vf(1) + y;
  return log(u) +
         select(u < vf(__builtin_inff()), (y - (u - vf(1))) / u, vf(0));
}

/// erf x = x + x P(x^2) within [-1, 1], else 1 - e^(t P(t)) with t = |x|.
TN_FN vf erf(vf x) {
  vf t = min_raw(vf(4), abs(x)), z = x * x;
  vf near = polynomial(z, {7.853857823647559e-05f, -0.0008010192541405559f,
                           0.005188327748328447f, -0.026853810995817184f,
                           0.1128358542919159f, -0.3761262595653534f,
                           0.12837916612625122f});
  vf far = polynomial(t, {0.0002101831341860816f, -0.0031831255182623863f,
                          0.022786110639572144f, -0.10509670525789261f,
                          -0.6358463764190674f, -1.128475546836853f});
  vf tail = copysign(vf(1) - exp_in_range(far * t), x);
  return select(t <= vf(1), fma(near, x, x), tail);
}

/// tanh x = x + x^3 P(x^2) within [-5/8, 5/8], else 1 - 2 / (e^2|x| + 1).
TN_FN vf tanh(vf x) {
  vf t = abs(x), z = x * x;
  vf p = polynomial(z, {-0.005717036779969931f, 0.020650578662753105f,
                        -0.05374349653720856f, 0.13331490755081177f,
                        -0.3333328366279602f});
  vf near = fma(p * z, x, x);
  vf far = vf(1) - vf(2) / (exp(t + t) + vf(1));
  return select(t < vf(0.625f), near, copysign(far, x));
}

/// 1 / (1 + e^-x) from e^-|x|, which cannot overflow.
TN_FN vf sigmoid(vf x) {
  vf e = exp_nonpositive(-abs(x));
  return select(x < vf(0), e, vf(1)) / (vf(1) + e);
}

/// sin(x + quadrant pi/2) for |x| <= 8192, by the nearest multiple of pi / 2.
TN_FN vf sin_quadrant(vf x, int32_t quadrant) {
  vf n = round_even(x * vf(0.636619772f));
  vf r = fnma(n, vf(1.5703125f), x);
  r = fnma(n, vf(4.837512969970703125e-4f), r);
  r = fnma(n, vf(7.54978995489188216e-8f), r);
  vi q = to_int(n) + vi(quadrant);
  vf z = r * r;
  vf s = polynomial(z, {-0.00019516654720064253f, 0.008332173340022564f,
                        -0.16666655242443085f});
  vf c = polynomial(z, {2.4437727915938012e-05f, -0.001388736185617745f,
                        0.04166664555668831f});
  s = fma(s * z, r, r);
  c = fma(c * z, z, fnma(vf(0.5f), z, vf(1)));
  vf value = select(is_zero(q & vi(1)), s, c);
  return from_bits(bits(value) ^ shift_left<30>(q & vi(2)));
}

/// Beyond 8192 (and for infinities and NaN) f(lane) takes over.
template <class F> TN_FN vf sin_or(vf x, int32_t quadrant, F f) {
  vm small = abs(x) <= vf(8192);
  vf r = sin_quadrant(select(small, x, vf(0)), quadrant);
  return all(small) ? r : select(small, r, map_lanes(x, f));
}

} // namespace math
} // namespace TN_FORM
} // namespace tn

inline namespace TN_FORM {

using tn::vf;
using tn::vm;

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

TN_FN vf tn_add(vf a, vf b) { return a + b; }
TN_FN vf tn_sub(vf a, vf b) { return a - b; }
TN_FN vf tn_mul(vf a, vf b) { return a * b; }
TN_FN vf tn_div(vf a, vf b) { return a / b; }
TN_FN vf tn_fmod(vf a, vf b) {
  return tn::map_lanes(a, b, [](float x, float y) { return tn_fmod(x, y); });
}
TN_FN vf tn_mod(vf a, vf b) {
  return tn::map_lanes(a, b, [](float x, float y) { return tn_mod(x, y); });
}
TN_FN vf tn_pow(vf a, vf b) {
  return tn::map_lanes(a, b, [](float x, float y) { return tn_pow(x, y); });
}
/// The instruction gives b where either is NaN, so only a needs a look.
TN_FN vf tn_min(vf a, vf b) { return select(a == a, min_raw(a, b), a); }
TN_FN vf tn_max(vf a, vf b) { return select(a == a, max_raw(a, b), a); }
TN_FN vf tn_clip(vf x, vf lo, vf hi) { return tn_min(tn_max(x, lo), hi); }
TN_FN vf tn_neg(vf x) { return -x; }
TN_FN vf tn_abs(vf x) { return abs(x); }
TN_FN vf tn_sign(vf x) {
  return select(x == vf(0), vf(0), select(x == x, copysign(vf(1), x), x));
}

//===----------------------------------------------------------------------===//
// Roots, exponentials, logarithms
//===----------------------------------------------------------------------===//

TN_FN vf tn_sqrt(vf x) { return sqrt(x); }
TN_FN vf tn_rsqrt(vf x) { return vf(1) / sqrt(x); }
TN_FN vf tn_reciprocal(vf x) { return vf(1) / x; }
TN_FN vf tn_exp(vf x) { return tn::math::exp(x); }
TN_FN vf tn_log(vf x) { return tn::math::log(x); }
TN_FN vf tn_erf(vf x) { return tn::math::erf(x); }

//===----------------------------------------------------------------------===//
// Trigonometric and hyperbolic functions
//===----------------------------------------------------------------------===//

TN_FN vf tn_sin(vf x) {
  return tn::math::sin_or(x, 0, [](float a) { return tn_sin(a); });
}
TN_FN vf tn_cos(vf x) {
  return tn::math::sin_or(x, 1, [](float a) { return tn_cos(a); });
}
TN_FN vf tn_tanh(vf x) { return tn::math::tanh(x); }

#define TN_BY_LANE(OP)                                                         \
  TN_FN vf OP(vf x) {                                                          \
    return tn::map_lanes(x, [](float a) { return OP(a); });                    \
  }
TN_BY_LANE(tn_tan)
TN_BY_LANE(tn_asin)
TN_BY_LANE(tn_acos)
TN_BY_LANE(tn_atan)
TN_BY_LANE(tn_sinh)
TN_BY_LANE(tn_cosh)
TN_BY_LANE(tn_asinh)
TN_BY_LANE(tn_acosh)
TN_BY_LANE(tn_atanh)
#undef TN_BY_LANE

//===----------------------------------------------------------------------===//
// Rounding
//===----------------------------------------------------------------------===//

TN_FN vf tn_floor(vf x) { return floor(x); }
TN_FN vf tn_ceil(vf x) { return ceil(x); }
TN_FN vf tn_round(vf x) { return round_even(x); }

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

TN_FN vf tn_sigmoid(vf x) { return tn::math::sigmoid(x); }
TN_FN vf tn_relu(vf x) { return max_raw(vf(0), x); }
TN_FN vf tn_leaky_relu(vf x, vf alpha) {
  return select(x < vf(0), alpha * x, x);
}
TN_FN vf tn_prelu(vf x, vf slope) { return select(x < vf(0), slope * x, x); }
TN_FN vf tn_elu(vf x, vf alpha) {
  return select(x < vf(0), alpha * tn::math::expm1_nonpositive(x), x);
}
TN_FN vf tn_selu(vf x, vf alpha, vf gamma) {
  return gamma * select(x <= vf(0), alpha * tn::math::expm1_nonpositive(x), x);
}
TN_FN vf tn_celu(vf x, vf alpha) {
  return select(x < vf(0), alpha * tn::math::expm1_nonpositive(x / alpha), x);
}
TN_FN vf tn_thresholded_relu(vf x, vf alpha) {
  return select(alpha < x, x, vf(0));
}
/// Absolute error at most 2^-23 max(1, |x|): left of -3 the sum 1 + erf
/// cancels, as in the formula written out in f32.
TN_FN vf tn_gelu_erf(vf x) {
  vf half = vf(0.5f) * x;
  return fma(half, tn::math::erf(x * vf(0.70710678118654752440f)), half);
}
TN_FN vf tn_gelu_tanh(vf x) {
  vf u = vf(1.59576912160573071176f) * x;
  return x * tn::math::sigmoid(fma(u * vf(0.044715f), x * x, u));
}
TN_FN vf tn_quick_gelu(vf x, vf alpha) {
  return x * tn::math::sigmoid(alpha * x);
}
TN_FN vf tn_hard_sigmoid(vf x, vf alpha, vf beta) {
  return tn_clip(alpha * x + beta, vf(0), vf(1));
}
TN_FN vf tn_hard_swish(vf x) {
  return x * tn_hard_sigmoid(x, vf(1.0f / 6), vf(0.5f));
}
TN_FN vf tn_swish(vf x, vf alpha) { return x * tn::math::sigmoid(alpha * x); }
TN_FN vf tn_softplus(vf x) {
  vf e = tn::math::exp_nonpositive(-abs(x));
  return max_raw(vf(0), x) + tn::math::log1p_nonnegative(e);
}
TN_FN vf tn_mish(vf x) {
  vf e = tn::math::exp(min_raw(vf(20), x)), n = e * (e + vf(2));
  return x * (n / (n + vf(2)));
}
TN_FN vf tn_softsign(vf x) { return x / (vf(1) + abs(x)); }
TN_FN vf tn_shrink(vf x, vf bias, vf lambd) {
  vf inner = select(x == x, vf(0), x);
  return select(x < -lambd, x + bias, select(x > lambd, x - bias, inner));
}

//===----------------------------------------------------------------------===//
// Tests and comparisons
//===----------------------------------------------------------------------===//

TN_FN vm tn_is_nan(vf x) { return ~(x == x); }
TN_FN vm tn_is_inf(vf x, bool positive = true, bool negative = true) {
  vm p = x == vf(__builtin_inff()), n = x == vf(-__builtin_inff());
  return (p & tn::mask_of(positive)) | (n & tn::mask_of(negative));
}
TN_FN vm tn_equal(vf a, vf b) { return a == b; }
TN_FN vm tn_less(vf a, vf b) { return a < b; }
TN_FN vm tn_less_equal(vf a, vf b) { return a <= b; }
TN_FN vm tn_greater(vf a, vf b) { return b < a; }
TN_FN vm tn_greater_equal(vf a, vf b) { return b <= a; }

//===----------------------------------------------------------------------===//
// Logic, selection, casts between f32 and bool
//===----------------------------------------------------------------------===//

TN_FN vm tn_and(vm a, vm b) { return a & b; }
TN_FN vm tn_or(vm a, vm b) { return a | b; }
TN_FN vm tn_xor(vm a, vm b) { return a ^ b; }
TN_FN vm tn_not(vm a) { return ~a; }
TN_FN vm tn_and(vm a, tn_bool b) { return a & tn::mask_of(b); }
TN_FN vm tn_or(vm a, tn_bool b) { return a | tn::mask_of(b); }
TN_FN vm tn_xor(vm a, tn_bool b) { return a ^ tn::mask_of(b); }
TN_FN vm tn_equal(vm a, vm b) { return ~(a ^ b); }

TN_FN vf tn_where(vm c, vf a, vf b) { return select(c, a, b); }
TN_FN vm tn_where(vm c, vm a, vm b) { return (c & a) | (~c & b); }

TN_FN vm tn_to_bool(vf x) { return ~(x == vf(0)); }
TN_FN vm tn_to_bool(vm x) { return x; }

template <class To>
  requires(tn_is_float<To> && sizeof(To) == 4)
TN_FN vf tn_cast(vf x) {
  return x;
}
template <class To>
  requires(tn_is_float<To> && sizeof(To) == 4)
TN_FN vf tn_cast(vm x) {
  return select(x, vf(1), vf(0));
}

} // namespace TN_FORM

#endif // TENON_KERNELS_CPU_VEC_OPS_H
