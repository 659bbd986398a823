//===- ConstantTest.cpp - tests of constants and packed elements ---------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/Constant.h"
#include "ir/ElementConversion.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace tenon::ir;

namespace {

constexpr ElementType allTypes[] = {
#define TN_TYPE(Name, mnemonic, bits, category) ElementType::Name,
#include "ir/Types.def"
};

double roundTrip(ElementType type, double value) {
  uint8_t bytes[8] = {};
  storeElement(type, bytes, 0, value);
  return loadElement(type, bytes, 0);
}

unsigned bits(ElementType type, double value) {
  uint8_t bytes[8] = {};
  storeElement(type, bytes, 0, value);
  return bytes[0] | bytes[1] << 8;
}

TEST(Elements, HalfRoundsToNearestEven) {
  EXPECT_EQ(bits(ElementType::F16, 1.0), 0x3c00u);
  EXPECT_EQ(bits(ElementType::F16, -2.5), 0xc100u);
  EXPECT_EQ(bits(ElementType::F16, 65504), 0x7bffu);
  EXPECT_EQ(bits(ElementType::F16, 65519), 0x7bffu);
  EXPECT_EQ(bits(ElementType::F16, 65520), 0x7c00u);
  EXPECT_EQ(bits(ElementType::F16, 0x1p-24), 0x0001u);
  EXPECT_EQ(bits(ElementType::F16, 0x1p-25), 0x0000u);
  EXPECT_EQ(bits(ElementType::F16, 0x1.8p-25), 0x0001u);
  EXPECT_EQ(bits(ElementType::F16, 1 + 0x1p-11), 0x3c00u);
  EXPECT_EQ(bits(ElementType::F16, 1 + 3 * 0x1p-11), 0x3c02u);
  // Rounded once: through f32 it would first become the halfway point.
  EXPECT_EQ(bits(ElementType::F16, 1 + 0x1p-11 + 0x1p-40), 0x3c01u);
  EXPECT_EQ(bits(ElementType::F16, -0.0), 0x8000u);
  EXPECT_TRUE(std::isnan(roundTrip(ElementType::F16, NAN)));
}

TEST(Elements, BrainFloat) {
  EXPECT_EQ(bits(ElementType::BF16, 1.0), 0x3f80u);
  EXPECT_EQ(bits(ElementType::BF16, 1 + 0x1p-8), 0x3f80u);
  EXPECT_EQ(bits(ElementType::BF16, 1 + 0x1.8p-8), 0x3f81u);
  EXPECT_EQ(bits(ElementType::BF16, 3.4e38), 0x7f80u);
  EXPECT_EQ(bits(ElementType::BF16, 0x1p-133), 0x0001u);
}

TEST(Elements, Float8) {
  EXPECT_EQ(maxFinite(ElementType::F8E4M3FN), 448);
  EXPECT_EQ(maxFinite(ElementType::F8E4M3FNUZ), 240);
  EXPECT_EQ(maxFinite(ElementType::F8E5M2), 57344);
  EXPECT_EQ(maxFinite(ElementType::F8E5M2FNUZ), 57344);
  EXPECT_EQ(maxFinite(ElementType::F4E2M1), 6);
  EXPECT_EQ(maxFinite(ElementType::F8E8M0), 0x1p127);
  EXPECT_TRUE(std::isnan(roundTrip(ElementType::F8E4M3FN, 500)));
  EXPECT_TRUE(std::isinf(roundTrip(ElementType::F8E5M2, 1e6)));
  EXPECT_TRUE(std::isnan(roundTrip(ElementType::F8E5M2FNUZ, 1e6)));
  EXPECT_EQ(roundTrip(ElementType::F4E2M1, 100), 6);
  EXPECT_EQ(roundTrip(ElementType::F4E2M1, 0.5), 0.5);
  EXPECT_EQ(bits(ElementType::F8E4M3FNUZ, -0.0), 0u);
  EXPECT_EQ(bits(ElementType::F8E4M3FN, 1.0), 0x38u);
  EXPECT_EQ(bits(ElementType::F8E5M2, 1.0), 0x3cu);
}

/// Every code of every small type survives reading and writing.
TEST(Elements, EveryCodeRoundTrips) {
  for (ElementType type : allTypes) {
    unsigned width = bitWidth(type);
    if (width > 16 || category(type) == TypeCategory::Bool)
      continue;
    for (unsigned code = 0; code < (1u << width); ++code) {
      uint8_t in[2] = {uint8_t(code), uint8_t(code >> 8)}, out[2] = {};
      double value = loadElement(type, in, 0);
      storeElement(type, out, 0, value);
      if (std::isnan(value))
        EXPECT_TRUE(std::isnan(loadElement(type, out, 0)));
      else
        EXPECT_EQ(in[0] | in[1] << 8, out[0] | out[1] << 8)
            << mnemonic(type).str() << ' ' << code;
    }
  }
}

/// Between two neighbours, the nearer is chosen.
TEST(Elements, RoundingIsMonotonous) {
  for (ElementType type : {ElementType::F16, ElementType::BF16,
                           ElementType::F8E4M3FN, ElementType::F4E2M1}) {
    double last = 0;
    for (int i = 0; i < 4000; ++i) {
      double value = i * 0.0013, rounded = roundTrip(type, value);
      EXPECT_GE(rounded, last);
      last = rounded;
    }
  }
}

TEST(Elements, PackedTypesShareBytes) {
  uint8_t bytes[2] = {};
  for (int i = 0; i < 4; ++i)
    storeInteger(ElementType::I4, bytes, i, i - 2);
  EXPECT_EQ(bytes[0], 0xfe);
  EXPECT_EQ(bytes[1], 0x10);
  EXPECT_EQ(loadInteger(ElementType::I4, bytes, 0), -2);
  EXPECT_EQ(loadInteger(ElementType::U4, bytes, 0), 14);
  EXPECT_EQ(loadInteger(ElementType::U2, bytes, 1), 3);
}

TEST(Elements, IntegersAreExact) {
  uint8_t bytes[8];
  storeInteger(ElementType::I64, bytes, 0, INT64_MAX);
  EXPECT_EQ(loadInteger(ElementType::I64, bytes, 0), INT64_MAX);
  storeElement(ElementType::U8, bytes, 0, 300.7);
  EXPECT_EQ(loadInteger(ElementType::U8, bytes, 0), 44);
  storeElement(ElementType::I32, bytes, 0, -1.9);
  EXPECT_EQ(loadInteger(ElementType::I32, bytes, 0), -1);
  storeElement(ElementType::I64, bytes, 0, 1e300);
  EXPECT_EQ(loadInteger(ElementType::I64, bytes, 0), INT64_MAX);
}

TEST(Constant, FormsWithEqualContentsAreEqual) {
  ConstantRef splat = Constant::splat(ElementType::F32, {2, 3}, 0.5);
  std::vector<uint8_t> bytes = splat->materialize();
  ConstantRef dense = Constant::copy(ElementType::F32, {2, 3}, bytes, "w");
  EXPECT_TRUE(splat->equals(*dense));
  EXPECT_TRUE(dense->equals(*splat));
  EXPECT_EQ(splat->contentHash(), dense->contentHash());
  EXPECT_EQ(dense->splatValue(), 0.5);
  ConstantRef other = Constant::splat(ElementType::F32, {3, 2}, 0.5);
  EXPECT_FALSE(splat->equals(*other));
  EXPECT_NE(splat->contentHash(), other->contentHash());
  ConstantRef iota =
      Constant::generated(Constant::Form::Iota, ElementType::I64, {5}, 0);
  EXPECT_TRUE(iota->equals(*Constant::ints({0, 1, 2, 3, 4})));
  EXPECT_EQ(iota->contentHash(),
            Constant::ints({0, 1, 2, 3, 4})->contentHash());
}

TEST(Constant, PaddingIsNotContents) {
  const uint8_t a[] = {0x21, 0x03}, b[] = {0x21, 0xf3};
  ConstantRef x = Constant::copy(ElementType::U4, {3}, a);
  ConstantRef y = Constant::copy(ElementType::U4, {3}, b);
  EXPECT_TRUE(x->equals(*y));
  EXPECT_EQ(x->contentHash(), y->contentHash());
}

TEST(Constant, ReadsEveryFormAlike) {
  for (ElementType type : allTypes) {
    for (ConstantRef constant :
         {Constant::generated(Constant::Form::Random, type, {7, 3}, 3),
          Constant::generated(Constant::Form::Iota, type, {7, 3}, 0),
          Constant::splat(type, {7, 3}, 1)}) {
      std::vector<uint8_t> bytes = constant->materialize();
      ConstantRef dense = Constant::copy(type, {7, 3}, bytes);
      EXPECT_TRUE(constant->equals(*dense)) << mnemonic(type).str();
      for (uint64_t i = 0; i < 21; ++i)
        EXPECT_EQ(constant->intAt(i), dense->intAt(i));
    }
  }
}

TEST(Constant, RandomStaysInRange) {
  ConstantRef c =
      Constant::generated(Constant::Form::Random, ElementType::F32, {1000}, 1);
  double sum = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    EXPECT_GE(c->floatAt(i), -1);
    EXPECT_LT(c->floatAt(i), 1);
    sum += c->floatAt(i);
  }
  EXPECT_LT(std::abs(sum), 100);
  ConstantRef other =
      Constant::generated(Constant::Form::Random, ElementType::F32, {1000}, 2);
  EXPECT_FALSE(c->equals(*other));
}

