//===- HalfMath.h - f16 and bf16 in registers ----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TENON_RUNTIME_EMULATOR_EXEC_HALFMATH_H
#define TENON_RUNTIME_EMULATOR_EXEC_HALFMATH_H

#include "runtime/emulator/exec/FloatMath.h"
#include "runtime/emulator/tensor/Formats.h"

namespace tenon::emu {

/// Bits of an f16 or bf16 register that read as the number they mean.
struct F16 {
  uint16_t bits;
  operator float() const { return tensor::f16ToFloat(bits); }
  static F16 round(float x) { return {tensor::floatToF16(x)}; }
  static F16 roundExact(double x) {
    return {static_cast<uint16_t>(tensor::encode(tensor::Element::F16, x))};
  }
  static constexpr uint16_t nan = 0x7fff;
  static constexpr uint16_t leastNormal = 0x0400;
};
struct BF16 {
  uint16_t bits;
  operator float() const { return tensor::bf16ToFloat(bits); }
  static BF16 round(float x) { return {tensor::floatToBF16(x)}; }
  static BF16 roundExact(double x) {
    return {static_cast<uint16_t>(tensor::encode(tensor::Element::BF16, x))};
  }
  static constexpr uint16_t nan = 0x7fff;
  static constexpr uint16_t leastNormal = 0x0080;
};

} // namespace tenon::emu

#endif // TENON_RUNTIME_EMULATOR_EXEC_HALFMATH_H
