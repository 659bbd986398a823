//===- Formats.cpp - number formats of the matrix instructions and cvt ----===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/emulator/tensor/Formats.h"

#include <cmath>
#include <limits>

namespace tenon::emu::tensor {
namespace {

/// A binary floating-point format: sign, exponent, mantissa, from the top.
struct Layout {
  uint8_t bits;          ///< all of them, without what pads them below
  uint8_t mantissa;      ///< bits of it
  int16_t leastExponent; ///< of normal numbers: 1 - bias
  bool hasInfinity;
  uint64_t greatest; ///< finite value, as bits
  uint64_t nan;      ///< canonical; 0 when there is none
  uint8_t padding;   ///< zero bits below the mantissa in storage
};

constexpr Layout f16 = {16, 10, -14, true, 0x7bff, 0x7fff, 0};
constexpr Layout bf16 = {16, 7, -126, true, 0x7f7f, 0x7fff, 0};
constexpr Layout tf32 = {19, 10, -126, true, 0x3fbff, 0x3ffff, 13};
constexpr Layout f32 = {32, 23, -126, true, 0x7f7fffff, 0x7fffffff, 0};
constexpr Layout f64 = {
    64, 52, -1022, true, 0x7fefffffffffffff, 0x7fffffffffffffff, 0};
constexpr Layout e4m3 = {8, 3, -6, false, 0x7e, 0x7f, 0};
constexpr Layout e5m2 = {8, 2, -14, true, 0x7b, 0x7f, 0};
constexpr Layout e2m3 = {6, 3, 0, false, 0x1f, 0, 0};
constexpr Layout e3m2 = {6, 2, -2, false, 0x1f, 0, 0};
constexpr Layout e2m1 = {4, 1, 0, false, 0x7, 0, 0};

const Layout *layoutOf(Element format) {
  switch (format) {
  case Element::F16:
    return &f16;
  case Element::BF16:
    return &bf16;
  case Element::TF32:
    return &tf32;
  case Element::F32:
    return &f32;
  case Element::F64:
    return &f64;
  case Element::E4M3:
    return &e4m3;
  case Element::E5M2:
    return &e5m2;
  case Element::E2M3:
    return &e2m3;
  case Element::E3M2:
    return &e3m2;
  case Element::E2M1:
    return &e2m1;
  default:
    return nullptr;
  }
}

/// `magnitude` (not negative, below 2^53) as a whole number.
uint64_t roundWhole(double magnitude, Rounding rounding, bool negative) {
  double down = std::floor(magnitude);
  double rest = magnitude - down; // exact
  uint64_t whole = uint64_t(down);
  switch (rounding) {
  case Rounding::NearestEven:
    return whole + (rest > 0.5 || (rest == 0.5 && (whole & 1)));
  case Rounding::NearestAway:
    return whole + (rest >= 0.5);
  case Rounding::Zero:
    return whole;
  case Rounding::Down:
    return whole + (rest > 0 && negative);
  case Rounding::Up:
    return whole + (rest > 0 && !negative);
  }
  return whole;
}

/// What a magnitude beyond the greatest finite one becomes.
uint64_t overflow(const Layout &layout, const EncodeOptions &options,
                  bool negative) {
  if (options.saturateFinite || layout.nan == 0)
    return layout.greatest;
  bool towardsZero =
      options.rounding == Rounding::Zero ||
      options.rounding == (negative ? Rounding::Up : Rounding::Down);
  if (towardsZero)
    return layout.greatest;
  return layout.hasInfinity ? layout.greatest + 1 : layout.nan;
}

/// The bits of a magnitude (not NaN), without sign and padding.
uint64_t encodeMagnitude(const Layout &layout, double magnitude,
                         const EncodeOptions &options, bool negative) {
  if (std::isinf(magnitude)) {
    if (options.saturateFinite || layout.nan == 0)
      return layout.greatest;
    return layout.hasInfinity ? layout.greatest + 1 : layout.nan;
  }
  if (magnitude == 0)
    return 0;
  int exponent = std::ilogb(magnitude);
  bool normal = exponent >= layout.leastExponent;
  if (!normal)
    exponent = layout.leastExponent;
  // In units of the last place; a carry runs into the exponent as it should.
  double units = std::ldexp(magnitude, layout.mantissa - exponent);
  uint64_t whole = roundWhole(units, options.rounding, negative);
  uint64_t base = uint64_t(exponent - layout.leastExponent) << layout.mantissa;
  uint64_t bits = base + whole;
  return bits > layout.greatest ? overflow(layout, options, negative) : bits;
}

/// Powers of two only: the greatest one up to (or, rounding up, the least one
/// from) the magnitude; 2^-127 for everything smaller.
uint64_t encodeScale(double value, const EncodeOptions &options) {
  if (std::isnan(value))
    return 0xff;
  double magnitude = std::fabs(value);
  uint64_t beyond = options.saturateFinite ? 0xfe : 0xff;
  if (std::isinf(magnitude))
    return beyond;
  if (magnitude < 0x1p-127)
    return 0;
  int exponent = std::ilogb(magnitude);
  if (options.rounding == Rounding::Up && magnitude > std::ldexp(1.0, exponent))
    ++exponent;
  return exponent > 127 ? beyond : uint64_t(exponent + 127);
}

double decodeFloat(const Layout &layout, uint64_t bits) {
  bits >>= layout.padding;
  uint64_t magnitude = bits & ((uint64_t(1) << (layout.bits - 1)) - 1);
  bool negative = bits >> (layout.bits - 1) & 1;
  double value;
  if (magnitude > layout.greatest) {
    bool infinite = layout.hasInfinity && magnitude == layout.greatest + 1;
    value = infinite ? std::numeric_limits<double>::infinity()
                     : std::numeric_limits<double>::quiet_NaN();
  } else {
    uint64_t one = uint64_t(1) << layout.mantissa;
    int exponent = int(magnitude >> layout.mantissa);
    uint64_t fraction = magnitude & (one - 1);
    if (exponent == 0)
      exponent = 1;
    else
      fraction += one;
    value = std::ldexp(double(fraction),
                       exponent - 1 + layout.leastExponent - layout.mantissa);
  }
  return negative ? -value : value;
}

double decodeInteger(Element format, uint64_t bits) {
  unsigned width = bitsOf(format);
  uint64_t mask = (uint64_t(1) << width) - 1;
  uint64_t sign = uint64_t(1) << (width - 1);
  bits &= mask;
  bool isSigned =
      format == Element::S8 || format == Element::S4 || format == Element::S32;
  if (isSigned && (bits & sign))
    return double(int64_t(bits) - int64_t(mask) - 1);
  return double(bits);
}

} // namespace

uint64_t encode(Element format, double value, EncodeOptions options) {
  if (format == Element::UE8M0)
    return encodeScale(value, options);
  const Layout *layout = layoutOf(format);
  if (!layout)
    return 0;
  if (std::isnan(value))
    return (layout->nan ? layout->nan : layout->greatest) << layout->padding |
           ((uint64_t(1) << layout->padding) - 1) * (layout->nan != 0);
  bool negative = std::signbit(value);
  if (options.relu && negative)
    return 0;
  uint64_t bits = encodeMagnitude(*layout, std::fabs(value), options, negative);
  bits |= uint64_t(negative) << (layout->bits - 1);
  return bits << layout->padding;
}

double decode(Element format, uint64_t bits) {
  if (isInteger(format))
    return decodeInteger(format, bits);
  if (format == Element::UE8M0)
    return (bits & 0xff) == 0xff ? std::numeric_limits<double>::quiet_NaN()
                                 : std::ldexp(1.0, int(bits & 0xff) - 127);
  return decodeFloat(*layoutOf(format), bits);
}

double addToOdd(double a, double b) {
  double sum = a + b;
  if (!std::isfinite(sum))
    return sum;
  double bPart = sum - a;
  double rest = (a - (sum - bPart)) + (b - bPart);
  uint64_t bits = std::bit_cast<uint64_t>(sum);
  if (rest == 0 || (bits & 1))
    return sum;
  // Inexact and even: the odd neighbour on the side of what was lost. Moving
  // towards zero lowers the bits, away from it raises them.
  bool grows = (rest > 0) == (sum > 0);
  return std::bit_cast<double>(grows ? bits + 1 : bits - 1);
}

} // namespace tenon::emu::tensor