TEST(Constant, ConvertsFloatsWhenTheyAreRead) {
  constexpr uint64_t count = 10001;
  ConstantRef wide =
      Constant::generated(Constant::Form::Random, ElementType::F32, {count}, 5);
  ConstantRef half = Constant::converted(wide, ElementType::F16);
  EXPECT_EQ(half->form(), Constant::Form::Converted);
  std::vector<uint8_t> bytes = half->materialize();
  ASSERT_EQ(bytes.size(), count * 2);
  for (uint64_t i : {uint64_t(0), uint64_t(4095), uint64_t(4096), count - 1}) {
    uint8_t rounded[2];
    storeElement(ElementType::F16, rounded, 0, wide->floatAt(i));
    EXPECT_EQ(0, std::memcmp(rounded, bytes.data() + 2 * i, 2)) << i;
    EXPECT_EQ(half->floatAt(i), loadElement(ElementType::F16, rounded, 0)) << i;
  }
  // From the middle, across a chunk's end; and back, which is exact.
  std::vector<uint8_t> part(6000 * 4);
  Constant::converted(half, ElementType::F32)->read(3000, 6000, part.data());
  EXPECT_EQ(loadElement(ElementType::F32, part.data(), 5999),
            half->floatAt(8999));
  ConstantRef small = Constant::converted(
      Constant::splat(ElementType::F32, {7}, 0.1), ElementType::BF16);
  EXPECT_EQ(small->form(), Constant::Form::Splat);
  EXPECT_EQ(small->floatAt(3), 0.10009765625);
}

