//===- FormatsTest.cpp - conversions against a slow, obvious reference ----===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/emulator/tensor/Formats.h"
#include "test/emulator/tensor/TestMemory.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

using namespace tenon::emu::tensor;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// A format as its definition states it.
struct Definition {
  Element element;
  const char *name;
  unsigned bits;
  unsigned exponentBits;
  int bias;
  uint64_t greatest;
  double greatestValue;
  bool hasInfinity;
  uint64_t nan; ///< 0: none
};

// Greatest values as published (OCP 8-bit and microscaling formats, IEEE 754).
const Definition definitions[] = {
    {Element::F16, "f16", 16, 5, 15, 0x7bff, 65504.0, true, 0x7fff},
    {Element::BF16, "bf16", 16, 8, 127, 0x7f7f, 0x1.fep127, true, 0x7fff},
    {Element::E4M3, "e4m3", 8, 4, 7, 0x7e, 448.0, false, 0x7f},
    {Element::E5M2, "e5m2", 8, 5, 15, 0x7b, 57344.0, true, 0x7f},
    {Element::E2M3, "e2m3", 6, 2, 1, 0x1f, 7.5, false, 0},
    {Element::E3M2, "e3m2", 6, 3, 3, 0x1f, 28.0, false, 0},
    {Element::E2M1, "e2m1", 4, 2, 1, 0x7, 6.0, false, 0},
};

/// The value of a finite magnitude, bit by bit.
double valueOf(const Definition &d, uint64_t magnitude) {
  unsigned mantissaBits = d.bits - 1 - d.exponentBits;
  int exponent = int(magnitude >> mantissaBits);
  double fraction = exponent == 0 ? 0 : 1;
  for (unsigned i = 0; i < mantissaBits; ++i)
    if (magnitude >> i & 1)
      fraction += std::pow(2.0, int(i) - int(mantissaBits));
  return fraction * std::pow(2.0, std::max(exponent, 1) - d.bias);
}

class FormatTest : public testing::TestWithParam<Definition> {};

TEST_P(FormatTest, DecodesEveryValue) {
  const Definition &d = GetParam();
  uint64_t sign = uint64_t(1) << (d.bits - 1);
  for (uint64_t m = 0; m < sign; ++m) {
    double positive = decode(d.element, m),
           negative = decode(d.element, m | sign);
    if (m <= d.greatest) {
      ASSERT_EQ(positive, valueOf(d, m)) << m;
      ASSERT_EQ(negative, -valueOf(d, m)) << m;
      ASSERT_TRUE(std::signbit(negative));
    } else if (d.hasInfinity && m == d.greatest + 1) {
      ASSERT_EQ(positive, infinity);
      ASSERT_EQ(negative, -infinity);
    } else {
      ASSERT_TRUE(std::isnan(positive)) << m;
      ASSERT_TRUE(std::isnan(negative)) << m;
    }
  }
  EXPECT_EQ(decode(d.element, d.greatest), d.greatestValue);
}

/// Every value, every midpoint, and the numbers just beside them, in every
/// rounding and of both signs: where results change.
TEST_P(FormatTest, RoundsAtEveryBoundary) {
  const Definition &d = GetParam();
  uint64_t sign = uint64_t(1) << (d.bits - 1);
  auto check = [&](double v, Rounding positive, Rounding negative,
                   uint64_t expected) {
    ASSERT_EQ(encode(d.element, v, {positive}), expected) << v;
    ASSERT_EQ(encode(d.element, -v, {negative}), expected | sign) << v;
  };
  for (uint64_t m = 0; m < d.greatest; ++m) {
    double low = valueOf(d, m), high = valueOf(d, m + 1);
    double middle = (low + high) / 2;
    uint64_t even = m & 1 ? m + 1 : m;
    using enum Rounding;
    for (Rounding r : {NearestEven, NearestAway, Zero, Down, Up})
      check(low, r, r, m);
    for (double v :
         {std::nextafter(low, high), std::nextafter(middle, low), middle,
          std::nextafter(middle, high), std::nextafter(high, low)}) {
      uint64_t nearest = v < middle ? m : v > middle ? m + 1 : even;
      uint64_t away = v < middle ? m : m + 1;
      check(v, NearestEven, NearestEven, nearest);
      check(v, NearestAway, NearestAway, away);
      check(v, Zero, Zero, m);
      check(v, Down, Up, m);
      check(v, Up, Down, m + 1);
    }
  }
}

