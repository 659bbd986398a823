//===- Rounded.cpp - f32 and f64 arithmetic with directed rounding -------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

/// \file
/// Compiled with -frounding-math: the processor's rounding mode is set around
/// each operation. Such instructions are rare, so that speed does not matter.

#include "runtime/emulator/exec/Decoder.h"
#include "runtime/emulator/exec/FloatMath.h"
#include "runtime/emulator/exec/Lanes.h"

#include <cfenv>
#include <type_traits>

using namespace tenon;
using namespace tenon::emu;
using ptx::Type;

namespace {

enum class Operation : uint8_t { Add, Sub, Mul, Fma, Div, Rcp, Sqrt };

/// Op::extra: the rounding mode, and bits for .ftz and .sat above it.
constexpr uint32_t flushBit = 1u << 30, saturateBit = 1u << 31;

template <typename T, Operation Kind>
[[gnu::noinline]] T compute(T a, T b, T c) {
  switch (Kind) {
  case Operation::Add:
    return a + b;
  case Operation::Sub:
    return a - b;
  case Operation::Mul:
    return a * b;
  case Operation::Fma:
    return std::fma(a, b, c);
  case Operation::Div:
    return a / b;
  case Operation::Rcp:
    return T(1) / a;
  case Operation::Sqrt:
    return std::sqrt(a);
  }
  return a;
}

template <typename T> T flushIf(T x, bool flushed) {
  return flushed ? static_cast<T>(flush(static_cast<float>(x))) : x;
}

template <typename T, Operation Kind>
void rounded(Warp &warp, const Op &op, uint32_t mask) {
  const T *a = lanes<T>(warp, op.a), *b = lanes<T>(warp, op.b);
  const T *c = lanes<T>(warp, op.c);
  T *d = lanes<T>(warp, op.dst);
  bool ftz = op.extra & flushBit, sat = op.extra & saturateBit;
  int mode = static_cast<int>(op.extra & ~(flushBit | saturateBit));
  int before = std::fegetround();
  forLanes(mask, [&](unsigned i) {
    T x = flushIf(a[i], ftz), y = flushIf(b[i], ftz), z = flushIf(c[i], ftz);
    std::fesetround(mode);
    volatile T r = compute<T, Kind>(x, y, z);
    std::fesetround(before);
    T result = flushIf<T>(r, ftz);
    if constexpr (std::is_same_v<T, float>) {
      if (sat)
        result = saturate01(result);
      else if (result != result)
        result = bitsToFloat(nanBits);
    }
    d[i] = result;
  });
}

template <Operation Kind> Handler build(Decoder &d) {
  int mode = d.take("rz")   ? FE_TOWARDZERO
             : d.take("rm") ? FE_DOWNWARD
             : d.take("rp") ? FE_UPWARD
                            : -1;
  if (mode < 0)
    return nullptr;
  bool ftz = d.take("ftz"), sat = d.take("sat");
  std::optional<Type> type = d.takeType();
  if ((type != Type::F32 && type != Type::F64) ||
      (type == Type::F64 && (ftz || sat)))
    return nullptr;
  d.op.kind = type == Type::F32 ? OpClass::Float : OpClass::Double;
  d.op.extra = static_cast<uint32_t>(mode) | (ftz ? flushBit : 0) |
               (sat ? saturateBit : 0);
  Handler handler =
      type == Type::F32 ? rounded<float, Kind> : rounded<double, Kind>;
  constexpr bool unary = Kind == Operation::Rcp || Kind == Operation::Sqrt;
  if (unary)
    return d.form(handler, *type, {*type});
  if (Kind == Operation::Fma)
    return d.form(handler, *type, {*type, *type, *type});
  return d.form(handler, *type, {*type, *type});
}

constexpr RuleEntry rules[] = {
    {"add", build<Operation::Add>}, {"sub", build<Operation::Sub>},
    {"mul", build<Operation::Mul>}, {"fma", build<Operation::Fma>},
    {"mad", build<Operation::Fma>}, {"div", build<Operation::Div>},
    {"rcp", build<Operation::Rcp>}, {"sqrt", build<Operation::Sqrt>},
};

} // namespace

std::span<const RuleEntry> emu::roundedRules() { return rules; }
