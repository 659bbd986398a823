//===- Half.cpp - f16 and bf16 arithmetic --------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

/// \file
/// Sums, products and quotients of f16 and bf16 are computed in f32 and
/// rounded: twice, but f32 has more than twice the digits and two more, so the
/// result is that of one rounding (Figueroa 1995). fma goes by double.

#include "runtime/emulator/exec/HalfMath.h"

#include "runtime/emulator/exec/Decoder.h"
#include "runtime/emulator/exec/Lanes.h"

#include <type_traits>

using namespace tenon;
using namespace tenon::emu;
using ptx::Type;

namespace {

enum : unsigned {
  HalfFtz = 1,
  HalfSat = 2,
  HalfRelu = 4,
  HalfNaN = 8,
  HalfXorSign = 16
};

template <typename H> H flushHalf(H x) {
  return (x.bits & 0x7fff) < H::leastNormal
             ? H{static_cast<uint16_t>(x.bits & 0x8000)}
             : x;
}
template <unsigned M, typename H> H inHalf(H x) {
  return M & HalfFtz ? flushHalf(x) : x;
}
template <unsigned M, typename H> H outHalf(H x) {
  if (M & HalfFtz)
    x = flushHalf(x);
  float value = x;
  if ((M & HalfSat))
    return H::round(saturate01(value));
  if ((M & HalfRelu) && value == value && (x.bits & 0x8000))
    return H{0}; // -0 too
  return x;
}

template <typename H, unsigned M> struct Add {
  static H of(H a, H b) {
    return outHalf<M>(H::round(float(inHalf<M>(a)) + float(inHalf<M>(b))));
  }
};
template <typename H, unsigned M> struct Sub {
  static H of(H a, H b) {
    return outHalf<M>(H::round(float(inHalf<M>(a)) - float(inHalf<M>(b))));
  }
};
template <typename H, unsigned M> struct Mul {
  static H of(H a, H b) {
    return outHalf<M>(H::round(float(inHalf<M>(a)) * float(inHalf<M>(b))));
  }
};
template <typename H, unsigned M> struct Fma {
  static H of(H a, H b, H c) {
    double exact = double(float(inHalf<M>(a))) * float(inHalf<M>(b));
    return outHalf<M>(
        H::roundExact(tensor::addToOdd(exact, float(inHalf<M>(c)))));
  }
};
template <typename H, unsigned M, bool IsMin> struct Extreme {
  static H of(H a, H b) {
    a = inHalf<M>(a);
    b = inHalf<M>(b);
    uint16_t sign = (a.bits ^ b.bits) & 0x8000;
    if (M & HalfXorSign) {
      a.bits &= 0x7fff;
      b.bits &= 0x7fff;
    }
    float x = a, y = b;
    if (x != x || y != y) {
      if ((M & HalfNaN) || (x != x && y != y))
        return H{H::nan};
      H number = x != x ? b : a;
      number.bits |= M & HalfXorSign ? sign : 0;
      return number;
    }
    bool first = x < y || (x == y && (a.bits & 0x8000));
    H r = first == IsMin ? a : b;
    if (x == y) // -0 is less than +0
      r.bits = IsMin ? a.bits | b.bits : a.bits & b.bits;
    if (M & HalfXorSign)
      r.bits |= sign;
    return r;
  }
};
template <typename H, unsigned M> struct Min : Extreme<H, M, true> {};
template <typename H, unsigned M> struct Max : Extreme<H, M, false> {};

template <typename H, unsigned M> struct Neg {
  static H of(H a) {
    a = inHalf<M>(a);
    return H{static_cast<uint16_t>(a.bits ^ 0x8000)};
  }
};
template <typename H, unsigned M> struct Abs {
  static H of(H a) {
    a = inHalf<M>(a);
    return H{static_cast<uint16_t>(a.bits & 0x7fff)};
  }
};
template <typename H, unsigned M> struct Ex2 {
  static H of(H a) {
    return outHalf<M>(H::round(std::exp2(float(inHalf<M>(a)))));
  }
};
template <typename H, unsigned M> struct Tanh {
  static H of(H a) { return H::round(std::tanh(float(a))); }
};

// Two in a register.

struct Pair {
  uint16_t low, high;
};
template <typename T, typename...> using Always = T;

/// F on both halves of its operands.
template <auto F> struct Paired;
template <typename H, typename... Halves, H (*F)(Halves...)> struct Paired<F> {
  static Pair of(Always<Pair, Halves>... operands) {
    return {F(H{operands.low}...).bits, F(H{operands.high}...).bits};
  }
};

template <template <typename, unsigned> class F, unsigned M>
Handler halves(Type type) {
  switch (type) {
  case Type::F16:
    return Lift<&F<F16, M>::of>::run;
  case Type::BF16:
    return Lift<&F<BF16, M>::of>::run;
  case Type::F16x2:
    return Lift<&Paired<&F<F16, M>::of>::of>::run;
  case Type::BF16x2:
    return Lift<&Paired<&F<BF16, M>::of>::of>::run;
  default:
    return nullptr;
  }
}

template <template <typename, unsigned> class F>
Handler buildArithmetic(Decoder &d) {
  d.take("rn");
  bool ftz = d.take("ftz"), sat = d.take("sat");
  std::optional<Type> type = d.takeType();
  if (!type)
    return nullptr;
  d.op.kind = OpClass::Half;
  Handler handler = ftz   ? (sat ? halves<F, (HalfFtz | HalfSat)>(*type)
                                 : halves<F, HalfFtz>(*type))
                    : sat ? halves<F, HalfSat>(*type)
                          : halves<F, 0>(*type);
  return d.form(handler, *type, {*type, *type});
}

Handler buildFma(Decoder &d) {
  if (!d.take("rn"))
    return nullptr;
  bool ftz = d.take("ftz"), sat = d.take("sat"), relu = d.take("relu");
  std::optional<Type> type = d.takeType();
  if (!type)
    return nullptr;
  d.op.kind = OpClass::Half;
  Handler handler = relu  ? (ftz ? halves<Fma, (HalfFtz | HalfRelu)>(*type)
                                 : halves<Fma, HalfRelu>(*type))
                    : sat ? (ftz ? halves<Fma, (HalfFtz | HalfSat)>(*type)
                                 : halves<Fma, HalfSat>(*type))
                    : ftz ? halves<Fma, HalfFtz>(*type)
                          : halves<Fma, 0>(*type);
  return d.form(handler, *type, {*type, *type, *type});
}

template <template <typename, unsigned> class F>
Handler buildExtreme(Decoder &d) {
  bool ftz = d.take("ftz"), nan = d.take("NaN"), sign = d.take("xorsign");
  if (sign && !d.take("abs"))
    return nullptr;
  std::optional<Type> type = d.takeType();
  if (!type)
    return nullptr;
  d.op.kind = OpClass::Half;
  Handler handler =
      sign  ? (nan ? halves<F, (HalfXorSign | HalfNaN)>(*type)
                   : halves<F, HalfXorSign>(*type))
      : nan ? (ftz ? halves<F, (HalfNaN | HalfFtz)>(*type)
                   : halves<F, HalfNaN>(*type))
            : (ftz ? halves<F, HalfFtz>(*type) : halves<F, 0>(*type));
  if (sign && ftz)
    return nullptr;
  return d.form(handler, *type, {*type, *type});
}

template <template <typename, unsigned> class F>
Handler buildUnary(Decoder &d) {
  bool approx = d.take("approx");
  bool ftz = d.take("ftz");
  std::optional<Type> type = d.takeType();
  constexpr bool needsApprox = std::is_same_v<F<F16, 0>, Ex2<F16, 0>> ||
                               std::is_same_v<F<F16, 0>, Tanh<F16, 0>>;
  if (!type || approx != needsApprox)
    return nullptr;
  d.op.kind = OpClass::Half;
  return d.form(ftz ? halves<F, HalfFtz>(*type) : halves<F, 0>(*type), *type,
                {*type});
}

constexpr RuleEntry rules[] = {
    {"add", buildArithmetic<Add>}, {"sub", buildArithmetic<Sub>},
    {"mul", buildArithmetic<Mul>}, {"fma", buildFma},
    {"min", buildExtreme<Min>},    {"max", buildExtreme<Max>},
    {"neg", buildUnary<Neg>},      {"abs", buildUnary<Abs>},
    {"ex2", buildUnary<Ex2>},      {"tanh", buildUnary<Tanh>},
};

} // namespace

std::span<const RuleEntry> emu::halfRules() { return rules; }