TEST_P(FormatTest, OverflowsAsTheManualSays) {
  const Definition &d = GetParam();
  uint64_t sign = uint64_t(1) << (d.bits - 1);
  uint64_t last = d.nan ? (d.hasInfinity ? d.greatest + 1 : d.nan) : d.greatest;
  double step = valueOf(d, d.greatest) - valueOf(d, d.greatest - 1);
  double half = d.greatestValue + step / 2;
  // The greatest value of e4m3 is even, those of the IEEE formats are odd.
  EXPECT_EQ(encode(d.element, std::nextafter(half, 0.0)), d.greatest);
  EXPECT_EQ(encode(d.element, std::nextafter(half, infinity)), last);
  EXPECT_EQ(encode(d.element, 1e300), last);
  EXPECT_EQ(encode(d.element, -1e300), last | sign);
  EXPECT_EQ(encode(d.element, infinity), last);
  EXPECT_EQ(encode(d.element, 1e300, {Rounding::Zero}), d.greatest);
  EXPECT_EQ(encode(d.element, 1e300, {Rounding::Down}), d.greatest);
  EXPECT_EQ(encode(d.element, -1e300, {Rounding::Down}), last | sign);
  EXPECT_EQ(encode(d.element, -1e300, {Rounding::Up}), d.greatest | sign);
  for (double v : {1e300, infinity}) {
    EXPECT_EQ(encode(d.element, v, {Rounding::NearestEven, true}), d.greatest);
    EXPECT_EQ(encode(d.element, -v, {Rounding::NearestEven, true}),
              d.greatest | sign);
  }
  double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(encode(d.element, nan), d.nan ? d.nan : d.greatest);
  EXPECT_EQ(encode(d.element, -nan), d.nan ? d.nan : d.greatest);
}

TEST_P(FormatTest, ReluClampsToZero) {
  const Definition &d = GetParam();
  EncodeOptions relu{Rounding::NearestEven, true, true};
  EXPECT_EQ(encode(d.element, -1.0, relu), 0u);
  EXPECT_EQ(encode(d.element, -0.0, relu), 0u);
  EXPECT_EQ(encode(d.element, -infinity, relu), 0u);
  EXPECT_EQ(encode(d.element, 1.0, relu), encode(d.element, 1.0));
}

INSTANTIATE_TEST_SUITE_P(All, FormatTest, testing::ValuesIn(definitions),
                         [](const auto &info) { return info.param.name; });

