//===- Elementwise.cpp - reference semantics of elementwise ops ----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

/// \file
/// One line for each op gives what it does to scalars. Floats of all widths
/// compute in double and integers in 64 bits; storing the result rounds or
/// wraps it to the op's element type. Bools are unsigned integers 0 and 1.

#include "ir/OpDef.h"
#include "ir/eval/Elements.h"
#include "ir/eval/Loops.h"
#include <array>
#include <cmath>

using namespace llvm;

namespace tenon::ir {

namespace {

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

/// What an op does to the scalars x[0], x[1], ... in each arithmetic; null for
/// types that inference refuses. `bits` is the width of the element type.
template <class T>
using ScalarFn = T (*)(const T *x, const Attrs &attrs, unsigned bits);

struct Rule {
  ScalarFn<double> onFloat = nullptr;
  ScalarFn<int64_t> onSigned = nullptr;
  ScalarFn<uint64_t> onUnsigned = nullptr;

  template <class T> ScalarFn<T> &on() {
    if constexpr (std::is_same_v<T, double>)
      return onFloat;
    else if constexpr (std::is_same_v<T, int64_t>)
      return onSigned;
    else
      return onUnsigned;
  }
};

/// Adapts a lambda that keeps no state, and takes one or two scalars and
/// perhaps an attribute struct or the width, to a ScalarFn.
template <class T, class F>
T call(const T *x, const Attrs &attrs, unsigned bits) {
  // Scalars first: a generic lambda would take attributes for one.
  if constexpr (std::is_invocable_v<F, T>)
    return T(F()(x[0]));
  else if constexpr (std::is_invocable_v<F, T, T>)
    return T(F()(x[0], x[1]));
  else if constexpr (std::is_invocable_v<F, T, T, unsigned>)
    return T(F()(x[0], x[1], bits));
  else if constexpr (std::is_invocable_v<F, T, const AlphaAttrs &>)
    return T(F()(x[0], static_cast<const AlphaAttrs &>(attrs)));
  else if constexpr (std::is_invocable_v<F, T, const AlphaBetaAttrs &>)
    return T(F()(x[0], static_cast<const AlphaBetaAttrs &>(attrs)));
  else
    return T(F()(x[0], static_cast<const IsInfAttrs &>(attrs)));
}

class Table {
public:
  Table() {
    addArithmetic();
    addFunctions();
    addActivations();
    addComparisons();
    addBits();
  }
  const Rule &operator[](OpKind kind) const { return rules[unsigned(kind)]; }

private:
  template <class T, class F> void add(OpKind kind) {
    rules[unsigned(kind)].on<T>() = call<T, F>;
  }
  template <class F> void floats(OpKind kind, F) { add<double, F>(kind); }
  template <class F> void integers(OpKind kind, F) {
    add<int64_t, F>(kind);
    add<uint64_t, F>(kind);
  }
  template <class F> void numbers(OpKind kind, F f) {
    floats(kind, f);
    integers(kind, f);
  }
  void addArithmetic();
  void addFunctions();
  void addActivations();
  void addComparisons();
  void addBits();

