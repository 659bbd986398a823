//===- elementwise_test.cpp - scalar_ops.h and vec_ops.h ------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/cpu/vec_ops.h"
#include "support.h"

#include <algorithm>

using namespace test;

namespace {

/// Arguments all over the range of f32: a coarse sweep of bit patterns, a finer
/// one of [-100, 100], and the corners.
const std::vector<float> &arguments() {
  static std::vector<float> all = [] {
    std::vector<float> x = {0.0f,    -0.0f,   INFINITY, -INFINITY,
                            NAN,     1e-45f,  -1e-45f,  1.17549435e-38f,
                            88.7f,   88.8f,   -87.3f,   -103.9f,
                            -104.1f, 3.4e38f, -3.4e38f, 8192.5f,
                            0.625f,  1.0f,    -1.0f,    9.1f};
    for (uint64_t b = 0; b < (uint64_t(1) << 32); b += 65521) {
      uint32_t bits = uint32_t(b);
      float f;
      memcpy(&f, &bits, 4);
      x.push_back(f);
    }
    for (int i = -100000; i <= 100000; i += 3)
      x.push_back(float(i) * 1e-3f);
    while (x.size() % tn::vf::width)
      x.push_back(1.0f);
    return x;
  }();
  return all;
}

/// The distance of two floats in representable steps; 0 for two NaNs.
double ulps(float got, double want) {
  float rounded = float(want);
  if (std::isnan(got) || std::isnan(want))
    return std::isnan(got) && std::isnan(want) ? 0 : 1e9;
  if (std::isinf(got) || std::isinf(rounded))
    return got == rounded ? 0 : 1e9;
  // One unit in the last place of the exact value.
  int e;
  std::frexp(std::max(std::fabs(want), 1.17549435e-38), &e);
  return std::fabs(double(got) - want) / std::ldexp(1.0, e - 24);
}

template <class V, class R>
void sweep(const char *what, double limit, V vector, R reference,
           double absolute = 0) {
#if defined(TN_GENERIC)
  limit += 1;
#endif
  double worst = 0;
  float at = 0;
  const std::vector<float> &x = arguments();
  for (size_t i = 0; i < x.size(); i += tn::vf::width) {
    float got[tn::vf::width];
    store(got, vector(tn::load(x.data() + i)));
    for (int l = 0; l < tn::vf::width; ++l) {
      double want = reference(double(x[i + l]));
      if (std::fabs(double(got[l]) - want) <= absolute)
        continue;
      double u = ulps(got[l], want);
      if (u > worst) {
        worst = u;
        at = x[i + l];
      }
    }
  }
  testing::Test::RecordProperty(what, std::to_string(worst));
  if (getenv("TN_SHOW_ULPS"))
    printf("%-12s %.2f ulp at %g\n", what, worst, at);
  EXPECT_LE(worst, limit) << what << " at " << at;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

TEST(VecOps, Transcendentals) {
  using V = tn::vf;
  sweep(
      "exp", 1, [](V x) { return tn_exp(x); },
      [](double x) { return std::exp(x); }, 3e-45);
  sweep(
      "log", 1, [](V x) { return tn_log(x); },
      [](double x) { return std::log(x); });
  sweep(
      "erf", 2, [](V x) { return tn_erf(x); },
      [](double x) { return std::erf(x); });
  sweep(
      "tanh", 2, [](V x) { return tn_tanh(x); },
      [](double x) { return std::tanh(x); });
  sweep(
      "sigmoid", 3, [](V x) { return tn_sigmoid(x); }, sigmoid, 1e-38);
  sweep(
      "softplus", 3, [](V x) { return tn_softplus(x); },
      [](double x) { return x > 50 ? x : std::log1p(std::exp(x)); });
  sweep(
      "elu", 3, [](V x) { return tn_elu(x, 1.0f); },
      [](double x) { return x < 0 ? std::expm1(x) : x; });
  sweep(
      "sin", 1, [](V x) { return tn_sin(x); },
      [](double x) { return std::sin(x); }, 0x1p-23);
  sweep(
      "cos", 1, [](V x) { return tn_cos(x); },
      [](double x) { return std::cos(x); }, 0x1p-23);
  sweep(
      "sqrt", 0.51, [](V x) { return tn_sqrt(x); },
      [](double x) { return std::sqrt(x); });
  sweep(
      "rsqrt", 1.6, [](V x) { return tn_rsqrt(x); },
      [](double x) { return 1 / std::sqrt(x); });
}

TEST(VecOps, Gelu) {
  const std::vector<float> &x = arguments();
  for (size_t i = 0; i < x.size(); i += tn::vf::width) {
    float erf[tn::vf::width], tanh[tn::vf::width], mish[tn::vf::width];
    tn::vf v = tn::load(x.data() + i);
    store(erf, tn_gelu_erf(v));
    store(tanh, tn_gelu_tanh(v));
    store(mish, tn_mish(v));
    for (int l = 0; l < tn::vf::width; ++l) {
      double a = x[i + l];
      if (std::isinf(a) || std::fabs(a) > 1e12)
        continue;
      double slack = 1.5e-7 * std::max(1.0, std::fabs(a));
      double u = std::sqrt(2 / M_PI) * (a + 0.044715 * a * a * a);
      ASSERT_TRUE(
          isClose(erf[l], a / 2 * (1 + std::erf(a / std::sqrt(2))), 0, slack))
          << a;
      ASSERT_TRUE(isClose(tanh[l], a / 2 * (1 + std::tanh(u)), 1e-6, slack))
          << a << " " << tanh[l];
      double e = a > 50 ? a : std::log1p(std::exp(a));
      ASSERT_TRUE(isClose(mish[l], a * std::tanh(e), 2e-6, 1e-37)) << a;
    }
  }
}

/// The vector form gives what the scalar one gives, corners included.
#define EXPECT_SAME(CALL, TOLERANCE)                                           \
  do {                                                                         \
    for (size_t i = 0; i < all.size(); i += tn::vf::width) {                   \
      float got[tn::vf::width];                                                \
      {                                                                        \
        tn::vf a = tn::load(all.data() + i), b = tn::load(other.data() + i);   \
        (void)b;                                                               \
        store(got, CALL);                                                      \
      }                                                                        \
      for (int l = 0; l < tn::vf::width; ++l) {                                \
        float a = all[i + l], b = other[i + l];                                \
        (void)b;                                                               \
        ASSERT_TRUE(isClose(got[l], CALL, TOLERANCE, 1e-37))                   \
            << #CALL << " at " << a << ", " << b << ": " << got[l];            \
      }                                                                        \
    }                                                                          \
  } while (false)

TEST(VecOps, AgreeWithScalars) {
  std::vector<float> all, other;
  std::vector<float> corners = {
      0.0f,     -0.0f,     1.0f, -1.0f,  0.5f,       2.5f,  -2.5f, 1.5f,
      INFINITY, -INFINITY, NAN,  1e-40f, 16777217.f, -3.7f, 3e38f, 7.0f};
  for (float a : corners)
    for (float b : corners) {
      all.push_back(a);
      other.push_back(b);
    }
  EXPECT_SAME(tn_add(a, b), 0);
  EXPECT_SAME(tn_sub(a, b), 0);
  EXPECT_SAME(tn_mul(a, b), 0);
  EXPECT_SAME(tn_div(a, b), 0);
  EXPECT_SAME(tn_fmod(a, b), 0);
  EXPECT_SAME(tn_mod(a, b), 0);
  EXPECT_SAME(tn_pow(a, b), 0);
  EXPECT_SAME(tn_min(a, b), 0);
  EXPECT_SAME(tn_max(a, b), 0);
  EXPECT_SAME(tn_clip(a, -1.0f, 2.0f), 0);
  EXPECT_SAME(tn_neg(a), 0);
  EXPECT_SAME(tn_abs(a), 0);
  EXPECT_SAME(tn_sign(a), 0);
  EXPECT_SAME(tn_floor(a), 0);
  EXPECT_SAME(tn_ceil(a), 0);
  EXPECT_SAME(tn_round(a), 0);
  EXPECT_SAME(tn_reciprocal(a), 0);
  EXPECT_SAME(tn_relu(a), 0);
  EXPECT_SAME(tn_leaky_relu(a, 0.1f), 0);
  EXPECT_SAME(tn_prelu(a, b), 0);
  EXPECT_SAME(tn_elu(a, 1.5f), 1e-6);
  EXPECT_SAME(tn_selu(a, 1.67f, 1.05f), 1e-6);
  EXPECT_SAME(tn_celu(a, 2.0f), 1e-6);
  EXPECT_SAME(tn_thresholded_relu(a, 1.0f), 0);
  EXPECT_SAME(tn_quick_gelu(a, 1.702f), 1e-6);
  EXPECT_SAME(tn_hard_sigmoid(a, 0.2f, 0.5f), 1e-6);
  EXPECT_SAME(tn_hard_swish(a), 1e-6);
  EXPECT_SAME(tn_swish(a, 1.0f), 1e-6);
  EXPECT_SAME(tn_softsign(a), 1e-6);
  EXPECT_SAME(tn_shrink(a, 0.5f, 1.0f), 0);
  EXPECT_SAME(tn_sinh(a), 0);
  EXPECT_SAME(tn_atan(a), 0);

  EXPECT_SAME(tn_gelu_tanh(a), 1e-6);
  EXPECT_SAME(tn_mish(a), 1e-6);
  EXPECT_SAME(tn_softplus(a), 1e-6);
  EXPECT_SAME(tn_cast<float>(tn_less(a, b)), 0);
  EXPECT_SAME(tn_cast<float>(tn_less_equal(a, b)), 0);
  EXPECT_SAME(tn_cast<float>(tn_greater(a, b)), 0);
  EXPECT_SAME(tn_cast<float>(tn_greater_equal(a, b)), 0);
  EXPECT_SAME(tn_cast<float>(tn_equal(a, b)), 0);
  EXPECT_SAME(tn_cast<float>(tn_is_nan(a)), 0);
  EXPECT_SAME(tn_cast<float>(tn_is_inf(a)), 0);
  EXPECT_SAME(tn_cast<float>(tn_is_inf(a, true, false)), 0);
  EXPECT_SAME(tn_cast<float>(tn_to_bool(a)), 0);
  EXPECT_SAME(tn_where(tn_xor(tn_less(a, b), tn_not(tn_is_nan(b))), a, b), 0);
}

TEST(Vec, PartialAndStridedAccess) {
  constexpr int w = tn::vf::width;
  for (int n = 0; n <= w; ++n) {
    Tensor<float> x = randomTensor({n}), y({n}, 5.0f);
    Tensor<uint8_t> m = randomIntegers<uint8_t>({n}, 0, 1), k({n}, 9);
    float all[w];
    store(all, tn::load_n(x.data.data(), n));
    for (int i = 0; i < w; ++i)
      EXPECT_EQ(all[i], i < n ? x.data[i] : 0);
    tn::store_n(y.data.data(), tn::load_n(x.data.data(), n), n);
    EXPECT_EQ(y.data, x.data);
    tn::store_mask_n(k.data.data(), tn::load_mask_n(m.data.data(), n), n);
    EXPECT_EQ(k.data, m.data);
  }
}

TEST(Vec, Reductions) {
  constexpr int w = tn::vf::width;
  Tensor<float> x = randomTensor({w});
  tn::vf v = tn::load(x.data.data());
  double sum = 0;
  for (float f : x.data)
    sum += f;
  EXPECT_NEAR(reduce_add(v), sum, 1e-6);
  EXPECT_EQ(reduce_max(v), *std::max_element(x.data.begin(), x.data.end()));
  EXPECT_EQ(reduce_min(v), *std::min_element(x.data.begin(), x.data.end()));
}

TEST(ScalarOps, IntegerArithmeticDoesNotTrap) {
  EXPECT_EQ(tn_div<int32_t>(7, 0), 0);
  EXPECT_EQ(tn_div<int32_t>(INT32_MIN, -1), INT32_MIN);
  EXPECT_EQ(tn_div<int64_t>(INT64_MIN, -1), INT64_MIN);
  EXPECT_EQ(tn_div<int32_t>(-7, 2), -3);
  EXPECT_EQ(tn_div<uint8_t>(200, 255), 0);
  EXPECT_EQ(tn_mod<int32_t>(-7, 3), 2);
  EXPECT_EQ(tn_mod<int32_t>(7, -3), -2);
  EXPECT_EQ(tn_mod<int32_t>(7, 0), 0);
  EXPECT_EQ(tn_fmod<int32_t>(-7, 3), -1);
  EXPECT_EQ(tn_fmod<int32_t>(INT32_MIN, -1), 0);
  EXPECT_EQ(tn_add<int32_t>(INT32_MAX, 1), INT32_MIN);
  EXPECT_EQ(tn_mul<int16_t>(300, 300), int16_t(90000));
  EXPECT_EQ(tn_mul<uint16_t>(65535, 65535), 1);
  EXPECT_EQ(tn_neg<int32_t>(INT32_MIN), INT32_MIN);
  EXPECT_EQ(tn_abs<int32_t>(INT32_MIN), INT32_MIN);
  EXPECT_EQ((tn_pow<int64_t, int64_t>(3, 4)), 81);
  EXPECT_EQ((tn_pow<int32_t, int32_t>(-1, -3)), -1);
  EXPECT_EQ((tn_pow<int32_t, int32_t>(0, -3)), 0);
  EXPECT_EQ(tn_shift_left<uint32_t>(1, 32), 0u);
  EXPECT_EQ(tn_shift_right<int32_t>(-8, 40), 0);
  EXPECT_EQ(tn_shift_right<int32_t>(-8, 1), 0x7ffffffc);
  EXPECT_EQ(tn_shift_right<uint8_t>(200, 3), 25);
  EXPECT_EQ(tn_lowest<int8_t>(), -128);
  EXPECT_EQ(tn_highest<int64_t>(), INT64_MAX);
  EXPECT_EQ(tn_lowest<int64_t>(), INT64_MIN);
  EXPECT_EQ(tn_highest<uint16_t>(), 65535);
}

TEST(ScalarOps, CastsSaturateAsOnX86) {
  EXPECT_EQ((tn_cast<int32_t>(1e10f)), INT32_MIN);
  EXPECT_EQ((tn_cast<int32_t>(NAN)), INT32_MIN);
  EXPECT_EQ((tn_cast<int32_t>(-1.9f)), -1);
  EXPECT_EQ((tn_cast<int64_t>(-INFINITY)), INT64_MIN);
  EXPECT_EQ((tn_cast<uint8_t>(300.7f)), 44);
  EXPECT_EQ((tn_cast<uint8_t>(-1.0f)), 255);
  EXPECT_EQ((tn_cast<int8_t>(200.0)), -56);
  EXPECT_EQ((tn_cast<uint32_t>(4e9f)), 4000000000u);
  EXPECT_EQ((tn_cast<uint64_t>(1.5e19)), 15000000000000000000ull);
  EXPECT_EQ((tn_cast<int8_t>(int64_t(257))), 1);
  EXPECT_EQ((tn_cast<float>(int64_t(1) << 40)), 0x1p40f);
  EXPECT_EQ(tn_to_bool(NAN), 1);
  EXPECT_EQ(tn_to_bool(-0.0f), 0);
  EXPECT_EQ(tn_to_bool(0.5), 1);
}

TEST(ScalarOps, HalfToEvenAndDoubles) {
  EXPECT_EQ(tn_round(2.5), 2);
  EXPECT_EQ(tn_round(-1.5f), -2);
  EXPECT_EQ(tn_round(int32_t(7)), 7);
  EXPECT_NEAR(tn_gelu_erf(1.0), 0.5 * (1 + std::erf(std::sqrt(0.5))), 1e-15);
  EXPECT_NEAR(tn_sigmoid(-700.0), std::exp(-700.0), 1e-310);
  EXPECT_TRUE(std::isnan(tn_min(NAN, 1.0f)) && std::isnan(tn_max(1.0f, NAN)));
}

} // namespace