TEST(Formats, FastPathsAgreeWithTheSlowOnes) {
  auto check = [](uint32_t bits) {
    float v = std::bit_cast<float>(bits);
    ASSERT_EQ(floatToF16(v), encode(Element::F16, v)) << bits;
    ASSERT_EQ(floatToBF16(v), encode(Element::BF16, v)) << bits;
  };
  for (uint32_t top = 0; top < 65536; ++top)
    for (uint32_t low : {0u, 1u, 0xfffu, 0x1000u, 0x1001u, 0x2fffu, 0x3000u,
                         0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      check(top << 16 | low);
  for (uint32_t h = 0; h < 65536; ++h) {
    double exact = decode(Element::F16, h);
    float fast = f16ToFloat(uint16_t(h));
    ASSERT_TRUE(fast == exact || (fast != fast && exact != exact)) << h;
    ASSERT_EQ(std::signbit(fast), (h & 0x8000) != 0);
  }
}

TEST(Formats, TensorFloat32) {
  EXPECT_EQ(encode(Element::TF32, 1.0), 0x3f800000u);
  // The last bit kept is 2^-10; halfway goes to even, or away.
  EXPECT_EQ(encode(Element::TF32, 1 + 0x1p-11), 0x3f800000u);
  EXPECT_EQ(encode(Element::TF32, 1 + 0x1p-11, {Rounding::NearestAway}),
            0x3f802000u);
  EXPECT_EQ(encode(Element::TF32, 1 + 0x1p-11 + 0x1p-20), 0x3f802000u);
  EXPECT_EQ(encode(Element::TF32, -0x1.fffffep127), 0xff800000u);
  EXPECT_EQ(encode(Element::TF32, std::nan("")), 0x7fffffffu);
  EXPECT_EQ(tf32ToFloat(0x3f803fff), 1 + 0x1p-10f);
  EXPECT_EQ(decode(Element::TF32, 0x3f803fff), 1 + 0x1p-10);
}

TEST(Formats, SinglesAndDoublesKeepTheirBits) {
  Random random(3);
  for (int i = 0; i < 10000; ++i) {
    uint32_t bits = random.next() ^ random.next() << 11;
    float f = std::bit_cast<float>(bits);
    if (f != f)
      continue;
    EXPECT_EQ(encode(Element::F32, f), bits);
    EXPECT_EQ(decode(Element::F32, bits), f);
    double wide = f * 1.000000001;
    EXPECT_EQ(encode(Element::F64, wide), std::bit_cast<uint64_t>(wide));
    if (std::isfinite(wide)) {
      EXPECT_EQ(encode(Element::F32, wide),
                std::bit_cast<uint32_t>(float(wide)));
    }
  }
}

TEST(Formats, ScalesArePowersOfTwo) {
  for (uint32_t e = 0; e < 255; ++e) {
    double v = std::ldexp(1.0, int(e) - 127);
    EXPECT_EQ(decode(Element::UE8M0, e), v);
    EXPECT_EQ(encode(Element::UE8M0, v, {Rounding::Zero}), e);
    EXPECT_EQ(encode(Element::UE8M0, v, {Rounding::Up}), e);
    EXPECT_EQ(encode(Element::UE8M0, v * 1.25, {Rounding::Zero}), e);
    EXPECT_EQ(encode(Element::UE8M0, v * 1.25, {Rounding::Up, true}),
              std::min(e + 1, 0xfeu));
  }
  EXPECT_EQ(encode(Element::UE8M0, 0.0, {Rounding::Up}), 0u);
  EXPECT_EQ(encode(Element::UE8M0, std::nan(""), {Rounding::Up}), 0xffu);
}

TEST(Formats, IntegersExtendTheirSign) {
  EXPECT_EQ(decode(Element::S8, 0xff), -1);
  EXPECT_EQ(decode(Element::S8, 0x80), -128);
  EXPECT_EQ(decode(Element::U8, 0xff), 255);
  EXPECT_EQ(decode(Element::S4, 0xf8), -8);
  EXPECT_EQ(decode(Element::U4, 0xf8), 8);
  EXPECT_EQ(decode(Element::B1, 3), 1);
  EXPECT_EQ(decode(Element::S32, 0x80000000), -2147483648.0);
}

// A bf16 fma whose double sum would end on a tie that the exact sum is above.
TEST(Formats, SumsToOddRoundOnce) {
  double tie = 1 + 0x1p-8, little = 0x1p-100;
  EXPECT_EQ(encode(Element::BF16, tie + little), 0x3f80u);
  EXPECT_EQ(encode(Element::BF16, addToOdd(tie, little)), 0x3f81u);
  EXPECT_EQ(encode(Element::BF16, addToOdd(tie, -little)), 0x3f80u);
  EXPECT_EQ(encode(Element::BF16, addToOdd(-tie, -little)), 0xbf81u);
  EXPECT_EQ(addToOdd(1.5, 2.25), 3.75);
  EXPECT_EQ(addToOdd(infinity, 1), infinity);
  EXPECT_EQ(addToOdd(1, -1), 0);
}

} // namespace