  std::array<Rule, numOpKinds> rules;
};

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

/// Signed overflow is undefined; these wrap.
template <class T> T wrapNeg(T x) { return T(-uint64_t(x)); }

struct Division {
  double operator()(double a, double b) const { return a / b; }
  uint64_t operator()(uint64_t a, uint64_t b) const { return b ? a / b : 0; }
  int64_t operator()(int64_t a, int64_t b) const {
    return b == -1 ? wrapNeg(a) : b ? a / b : 0;
  }
};

struct CRemainder {
  double operator()(double a, double b) const { return std::fmod(a, b); }
  uint64_t operator()(uint64_t a, uint64_t b) const { return b ? a % b : 0; }
  int64_t operator()(int64_t a, int64_t b) const {
    return b == 0 || b == -1 ? 0 : a % b;
  }
};

/// a^b by squaring, wrapping. The reciprocal for a negative exponent truncates
/// to 0 unless a is 1 or -1; 0 to a negative power is 0.
template <class T> T integerPower(T a, bool negative, uint64_t exponent) {
  if (negative)
    return a == T(1) ? T(1) : a == T(-1) ? (exponent % 2 ? T(-1) : T(1)) : T(0);
  uint64_t result = 1, base = uint64_t(a);
  for (; exponent; exponent >>= 1, base *= base)
    if (exponent & 1)
      result *= base;
  return T(result);
}

void Table::addArithmetic() {
  using K = OpKind;
  floats(K::Neg, [](double x) { return -x; });
  integers(K::Neg, [](auto x) { return wrapNeg(x); });
  floats(K::Abs, [](double x) { return std::fabs(x); });
  integers(K::Abs, [](auto x) { return x < 0 ? wrapNeg(x) : x; });
  numbers(K::Sign, [](auto x) {
    using T = decltype(x);
    return x > 0 ? T(1) : x < 0 ? T(-1) : x == 0 ? T(0) : x;
  });
  floats(K::Add, [](double a, double b) { return a + b; });
  integers(K::Add, [](auto a, auto b) { return uint64_t(a) + uint64_t(b); });
  floats(K::Sub, [](double a, double b) { return a - b; });
  integers(K::Sub, [](auto a, auto b) { return uint64_t(a) - uint64_t(b); });
  floats(K::Mul, [](double a, double b) { return a * b; });
  integers(K::Mul, [](auto a, auto b) { return uint64_t(a) * uint64_t(b); });
  numbers(K::Div, Division());
  numbers(K::Fmod, CRemainder());
  numbers(K::Mod, [](auto a, auto b) {
    auto r = CRemainder()(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
  });
  numbers(K::Min, [](auto a, auto b) { return a != a || a < b ? a : b; });
  numbers(K::Max, [](auto a, auto b) { return a != a || a > b ? a : b; });
}

//===----------------------------------------------------------------------===//
// Functions of floats
//===----------------------------------------------------------------------===//

void Table::addFunctions() {
  using K = OpKind;
  floats(K::Sqrt, [](double x) { return std::sqrt(x); });
  floats(K::Rsqrt, [](double x) { return 1 / std::sqrt(x); });
  floats(K::Reciprocal, [](double x) { return 1 / x; });
  floats(K::Exp, [](double x) { return std::exp(x); });
  floats(K::Log, [](double x) { return std::log(x); });
  floats(K::Erf, [](double x) { return std::erf(x); });
  floats(K::Sin, [](double x) { return std::sin(x); });
  floats(K::Cos, [](double x) { return std::cos(x); });
  floats(K::Tan, [](double x) { return std::tan(x); });
  floats(K::Asin, [](double x) { return std::asin(x); });
  floats(K::Acos, [](double x) { return std::acos(x); });
  floats(K::Atan, [](double x) { return std::atan(x); });
  floats(K::Sinh, [](double x) { return std::sinh(x); });
  floats(K::Cosh, [](double x) { return std::cosh(x); });
  floats(K::Tanh, [](double x) { return std::tanh(x); });
  floats(K::Asinh, [](double x) { return std::asinh(x); });
  floats(K::Acosh, [](double x) { return std::acosh(x); });
  floats(K::Atanh, [](double x) { return std::atanh(x); });
  floats(K::Floor, [](double x) { return std::floor(x); });
  floats(K::Ceil, [](double x) { return std::ceil(x); });
  floats(K::Round, [](double x) { return std::nearbyint(x); });
}

/// 1 / (1 + e^-x), without overflow at either end.
double sigmoid(double x) {
  double e = std::exp(-std::fabs(x));
  return x >= 0 ? 1 / (1 + e) : e / (1 + e);
}

double softplus(double x) {
  return std::fmax(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
}

/// x limited to [0, 1]; NaN stays.
double unit(double x) { return x < 0 ? 0 : x > 1 ? 1 : x; }

void Table::addActivations() {
  using K = OpKind;
  using A = AlphaAttrs;
  floats(K::Sigmoid, [](double x) { return sigmoid(x); });
  numbers(K::Relu, [](auto x) { return x < 0 ? decltype(x)(0) : x; });
  floats(K::LeakyRelu,
         [](double x, const A &a) { return x < 0 ? a.alpha * x : x; });
  floats(K::Elu, [](double x, const A &a) {
    return x < 0 ? a.alpha * std::expm1(x) : x;
  });
  floats(K::Celu, [](double x, const A &a) {
    return x < 0 ? a.alpha * std::expm1(x / a.alpha) : x;
  });
  floats(K::Selu, [](double x, const AlphaBetaAttrs &a) {
    return a.beta * (x <= 0 ? a.alpha * std::expm1(x) : x);
  });
  floats(K::ThresholdedRelu,
         [](double x, const A &a) { return x > a.alpha ? x : 0; });
  // Halving 1 + erf would cancel far below 0; erfc does not.
  floats(K::GeluErf,
         [](double x) { return x / 2 * std::erfc(-x * M_SQRT1_2); });
  // (1 + tanh u) / 2 = sigmoid(2 u).
  floats(K::GeluTanh, [](double x) {
    double u = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
    return x * sigmoid(2 * u);
  });
  floats(K::QuickGelu,
         [](double x, const A &a) { return x * sigmoid(a.alpha * x); });
  floats(K::HardSigmoid, [](double x, const AlphaBetaAttrs &a) {
    return unit(a.alpha * x + a.beta);
  });
  floats(K::HardSwish, [](double x) { return x * unit(x / 6 + 0.5); });
  floats(K::Mish, [](double x) { return x * std::tanh(softplus(x)); });
  floats(K::Softplus, [](double x) { return softplus(x); });
  floats(K::Softsign, [](double x) { return x / (1 + std::fabs(x)); });
}

//===----------------------------------------------------------------------===//
// Comparisons, logic, bits
//===----------------------------------------------------------------------===//

void Table::addComparisons() {
  using K = OpKind;
  floats(K::IsNan, [](double x) { return std::isnan(x); });
  floats(K::IsInf, [](double x, const IsInfAttrs &a) {
    return std::isinf(x) && (x > 0 ? a.positive : a.negative);
  });
  numbers(K::Equal, [](auto a, auto b) { return a == b; });
  numbers(K::Less, [](auto a, auto b) { return a < b; });
  numbers(K::LessEqual, [](auto a, auto b) { return a <= b; });
  numbers(K::Greater, [](auto a, auto b) { return a > b; });
  numbers(K::GreaterEqual, [](auto a, auto b) { return a >= b; });
}

void Table::addBits() {
  using K = OpKind;
  // Of bools, which are 0 and 1.
  integers(K::Not, [](auto x) { return x ^ 1; });
  integers(K::And, [](auto a, auto b) { return a & b; });
  integers(K::Or, [](auto a, auto b) { return a | b; });
  integers(K::Xor, [](auto a, auto b) { return a ^ b; });
  integers(K::BitwiseNot, [](auto x) { return ~x; });
  integers(K::BitwiseAnd, [](auto a, auto b) { return a & b; });
  integers(K::BitwiseOr, [](auto a, auto b) { return a | b; });
  integers(K::BitwiseXor, [](auto a, auto b) { return a ^ b; });
  // A negative shift is one by at least the width.
  integers(K::ShiftLeft, [](auto a, auto b, unsigned bits) {
    return uint64_t(b) < bits ? uint64_t(a) << b : 0;
  });
  integers(K::ShiftRight, [](auto a, auto b, unsigned bits) {
    uint64_t mask = bits < 64 ? (uint64_t(1) << bits) - 1 : ~uint64_t(0);
    return uint64_t(b) < bits ? (uint64_t(a) & mask) >> b : 0;
  });
}

const Table &table() {
  static const Table table;
  return table;
}

//===----------------------------------------------------------------------===//
// Running a rule over tensors
//===----------------------------------------------------------------------===//

/// Stores a result; a bool made from floats is 0 or 1 already.
template <class T> void storeResult(Tensor &to, uint64_t i, T value) {
  if (to.element == ElementType::Bool)
    to.setInt(i, value != T(0));
  else
    storeAs(to, i, value);
}

/// Calls \p visit(offsets, i) for each element i of the result, with the
/// offsets of up to three operands that broadcast to it.
template <class Visit> void forEachElement(EvalContext &context, Visit visit) {
  const Tensor &y = context.out();
  std::array<Extents, 3> strides;
  for (unsigned k = 0; k < 3; ++k)
    strides[k] = k < context.operands.size()
                     ? broadcastStrides(context.in(k).shape, y.shape)
                     : Extents(y.rank(), 0);
  uint64_t i = 0;
  forEachOffset(y.shape, strides,
                [&](const std::array<int64_t, 3> &at) { visit(at, i++); });
}

template <class T> void applyRule(EvalContext &context, ScalarFn<T> function) {
  assert(function && "inference accepted a type that the op isn't defined on");
  const Attrs &attrs = context.op.rawAttrs();
  unsigned bits = bitWidth(context.in(0).element);
  std::vector<T> a = loadAll<T>(context.in(0)), b;
  if (context.operands.size() > 1)
    b = loadAll<T>(context.in(1));
  Tensor &y = context.out();
  forEachElement(context, [&](const auto &at, uint64_t i) {
    T x[2] = {a[at[0]], b.empty() ? T() : b[at[1]]};
    storeResult(y, i, function(x, attrs, bits));
  });
}

void applyWhere(EvalContext &context) {
  forEachElement(context, [&](const auto &at, uint64_t i) {
    unsigned chosen = context.in(0).intAt(at[0]) ? 1 : 2;
    copyElements(context.out(), i, context.in(chosen), at[chosen]);
  });
}

/// The exponent may have another type than the base and the result.
void applyPow(EvalContext &context) {
  const Tensor &a = context.in(0), &b = context.in(1);
  Tensor &y = context.out();
  auto element = [&](const auto &at, uint64_t i) {
    if (isInteger(a.element) && isInteger(b.element)) {
      int64_t exponent = b.intAt(at[1]);
      bool negative =
          category(b.element) == TypeCategory::Signed && exponent < 0;
      y.setInt(i, integerPower(a.intAt(at[0]), negative, exponent));
      return;
    }
    double result = std::pow(a.at(at[0]), b.at(at[1]));
    if (isInteger(y.element))
      y.setInt(i, floatToInteger(result, y.element));
    else
      y.set(i, result);
  };
  forEachElement(context, element);
}

//===----------------------------------------------------------------------===//
// Cast
//===----------------------------------------------------------------------===//

/// The largest finite value of a float type of at most 8 bits, and the smallest
/// magnitude that rounds to something above it.
struct SmallFloatRange {
  double largest, tooLarge;
};

std::optional<SmallFloatRange> smallFloatRange(ElementType type) {
  switch (type) {
  case ElementType::F8E4M3FN:
    return SmallFloatRange{448, std::nextafter(464.0, 465.0)};
  case ElementType::F8E4M3FNUZ:
    return SmallFloatRange{240, 248};
  case ElementType::F8E5M2:
  case ElementType::F8E5M2FNUZ:
    return SmallFloatRange{57344, 61440};
  case ElementType::F8E8M0:
    return SmallFloatRange{0x1p127, 0x1.8p127};
  default:
    return std::nullopt;
  }
}

/// Stores a float, with what `saturate` says about 8-bit floats out of range:
/// the largest finite value, or infinity (f8e5m2) or NaN (the others).
void storeCast(Tensor &to, uint64_t i, double x, bool saturate) {
  if (std::optional<SmallFloatRange> range = smallFloatRange(to.element)) {
    if (saturate && std::fabs(x) > range->largest)
      x = std::copysign(range->largest, x);
    else if (std::fabs(x) >= range->tooLarge)
      x = to.element == ElementType::F8E5M2 ? std::copysign(INFINITY, x) : NAN;
  }
  to.set(i, x);
}

/// An integer as a double that rounds to narrower floats as the integer itself
/// would: where 64 bits don't fit, the last kept bit says whether any bit that
/// was dropped is set ("round to odd").
double toDoubleForRounding(uint64_t magnitude) {
  if (magnitude >> 53)
    magnitude = (magnitude & ~uint64_t(0xfff)) |
                ((magnitude & 0xfff) != 0 ? 0x1000 : 0);
  return double(magnitude);
}

double integerToFloat(int64_t value, ElementType from, ElementType to) {
  bool isUnsigned = category(from) != TypeCategory::Signed;
  if (to == ElementType::F64)
    return isUnsigned ? double(uint64_t(value)) : double(value);
  if (isUnsigned || value >= 0)
    return toDoubleForRounding(value);
  return -toDoubleForRounding(-uint64_t(value));
}

void applyCast(EvalContext &context) {
  const Tensor &x = context.in(0);
  Tensor &y = context.out();
  bool saturate = context.attrs<CastAttrs>().saturate;
  for (uint64_t i = 0, n = y.numElements(); i < n; ++i) {
    if (!x.isFloatTensor()) {
      int64_t value = x.intAt(i);
      if (y.isFloatTensor())
        storeCast(y, i, integerToFloat(value, x.element, y.element), saturate);
      else
        y.setInt(i, y.element == ElementType::Bool ? value != 0 : value);
    } else if (y.isFloatTensor()) {
      storeCast(y, i, x.at(i), saturate);
    } else if (y.element == ElementType::Bool) {
      y.setInt(i, x.at(i) != 0);
    } else {
      y.setInt(i, floatToInteger(x.at(i), y.element));
    }
  }
}

} // namespace

void combineElement(OpKind kind, Tensor &into, uint64_t i, const Tensor &with,
                    uint64_t j) {
  Rule rule = table()[kind];
  withArithmeticType(into.element, [&]<class T>(T) {
    T x[2] = {loadAs<T>(into, i), loadAs<T>(with, j)};
    storeAs<T>(into, i, rule.on<T>()(x, NoAttrs(), bitWidth(into.element)));
  });
}

Error evalElementwise(EvalContext &context) {
  switch (context.op.kind()) {
  case OpKind::Where:
    applyWhere(context);
    break;
  case OpKind::Pow:
    applyPow(context);
    break;
  case OpKind::Cast:
    applyCast(context);
    break;
  default:
    withArithmeticType(context.in(0).element, [&]<class T>(T) {
      Rule rule = table()[context.op.kind()];
      applyRule<T>(context, rule.on<T>());
    });
  }
  return Error::success();
}

} // namespace tenon::ir
