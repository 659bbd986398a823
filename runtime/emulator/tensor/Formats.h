//===- Formats.h - number formats of the matrix instructions and cvt ------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_EMULATOR_TENSOR_FORMATS_H
#define TENON_RUNTIME_EMULATOR_TENSOR_FORMATS_H

#include <bit>
#include <cstdint>

namespace tenon::emu::tensor {

/// Element types of registers and matrices.
enum class Element : uint8_t {
  F16,
  BF16,
  TF32, ///< in 32 bits; the low 13 are ignored when read
  F32,
  F64,
  E4M3, ///< no infinity; 0x7f and 0xff are NaN
  E5M2,
  E2M3,  ///< 6 bits, finite only
  E3M2,  ///< 6 bits, finite only
  E2M1,  ///< 4 bits, finite only
  UE8M0, ///< 2^(x - 127); 0xff is NaN
  S8,
  U8,
  S4,
  U4,
  B1,
  S32,
};

/// Bits of an element in memory and in fragments (TF32: 32).
constexpr unsigned bitsOf(Element e) {
  switch (e) {
  case Element::F64:
    return 64;
  case Element::TF32:
  case Element::F32:
  case Element::S32:
    return 32;
  case Element::F16:
  case Element::BF16:
    return 16;
  case Element::S4:
  case Element::U4:
  case Element::E2M1:
    return 4;
  case Element::B1:
    return 1;
  default:
    return 8;
  }
}

constexpr bool isInteger(Element e) { return e >= Element::S8; }

/// Rounding of `cvt` and arithmetic.
enum class Rounding : uint8_t {
  NearestEven, ///< .rn
  NearestAway, ///< .rna: ties away from zero
  Zero,        ///< .rz
  Down,        ///< .rm
  Up,          ///< .rp
};

/// How `encode` treats its argument before and after rounding.
struct EncodeOptions {
  Rounding rounding = Rounding::NearestEven;
  /// .satfinite: beyond the greatest finite value, infinity included, that
  /// value. NaN stays NaN, or becomes the greatest value where the format has
  /// none.
  bool saturateFinite = false;
  /// .relu: negative values become +0.
  bool relu = false;
};

/// The nearest value of `format` (a floating-point one) as its bits. `value`
/// is exact: a float or a double, never rounded twice. NaN becomes the
/// canonical NaN of the format (f16, bf16: 0x7fff; tf32, f32: 0x7fffffff;
/// e4m3, e5m2: 0x7f). E4M3 without saturation overflows to NaN; the formats
/// that are finite only saturate always.
uint64_t encode(Element format, double value, EncodeOptions options = {});

/// The value of the bits of a floating-point or integer element of at most 64
/// bits. Bits above the element's own are ignored.
double decode(Element format, uint64_t bits);

/// a + b rounded to odd: what is then rounded to a format of at most 50 bits
/// is rounded once. With exact products this makes fma and sums of f16, bf16
/// and f32 right.
double addToOdd(double a, double b);

/// f16 to f32, exact; NaN keeps its payload.
inline float f16ToFloat(uint16_t bits) {
  uint32_t magnitude = uint32_t(bits & 0x7fff) << 13;
  float scaled = std::bit_cast<float>(magnitude) * 0x1p112f;
  uint32_t out = std::bit_cast<uint32_t>(scaled);
  if ((bits & 0x7c00) == 0x7c00)
    out = magnitude | 0x7f800000;
  return std::bit_cast<float>(out | uint32_t(bits & 0x8000) << 16);
}

inline float bf16ToFloat(uint16_t bits) {
  return std::bit_cast<float>(uint32_t(bits) << 16);
}

/// cvt.rn.f16.f32
inline uint16_t floatToF16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint32_t sign = bits >> 16 & 0x8000;
  uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000)
    return 0x7fff;
  if (magnitude >= 0x477ff000) // rounds beyond 65504
    return uint16_t(sign | 0x7c00);
  if (magnitude < 0x38800000) { // subnormal: the adder rounds at 2^-24
    float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return uint16_t(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000));
  }
  uint32_t odd = magnitude >> 13 & 1;
  return uint16_t(sign | (magnitude - 0x38000000 + 0xfff + odd) >> 13);
}

/// cvt.rn.bf16.f32
inline uint16_t floatToBF16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return 0x7fff;
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// What a tensor core reads of a tf32 operand: the low 13 bits are ignored.
inline float tf32ToFloat(uint32_t bits) {
  return std::bit_cast<float>(bits & 0xffffe000);
}

} // namespace tenon::emu::tensor

#endif // TENON_RUNTIME_EMULATOR_TENSOR_FORMATS_H
