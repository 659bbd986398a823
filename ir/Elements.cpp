//===- Elements.cpp - reading and writing packed elements ----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/Constant.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/ErrorHandling.h"
#include <cmath>
#include <cstring>
#include <limits>

using namespace llvm;

namespace tenon::ir {

namespace {

//===----------------------------------------------------------------------===//
// Small floating-point formats
//===----------------------------------------------------------------------===//

/// What a format does with the codes that IEEE gives to infinity and NaN.
enum class Specials {
  Ieee,   ///< infinities and NaNs at the largest exponent
  Finite, ///< no infinity; NaN is all ones (the FN formats)
  Fnuz,   ///< no infinity, no -0; NaN is the code of -0
  None,   ///< neither infinity nor NaN
};

struct Format {
  unsigned mantissaBits, exponentBits;
  int bias;
  Specials specials;

  unsigned width() const { return 1 + exponentBits + mantissaBits; }
  uint32_t signBit() const { return 1u << (width() - 1); }
  /// The code of the largest finite value.
  uint32_t maxCode() const {
    switch (specials) {
    case Specials::Ieee:
      return (((1u << exponentBits) - 1) << mantissaBits) - 1;
    case Specials::Finite:
      return signBit() - 2;
    case Specials::Fnuz:
    case Specials::None:
      return signBit() - 1;
    }
    llvm_unreachable("a kind of format");
  }
  uint32_t nanCode() const {
    switch (specials) {
    case Specials::Ieee:
      return maxCode() + 1 + (1u << (mantissaBits - 1));
    case Specials::Finite:
      return signBit() - 1;
    case Specials::Fnuz:
      return signBit();
    case Specials::None:
      return 0;
    }
    llvm_unreachable("a kind of format");
  }
};

/// The formats of 16 bits and less that follow one scheme; null for others.
const Format *formatOf(ElementType type) {
  static constexpr Format f16{10, 5, 15, Specials::Ieee};
  static constexpr Format bf16{7, 8, 127, Specials::Ieee};
  static constexpr Format e4m3fn{3, 4, 7, Specials::Finite};
  static constexpr Format e4m3fnuz{3, 4, 8, Specials::Fnuz};
  static constexpr Format e5m2{2, 5, 15, Specials::Ieee};
  static constexpr Format e5m2fnuz{2, 5, 16, Specials::Fnuz};
  static constexpr Format e2m1{1, 2, 1, Specials::None};
  switch (type) {
  case ElementType::F16:
    return &f16;
  case ElementType::BF16:
    return &bf16;
  case ElementType::F8E4M3FN:
    return &e4m3fn;
  case ElementType::F8E4M3FNUZ:
    return &e4m3fnuz;
  case ElementType::F8E5M2:
    return &e5m2;
  case ElementType::F8E5M2FNUZ:
    return &e5m2fnuz;
  case ElementType::F4E2M1:
    return &e2m1;
  default:
    return nullptr;
  }
}

double decode(const Format &f, uint32_t code) {
  bool negative = code & f.signBit();
  uint32_t magnitude = code & (f.signBit() - 1);
  if (f.specials == Specials::Fnuz && code == f.signBit())
    return std::numeric_limits<double>::quiet_NaN();
  if (magnitude > f.maxCode()) {
    bool infinite =
        f.specials == Specials::Ieee && magnitude == f.maxCode() + 1;
    double special = infinite ? std::numeric_limits<double>::infinity()
                              : std::numeric_limits<double>::quiet_NaN();
    return negative ? -special : special;
  }
  uint32_t exponent = magnitude >> f.mantissaBits;
  uint32_t mantissa = magnitude & ((1u << f.mantissaBits) - 1);
  if (exponent != 0)
    mantissa |= 1u << f.mantissaBits;
  int scale = std::max<int>(exponent, 1) - f.bias - int(f.mantissaBits);
  double value = std::ldexp(double(mantissa), scale);
  return negative ? -value : value;
}

/// Rounds half to even. Too large becomes infinity, else NaN, else the largest
/// finite value, whichever the format has first.
uint32_t encode(const Format &f, double value) {
  if (std::isnan(value))
    return f.nanCode();
  uint32_t sign = std::signbit(value) ? f.signBit() : 0;
  double magnitude = std::fabs(value);
  uint32_t code = f.maxCode() + 1;
  // Consecutive codes are consecutive values, so a carry out of the mantissa
  // lands on the right code by itself.
  int exponent = magnitude == 0 ? 1 - f.bias : std::ilogb(magnitude);
  if (std::isfinite(magnitude) && exponent <= f.bias + 2) {
    exponent = std::max(exponent, 1 - f.bias);
    double steps =
        std::nearbyint(std::ldexp(magnitude, int(f.mantissaBits) - exponent));
    code =
        (uint32_t(exponent + f.bias - 1) << f.mantissaBits) + uint32_t(steps);
  }
  if (code <= f.maxCode())
    return f.specials == Specials::Fnuz && code == 0 ? 0 : sign | code;
  switch (f.specials) {
  case Specials::Ieee:
    return sign | (f.maxCode() + 1);
  case Specials::Finite:
    return sign | f.nanCode();
  case Specials::Fnuz:
    return f.nanCode();
  case Specials::None:
    return sign | f.maxCode();
  }
  llvm_unreachable("a kind of format");
}

/// f8e8m0: 2^(code - 127), no sign, 255 is NaN.
double decodeE8M0(uint32_t code) {
  return code == 255 ? std::numeric_limits<double>::quiet_NaN()
                     : std::ldexp(1.0, int(code) - 127);
}

/// Rounds to the nearest power of two, halves (by value) to the even code;
/// zero and less becomes the smallest value.
uint32_t encodeE8M0(double value) {
  if (std::isnan(value) || std::isinf(value))
    return 255;
  if (!(value > 0))
    return 0;
  int exponent = std::ilogb(value);
  double fraction = std::ldexp(value, -exponent);
  int code = exponent + 127;
  if (fraction > 1.5 || (fraction == 1.5 && (code & 1)))
    ++code;
  return code < 0 ? 0 : code > 254 ? 255 : code;
}

//===----------------------------------------------------------------------===//
// Packed storage
//===----------------------------------------------------------------------===//

/// The bits of element \p index.
uint64_t loadBits(unsigned width, const uint8_t *bytes, uint64_t index) {
  if (width < 8) {
    unsigned perByte = 8 / width;
    unsigned shift = (index % perByte) * width;
    return (bytes[index / perByte] >> shift) & ((1u << width) - 1);
  }
  uint64_t bits = 0;
  std::memcpy(&bits, bytes + index * (width / 8), width / 8);
  return bits;
}

void storeBits(unsigned width, uint8_t *bytes, uint64_t index, uint64_t bits) {
  if (width < 8) {
    unsigned perByte = 8 / width;
    unsigned shift = (index % perByte) * width;
    uint8_t mask = uint8_t(((1u << width) - 1) << shift);
    uint8_t &byte = bytes[index / perByte];
    byte = uint8_t((byte & ~mask) | ((bits << shift) & mask));
    return;
  }
  std::memcpy(bytes + index * (width / 8), &bits, width / 8);
}

int64_t signExtend(uint64_t bits, unsigned width) {
  unsigned unused = 64 - width;
  return int64_t(bits << unused) >> unused;
}

/// Truncates; what is outside the 64 bits becomes the nearest value inside,
/// NaN becomes 0.
uint64_t doubleToBits(double value, bool isUnsigned) {
  constexpr double two63 = 9223372036854775808.0;
  if (std::isnan(value))
    return 0;
  if (isUnsigned && value >= two63)
    return value >= 2 * two63 ? UINT64_MAX : uint64_t(value);
  if (value >= two63)
    return uint64_t(INT64_MAX);
  if (value < -two63)
    return uint64_t(INT64_MIN);
  return uint64_t(int64_t(value));
}

uint64_t floatToBits(ElementType type, double value) {
  if (type == ElementType::F64)
    return llvm::bit_cast<uint64_t>(value);
  if (type == ElementType::F32)
    return llvm::bit_cast<uint32_t>(float(value));
  if (type == ElementType::F8E8M0)
    return encodeE8M0(value);
  return encode(*formatOf(type), value);
}

double bitsToFloat(ElementType type, uint64_t bits) {
  if (type == ElementType::F64)
    return llvm::bit_cast<double>(bits);
  if (type == ElementType::F32)
    return llvm::bit_cast<float>(uint32_t(bits));
  if (type == ElementType::F8E8M0)
    return decodeE8M0(uint32_t(bits));
  return decode(*formatOf(type), uint32_t(bits));
}

} // namespace

double maxFinite(ElementType type) {
  assert(isFloat(type) && "not a floating-point type");
  if (type == ElementType::F64)
    return std::numeric_limits<double>::max();
  if (type == ElementType::F32)
    return std::numeric_limits<float>::max();
  if (type == ElementType::F8E8M0)
    return decodeE8M0(254);
  const Format &format = *formatOf(type);
  return decode(format, format.maxCode());
}

double loadElement(ElementType type, const uint8_t *bytes, uint64_t index) {
  if (isFloat(type))
    return bitsToFloat(type, loadBits(bitWidth(type), bytes, index));
  int64_t value = loadInteger(type, bytes, index);
  return type == ElementType::U64 ? double(uint64_t(value)) : double(value);
}

void storeElement(ElementType type, uint8_t *bytes, uint64_t index,
                  double value) {
  uint64_t bits = 0;
  switch (category(type)) {
  case TypeCategory::Float:
    bits = floatToBits(type, value);
    break;
  case TypeCategory::Bool:
    bits = value != 0;
    break;
  case TypeCategory::Signed:
  case TypeCategory::Unsigned:
    bits = doubleToBits(value, type == ElementType::U64);
    break;
  }
  storeBits(bitWidth(type), bytes, index, bits);
}

int64_t loadInteger(ElementType type, const uint8_t *bytes, uint64_t index) {
  uint64_t bits = loadBits(bitWidth(type), bytes, index);
  switch (category(type)) {
  case TypeCategory::Float:
    return int64_t(doubleToBits(bitsToFloat(type, bits), false));
  case TypeCategory::Bool:
    return bits != 0;
  case TypeCategory::Signed:
    return signExtend(bits, bitWidth(type));
  case TypeCategory::Unsigned:
    return int64_t(bits);
  }
  llvm_unreachable("a type category");
}

void storeInteger(ElementType type, uint8_t *bytes, uint64_t index,
                  int64_t value) {
  if (isFloat(type))
    return storeElement(type, bytes, index, double(value));
  bool isBool = category(type) == TypeCategory::Bool;
  storeBits(bitWidth(type), bytes, index,
            isBool ? uint64_t(value != 0) : uint64_t(value));
}

} // namespace tenon::ir
