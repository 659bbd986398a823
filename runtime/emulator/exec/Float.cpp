//===- Float.cpp - f32 and f64 arithmetic, rounded to nearest ------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/emulator/exec/FloatMath.h"

#include "runtime/emulator/exec/Decoder.h"
#include "runtime/emulator/exec/Lanes.h"

#include <array>
#include <utility>

using namespace tenon;
using namespace tenon::emu;
using ptx::Type;

namespace {

template <unsigned M> struct Add {
  static float of(float a, float b) { return out<M>(in<M>(a) + in<M>(b)); }
};
template <unsigned M> struct Sub {
  static float of(float a, float b) { return out<M>(in<M>(a) - in<M>(b)); }
};
template <unsigned M> struct Mul {
  static float of(float a, float b) { return out<M>(in<M>(a) * in<M>(b)); }
};
template <unsigned M> struct Fma {
  static float of(float a, float b, float c) {
    return out<M>(std::fma(in<M>(a), in<M>(b), in<M>(c)));
  }
};
template <unsigned M> struct Div {
  static float of(float a, float b) { return out<M>(in<M>(a) / in<M>(b)); }
};
template <unsigned M> struct Abs {
  static float of(float a) { return std::fabs(in<M>(a)); }
};
template <unsigned M> struct Neg {
  static float of(float a) { return -in<M>(a); }
};
template <unsigned M> struct Rcp {
  static float of(float a) { return out<M>(1.0f / in<M>(a)); }
};
template <unsigned M> struct Sqrt {
  static float of(float a) { return out<M>(std::sqrt(in<M>(a))); }
};
// The approximate functions are computed as well as the C library can, within
// the errors that the PTX manual allows.
template <unsigned M> struct Rsqrt {
  static float of(float a) {
    return out<M>(static_cast<float>(1.0 / std::sqrt(double(in<M>(a)))));
  }
};
template <unsigned M> struct Sin {
  static float of(float a) { return out<M>(std::sin(in<M>(a))); }
};
template <unsigned M> struct Cos {
  static float of(float a) { return out<M>(std::cos(in<M>(a))); }
};
template <unsigned M> struct Lg2 {
  static float of(float a) { return out<M>(std::log2(in<M>(a))); }
};
template <unsigned M> struct Ex2 {
  static float of(float a) { return out<M>(std::exp2(in<M>(a))); }
};
template <unsigned M> struct Tanh {
  static float of(float a) { return out<M>(std::tanh(in<M>(a))); }
};

// min and max: the other operand where one is NaN, unless .NaN; -0 < +0;
// .xorsign.abs compares magnitudes and gives the product's sign.

enum : unsigned { PropagateNaN = 4, XorSignAbs = 8 };

template <typename T> T smaller(T a, T b) {
  return a < b || (a == b && std::signbit(a)) ? a : b;
}
template <typename T> T greater(T a, T b) {
  return a > b || (a == b && !std::signbit(a)) ? a : b;
}

template <unsigned M, bool IsMin> float extreme(float a, float b) {
  a = in<M>(a);
  b = in<M>(b);
  uint32_t sign = (floatToBits(a) ^ floatToBits(b)) & 0x80000000u;
  if (M & XorSignAbs) {
    a = std::fabs(a);
    b = std::fabs(b);
  }
  float r = IsMin ? smaller(a, b) : greater(a, b);
  r = a != a ? b : b != b ? a : r;
  bool isNaN = M & PropagateNaN ? a != a || b != b : a != a && b != b;
  uint32_t bits = isNaN ? nanBits : floatToBits(r);
  return bitsToFloat(M & XorSignAbs && !isNaN ? bits | sign : bits);
}
template <unsigned M, bool IsMin> float extreme3(float a, float b, float c) {
  return extreme<M, IsMin>(extreme<M, IsMin>(a, b), c);
}

// f64.

double addD(double a, double b) { return a + b; }
double subD(double a, double b) { return a - b; }
double mulD(double a, double b) { return a * b; }
double divD(double a, double b) { return a / b; }
double fmaD(double a, double b, double c) { return std::fma(a, b, c); }
double absD(double a) { return std::fabs(a); }
double negD(double a) { return -a; }
double sqrtD(double a) { return std::sqrt(a); }
double rcpD(double a) { return 1.0 / a; }
double minD(double a, double b) {
  return a != a ? b : b != b ? a : smaller(a, b);
}
double maxD(double a, double b) {
  return a != a ? b : b != b ? a : greater(a, b);
}
/// The approximate forms keep the high 32 bits and flush.
double coarse(double x) {
  uint64_t bits = std::bit_cast<uint64_t>(x) & 0xffffffff00000000;
  if ((bits & 0x7ff0000000000000) == 0)
    bits &= 0x8000000000000000;
  return std::bit_cast<double>(bits);
}
double rcpApproxD(double a) { return coarse(1.0 / coarse(a)); }
double rsqrtApproxD(double a) { return coarse(1.0 / std::sqrt(coarse(a))); }

// Two f32 in one register.

template <float (*F)(float, float)> uint64_t pair(uint64_t a, uint64_t b) {
  auto low = F(bitsToFloat(uint32_t(a)), bitsToFloat(uint32_t(b)));
  auto high = F(bitsToFloat(a >> 32), bitsToFloat(b >> 32));
  return floatToBits(low) | uint64_t(floatToBits(high)) << 32;
}
template <unsigned M> uint64_t fmaPair(uint64_t a, uint64_t b, uint64_t c) {
  auto low = Fma<M>::of(bitsToFloat(uint32_t(a)), bitsToFloat(uint32_t(b)),
                        bitsToFloat(uint32_t(c)));
  auto high = Fma<M>::of(bitsToFloat(a >> 32), bitsToFloat(b >> 32),
                         bitsToFloat(c >> 32));
  return floatToBits(low) | uint64_t(floatToBits(high)) << 32;
}
template <template <unsigned> class F> Handler pairHandler(bool ftz) {
  return ftz ? Lift<pair<F<Ftz>::of>>::run : Lift<pair<F<0>::of>>::run;
}

template <template <unsigned> class F> Handler pick(bool ftz, bool sat) {
  static constexpr Handler handlers[] = {
      Lift<F<0>::of>::run, Lift<F<Ftz>::of>::run, Lift<F<Sat>::of>::run,
      Lift<F<Ftz | Sat>::of>::run};
  return handlers[ftz + 2 * sat];
}

// copysign, testp.

template <typename U> struct CopySign {
  static U of(U a, U b) {
    constexpr U sign = U(1) << (sizeof(U) * 8 - 1);
    return (b & ~sign) | (a & sign);
  }
};

enum class Test { Finite, Infinite, Number, NotANumber, Normal, Subnormal };
template <typename T, Test Kind>
void testProperty(Warp &warp, const Op &op, uint32_t mask) {
  const T *a = lanes<T>(warp, op.a);
  setPredicate(warp, op.dst, mask, maskOf([=](unsigned i) {
                 switch (Kind) {
                 case Test::Finite:
                   return std::isfinite(a[i]);
                 case Test::Infinite:
                   return std::isinf(a[i]);
                 case Test::Number:
                   return !std::isnan(a[i]);
                 case Test::NotANumber:
                   return std::isnan(a[i]);
                 case Test::Normal:
                   return std::isnormal(a[i]);
                 case Test::Subnormal:
                   return std::fpclassify(a[i]) == FP_SUBNORMAL;
                 }
                 return false;
               }));
}

// Rules.

/// .rn or nothing; directed rounding belongs to other rules.
bool otherRounding(Decoder &d) {
  return d.peek() == "rz" || d.peek() == "rm" || d.peek() == "rp";
}

template <template <unsigned> class F, double (*D)(double, double)>
Handler buildArithmetic(Decoder &d) {
  if (otherRounding(d))
    return nullptr;
  d.take("rn");
  bool ftz = d.take("ftz"), sat = d.take("sat");
  std::optional<Type> type = d.takeType();
  d.op.kind = OpClass::Float;
  if (type == Type::F32)
    return d.form(pick<F>(ftz, sat), Type::F32, {Type::F32, Type::F32});
  if (type == Type::F32x2 && !sat)
    return d.form(pairHandler<F>(ftz), Type::B64, {Type::B64, Type::B64});
  d.op.kind = OpClass::Double;
  if (type == Type::F64 && !ftz && !sat)
    return d.form(Lift<D>::run, Type::F64, {Type::F64, Type::F64});
  return nullptr;
}

Handler buildFma(Decoder &d) {
  if (otherRounding(d))
    return nullptr;
  d.take("rn");
  bool ftz = d.take("ftz"), sat = d.take("sat");
  std::optional<Type> type = d.takeType();
  d.op.kind = OpClass::Float;
  if (type == Type::F32)
    return d.form(pick<Fma>(ftz, sat), Type::F32,
                  {Type::F32, Type::F32, Type::F32});
  if (type == Type::F32x2 && !sat)
    return d.form(ftz ? Lift<fmaPair<Ftz>>::run : Lift<fmaPair<0>>::run,
                  Type::B64, {Type::B64, Type::B64, Type::B64});
  d.op.kind = OpClass::Double;
  if (type == Type::F64 && !ftz && !sat)
    return d.form(Lift<fmaD>::run, Type::F64,
                  {Type::F64, Type::F64, Type::F64});
  return nullptr;
}

Handler buildDiv(Decoder &d) {
  if (otherRounding(d))
    return nullptr;
  bool loose = d.take("approx") || d.take("full");
  if (!loose && !d.take("rn"))
    return nullptr;
  bool ftz = d.take("ftz");
  std::optional<Type> type = d.takeType();
  d.op.kind = OpClass::Float;
  if (type == Type::F32)
    return d.form(pick<Div>(ftz, false), Type::F32, {Type::F32, Type::F32});
  d.op.kind = OpClass::Double;
  if (type == Type::F64 && !loose)
    return d.form(Lift<divD>::run, Type::F64, {Type::F64, Type::F64});
  return nullptr;
}

double noSuch(double) { return 0; }

/// rcp, sqrt, rsqrt: .approx or .rn.
template <template <unsigned> class F, double (*D)(double),
          double (*Approx)(double)>
Handler buildRoot(Decoder &d) {
  if (otherRounding(d))
    return nullptr;
  bool approx = d.take("approx");
  if (!approx && !d.take("rn"))
    return nullptr;
  bool ftz = d.take("ftz");
  std::optional<Type> type = d.takeType();
  d.op.kind = OpClass::Float;
  if (type == Type::F32)
    return d.form(pick<F>(ftz, false), Type::F32, {Type::F32});
  d.op.kind = OpClass::Double;
  if (type != Type::F64)
    return nullptr;
  if (approx ? Approx == noSuch : D == noSuch)
    return nullptr;
  return d.form(approx ? Lift<Approx>::run : Lift<D>::run, Type::F64,
                {Type::F64});
}

template <template <unsigned> class F> Handler buildApprox(Decoder &d) {
  if (!d.take("approx"))
    return nullptr;
  bool ftz = d.take("ftz");
  d.op.kind = OpClass::Float;
  if (d.takeType() != Type::F32)
    return nullptr;
  return d.form(pick<F>(ftz, false), Type::F32, {Type::F32});
}

template <template <unsigned> class F, double (*D)(double)>
Handler buildSign(Decoder &d) {
  bool ftz = d.take("ftz");
  std::optional<Type> type = d.takeType();
  d.op.kind = OpClass::Float;
  if (type == Type::F32)
    return d.form(ftz ? Lift<F<Ftz>::of>::run : Lift<F<0>::of>::run, Type::F32,
                  {Type::F32});
  d.op.kind = OpClass::Double;
  if (type == Type::F64 && !ftz)
    return d.form(Lift<D>::run, Type::F64, {Type::F64});
  return nullptr;
}

template <bool IsMin, size_t... M>
constexpr auto extremeTable(std::index_sequence<M...>) {
  return std::array<std::pair<Handler, Handler>, sizeof...(M)>{
      std::pair<Handler, Handler>(
          Lift<extreme<(M & 1) | (M & 6) * 2, IsMin>>::run,
          Lift<extreme3<(M & 1) | (M & 6) * 2, IsMin>>::run)...};
}

template <bool IsMin, double (*D)(double, double)>
Handler buildExtreme(Decoder &d) {
  static constexpr auto table =
      extremeTable<IsMin>(std::make_index_sequence<8>());
  bool ftz = d.take("ftz"), nan = d.take("NaN"), sign = d.take("xorsign");
  if (sign && !d.take("abs"))
    return nullptr;
  std::optional<Type> type = d.takeType();
  d.op.kind = OpClass::Float;
  auto [two, three] = table[ftz + 2 * nan + 4 * sign];
  if (type == Type::F32)
    return d.operands() == 4
               ? d.form(three, Type::F32, {Type::F32, Type::F32, Type::F32})
               : d.form(two, Type::F32, {Type::F32, Type::F32});
  d.op.kind = OpClass::Double;
  if (type == Type::F64 && !ftz && !nan && !sign)
    return d.form(Lift<D>::run, Type::F64, {Type::F64, Type::F64});
  return nullptr;
}

Handler buildCopySign(Decoder &d) {
  std::optional<Type> type = d.takeType();
  d.op.kind = OpClass::Float;
  if (type == Type::F32)
    return d.form(Lift<CopySign<uint32_t>::of>::run, Type::F32,
                  {Type::F32, Type::F32});
  if (type == Type::F64)
    return d.form(Lift<CopySign<uint64_t>::of>::run, Type::F64,
                  {Type::F64, Type::F64});
  return nullptr;
}

template <typename T> Handler testHandler(std::string_view name) {
  static constexpr std::pair<std::string_view, Handler> tests[] = {
      {"finite", testProperty<T, Test::Finite>},
      {"infinite", testProperty<T, Test::Infinite>},
      {"number", testProperty<T, Test::Number>},
      {"notanumber", testProperty<T, Test::NotANumber>},
      {"normal", testProperty<T, Test::Normal>},
      {"subnormal", testProperty<T, Test::Subnormal>}};
  for (auto [known, handler] : tests)
    if (known == name)
      return handler;
  return nullptr;
}

Handler buildTestp(Decoder &d) {
  std::string_view name = d.peek();
  d.skip();
  std::optional<Type> type = d.takeType();
  if ((type != Type::F32 && type != Type::F64) || !d.expectOperands(2, 2))
    return nullptr;
  d.op.kind = OpClass::Float;
  d.op.dst = d.dst(0, Type::Pred);
  d.op.a = d.src(1, *type);
  return type == Type::F32 ? testHandler<float>(name)
                           : testHandler<double>(name);
}

constexpr RuleEntry rules[] = {
    {"add", buildArithmetic<Add, addD>},
    {"sub", buildArithmetic<Sub, subD>},
    {"mul", buildArithmetic<Mul, mulD>},
    {"fma", buildFma},
    {"mad", buildFma},
    {"div", buildDiv},
    {"abs", buildSign<Abs, absD>},
    {"neg", buildSign<Neg, negD>},
    {"min", buildExtreme<true, minD>},
    {"max", buildExtreme<false, maxD>},
    {"rcp", buildRoot<Rcp, rcpD, rcpApproxD>},
    {"sqrt", buildRoot<Sqrt, sqrtD, noSuch>},
    {"rsqrt", buildRoot<Rsqrt, noSuch, rsqrtApproxD>},
    {"sin", buildApprox<Sin>},
    {"cos", buildApprox<Cos>},
    {"lg2", buildApprox<Lg2>},
    {"ex2", buildApprox<Ex2>},
    {"tanh", buildApprox<Tanh>},
    {"copysign", buildCopySign},
    {"testp", buildTestp},
};

} // namespace

std::span<const RuleEntry> emu::floatRules() { return rules; }