TEST(Constant, SplatValueIsExactOrNothing) {
  const int64_t large[] = {INT64_MAX, INT64_MAX};
  EXPECT_EQ(Constant::ints(large)->splatValue(), std::nullopt);
  EXPECT_EQ(Constant::ints({7, 7})->splatValue(), 7);
  EXPECT_EQ(Constant::ints({7, 8})->splatValue(), std::nullopt);
  EXPECT_EQ(Constant::ints({})->splatValue(), std::nullopt);
  const float zeros[] = {0.0f, -0.0f};
  llvm::ArrayRef<uint8_t> bytes(reinterpret_cast<const uint8_t *>(zeros), 8);
  EXPECT_EQ(Constant::copy(ElementType::F32, {2}, bytes)->splatValue(),
            std::nullopt);
}

TEST(Constant, CountsWithoutOverflow) {
  EXPECT_EQ(elementCount({2, 3}), 6u);
  EXPECT_EQ(elementCount({}), 1u);
  EXPECT_EQ(elementCount({5, 0}), 0u);
  EXPECT_EQ(elementCount({-1}), std::nullopt);
  EXPECT_EQ(elementCount({1ll << 40, 1ll << 40}), std::nullopt);
  EXPECT_EQ(elementCount({0, 1ll << 40, 1ll << 40}), std::nullopt);
}

/// Each code between two elements, and beside it, as one element at a time.
void expectConversion(ElementType from, ElementType to,
                      const std::vector<uint8_t> &in) {
  uint64_t size = bitWidth(from) / 8, out = bitWidth(to) / 8;
  uint64_t count = in.size() / size, wrong = 0;
  std::vector<uint8_t> got(count * out), want(count * out);
  convertElements(from, in.data(), to, got.data(), count);
  for (uint64_t i = 0; i < count; ++i)
    storeElement(to, want.data(), i, loadElement(from, in.data(), i));
  for (uint64_t i = 0; i < count && wrong < 5; ++i)
    if (!std::equal(&want[i * out], &want[i * out] + out, &got[i * out])) {
      ++wrong;
      ADD_FAILURE() << "element " << i << ", "
                    << loadElement(from, in.data(), i) << ": got "
                    << loadElement(to, got.data(), i) << ", expected "
                    << loadElement(to, want.data(), i);
    }
}

TEST(Constant, ConvertsManyElementsAsOne) {
  std::vector<uint8_t> codes(2 << 16), floats;
  for (uint32_t code = 0; code < 1 << 16; ++code)
    storeInteger(ElementType::U16, codes.data(), code, code);
  auto add = [&](uint32_t bits) {
    for (unsigned byte = 0; byte < 4; ++byte)
      floats.push_back(uint8_t(bits >> 8 * byte));
  };
  for (ElementType half : {ElementType::F16, ElementType::BF16}) {
    expectConversion(half, ElementType::F32, codes);
    floats.clear();
    // Each half, what lies in the middle of two, and what is just beside both.
    std::vector<uint8_t> wide(4 << 16);
    convertElements(half, codes.data(), ElementType::F32, wide.data(), 1 << 16);
    for (uint32_t i = 0; i < 1 << 16; ++i) {
      uint32_t bits = uint32_t(loadInteger(ElementType::U32, wide.data(), i));
      uint32_t middle = half == ElementType::F16 ? 1u << 12 : 1u << 15;
      for (uint32_t near : {bits, bits ^ middle})
        for (uint32_t offset : {-1, 0, 1})
          add(near + offset);
    }
    for (uint64_t bits = 0; bits < uint64_t(1) << 32; bits += 40009)
      add(uint32_t(bits));
    expectConversion(ElementType::F32, half, floats);
  }
  expectConversion(ElementType::F16, ElementType::BF16, codes);
}

} // namespace
