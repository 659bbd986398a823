//===- FloatMath.h - how PTX's f32 and f64 treat odd values --------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TENON_RUNTIME_EMULATOR_EXEC_FLOATMATH_H
#define TENON_RUNTIME_EMULATOR_EXEC_FLOATMATH_H

#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>

namespace tenon::emu {

/// Modifiers of f32 arithmetic, as template arguments.
enum : unsigned { Ftz = 1, Sat = 2 };

inline constexpr uint32_t nanBits = 0x7fffffff;

inline float bitsToFloat(uint32_t bits) { return std::bit_cast<float>(bits); }
inline uint32_t floatToBits(float value) {
  return std::bit_cast<uint32_t>(value);
}

/// .ftz: subnormal numbers become zeros of their sign.
inline float flush(float x) {
  return std::fabs(x) < FLT_MIN ? std::copysign(0.0f, x) : x;
}

/// .sat: into [0, 1]; NaN becomes 0.
inline float saturate01(float x) {
  x = x > 0.0f ? x : 0.0f;
  return x < 1.0f ? x : 1.0f;
}

template <unsigned M> float in(float x) { return M & Ftz ? flush(x) : x; }

/// Rounds off a result: every NaN of f32 arithmetic has the same bits.
template <unsigned M> float out(float x) {
  if (M & Ftz)
    x = flush(x);
  if (M & Sat)
    return saturate01(x);
  return x == x ? x : bitsToFloat(nanBits);
}

} // namespace tenon::emu

#endif // TENON_RUNTIME_EMULATOR_EXEC_FLOATMATH_H
