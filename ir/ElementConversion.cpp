//===- ElementConversion.cpp - many elements to another float type --------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/ElementConversion.h"

#include "ir/Constant.h"
#include "llvm/ADT/bit.h"
#include <cstring>

namespace tenon::ir {

namespace {

// Without branches, so that loops of them are vectorised.
constexpr uint32_t signBit = 0x80000000, infinity = 0x7f800000;

uint16_t toF16(uint32_t bits) {
  uint32_t magnitude = bits & ~signBit;
  // What is below 2^-14 gets units of 2^-24 where the sum has its last bit.
  constexpr uint32_t unit = 126u << 23;
  uint32_t denormal =
      llvm::bit_cast<uint32_t>(llvm::bit_cast<float>(magnitude) +
                               llvm::bit_cast<float>(unit)) -
      unit;
  // Exponents count from 15, not 127; a carry of the rounding raises them.
  uint32_t normal =
      (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
  uint32_t code = magnitude < 113u << 23 ? denormal : normal;
  code = magnitude >= 143u << 23 ? 0x7c00 : code;
  code |= bits >> 31 << 15;
  return uint16_t(magnitude > infinity ? 0x7e00 : code);
}

uint16_t toBF16(uint32_t bits) {
  uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return uint16_t((bits & ~signBit) > infinity ? 0x7fc0 : rounded);
}

uint32_t fromF16(uint16_t code) {
  uint32_t magnitude = code & 0x7fff, shifted = magnitude << 13;
  uint32_t denormal = llvm::bit_cast<uint32_t>(float(magnitude) * 0x1p-24f);
  uint32_t bits = magnitude < 0x400 ? denormal : shifted + (112u << 23);
  bits = magnitude == 0x7c00 ? infinity : bits;
  bits = magnitude > 0x7c00 ? 0x7fc00000 : bits;
  return bits | uint32_t(code & 0x8000) << 16;
}

uint32_t fromBF16(uint16_t code) {
  bool isNaN = (code & 0x7fff) > infinity >> 16;
  return isNaN ? uint32_t(code & 0x8000) << 16 | 0x7fc00000
               : uint32_t(code) << 16;
}

template <auto convert, class From>
void convertAll(const uint8_t *in, uint8_t *out, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    From element;
    std::memcpy(&element, in + i * sizeof(From), sizeof(From));
    auto result = convert(element);
    std::memcpy(out + i * sizeof(result), &result, sizeof(result));
  }
}

} // namespace

void convertElements(ElementType from, const uint8_t *in, ElementType to,
                     uint8_t *out, uint64_t count) {
  constexpr ElementType f32 = ElementType::F32;
  if (from == f32 && to == ElementType::F16)
    return convertAll<toF16, uint32_t>(in, out, count);
  if (from == f32 && to == ElementType::BF16)
    return convertAll<toBF16, uint32_t>(in, out, count);
  if (from == ElementType::F16 && to == f32)
    return convertAll<fromF16, uint16_t>(in, out, count);
  if (from == ElementType::BF16 && to == f32)
    return convertAll<fromBF16, uint16_t>(in, out, count);
  for (uint64_t i = 0; i < count; ++i)
    storeElement(to, out, i, loadElement(from, in, i));
}

} // namespace tenon::ir
