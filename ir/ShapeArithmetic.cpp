//===- ShapeArithmetic.cpp - elementwise ops on symbolic numbers ---------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/ShapeArithmetic.h"
#include "ir/ops/Infer.h"
#include <cmath>
#include <numeric>

using namespace llvm;

namespace tenon::ir {

namespace {

using Result = std::optional<Number>;

/// Floats keep sizes exactly up to this factor on top of them.
constexpr int64_t maxDenominator = int64_t(1) << 20;

uint64_t magnitude(int64_t value) {
  return value < 0 ? -uint64_t(value) : uint64_t(value);
}

bool isNegative(Dim dim) { return (Dim(-1) - dim).isAtLeast(0); }
bool isNonNegative(Dim dim) { return dim.isAtLeast(0); }
bool isNonPositive(Dim dim) { return (Dim(0) - dim).isAtLeast(0); }

Number integer(Dim value) { return {value, 1}; }
Number truth(bool value) { return {Dim(int64_t(value)), 1}; }

} // namespace

std::optional<Number> Number::ratio(Dim numerator, Dim denominator) {
  std::optional<int64_t> under = denominator.constant();
  if (!under) {
    if (std::optional<Dim> exact = Dim::divideExactly(numerator, denominator))
      return integer(*exact);
    return std::nullopt;
  }
  if (*under == 0 || *under == INT64_MIN)
    return std::nullopt;
  if (*under < 0) {
    numerator = Dim(0) - numerator;
    under = -*under;
  }
  uint64_t common = uint64_t(*under);
  for (const Dim::Term &term : numerator.terms())
    common = std::gcd(common, magnitude(term.coefficient));
  std::optional<Dim> reduced =
      Dim::divideExactly(numerator, Dim(int64_t(common)));
  int64_t left = *under / int64_t(common);
  if (!reduced || reduced->isOverflow() || left > maxDenominator)
    return std::nullopt;
  return Number{*reduced, left};
}

std::optional<Number> Number::fromFloat(double value) {
  double scaled = value * double(maxDenominator);
  if (!std::isfinite(value) || std::fabs(scaled) >= 0x1p62 ||
      scaled != std::floor(scaled))
    return std::nullopt;
  return ratio(int64_t(scaled), maxDenominator);
}

std::optional<double> Number::constant() const {
  std::optional<int64_t> value = numerator.constant();
  return value ? std::optional(double(*value) / double(denominator))
               : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Rules, all on known operands
//===----------------------------------------------------------------------===//

namespace {

/// a - b over a positive denominator: its sign is the sign of the difference.
Dim difference(const Number &a, const Number &b) {
  return a.numerator * Dim(b.denominator) - b.numerator * Dim(a.denominator);
}

Result sum(const Number &a, const Number &b) {
  return Number::ratio(a.numerator * Dim(b.denominator) +
                           b.numerator * Dim(a.denominator),
                       Dim(a.denominator) * Dim(b.denominator));
}

Result product(const Number &a, const Number &b) {
  return Number::ratio(a.numerator * b.numerator,
                       Dim(a.denominator) * Dim(b.denominator));
}

Result negated(const Number &a) {
  return Number::ratio(Dim(0) - a.numerator, a.denominator);
}

Result quotient(const Number &a, const Number &b) {
  return Number::ratio(a.numerator * Dim(b.denominator),
                       b.numerator * Dim(a.denominator));
}

/// a / b rounded towards 0, where the sign of both is known.
Result truncatedQuotient(Dim a, Dim b) {
  if (b.isConstant(0))
    return std::nullopt;
  if (std::optional<Dim> exact = Dim::divideExactly(a, b))
    return integer(*exact);
  if (isNonPositive(b)) {
    a = Dim(0) - a;
    b = Dim(0) - b;
  }
  if (!isNonNegative(b))
    return std::nullopt;
  if (isNonNegative(a))
    return integer(Dim::floorDiv(a, b));
  if (isNonPositive(a))
    return integer(Dim(0) - Dim::floorDiv(Dim(0) - a, b));
  return std::nullopt;
}

Result remainder(OpKind kind, const Number &a, const Number &b) {
  if (!a.isInteger() || !b.isInteger() || b.numerator.isConstant(0) ||
      !isNonNegative(b.numerator))
    return std::nullopt;
  if (kind == OpKind::Fmod && !isNonNegative(a.numerator))
    return std::nullopt;
  return integer(Dim::mod(a.numerator, b.numerator));
}

Result extremum(DimFunc f, const Number &a, const Number &b) {
  return Number::ratio(Dim::func(f, a.numerator * Dim(b.denominator),
                                 b.numerator * Dim(a.denominator)),
                       Dim(a.denominator) * Dim(b.denominator));
}

Result absolute(const Number &x) {
  if (isNonNegative(x.numerator))
    return x;
  return isNonPositive(x.numerator) ? negated(x) : std::nullopt;
}

Result sign(const Number &x) {
  if (x.numerator.isAtLeast(1))
    return integer(1);
  if (x.numerator.isConstant(0))
    return integer(0);
  return isNegative(x.numerator) ? Result(integer(-1)) : std::nullopt;
}

Result power(const Number &a, const Number &b) {
  std::optional<int64_t> exponent = b.numerator.constant();
  if (!b.isInteger() || !exponent || *exponent < 0 || *exponent > 8)
    return std::nullopt;
  Result result = integer(1);
  for (int64_t i = 0; i < *exponent && result; ++i)
    result = product(*result, a);
  return result;
}

/// Whether value < 0, if that is provable.
std::optional<bool> provablyNegative(Dim value) {
  if (isNegative(value))
    return true;
  return isNonNegative(value) ? std::optional(false) : std::nullopt;
}

Result toTruth(std::optional<bool> value, bool negate = false) {
  return value ? Result(truth(*value != negate)) : std::nullopt;
}

Result compare(OpKind kind, const Number &a, const Number &b) {
  Dim less = difference(a, b), greater = difference(b, a);
  switch (kind) {
  case OpKind::Equal:
    if (less.isConstant(0))
      return truth(true);
    return provablyDifferent(less, 0) ? Result(truth(false)) : std::nullopt;
  case OpKind::Less:
    return toTruth(provablyNegative(less));
  case OpKind::Greater:
    return toTruth(provablyNegative(greater));
  case OpKind::LessEqual:
    return toTruth(provablyNegative(greater), /*negate=*/true);
  default:
    return toTruth(provablyNegative(less), /*negate=*/true);
  }
}

Result applyUnary(OpKind kind, const Number &x) {
  switch (kind) {
  case OpKind::Neg:
    return negated(x);
  case OpKind::Abs:
    return absolute(x);
  case OpKind::Sign:
    return sign(x);
  case OpKind::Relu:
    return extremum(DimFunc::Max, x, integer(0));
  case OpKind::Reciprocal:
    return quotient(integer(1), x);
  case OpKind::Floor:
    return integer(Dim::floorDiv(x.numerator, x.denominator));
  case OpKind::Ceil:
    return integer(Dim::ceilDiv(x.numerator, x.denominator));
  case OpKind::Round:
    return x.isInteger() ? Result(x) : std::nullopt;
  case OpKind::Not:
    return Number{Dim(1) - x.numerator, 1};
  case OpKind::IsNan:
  case OpKind::IsInf:
    return truth(false); // a Number is finite
  default:
    return std::nullopt;
  }
}

Result applyBinary(OpKind kind, const Number &a, const Number &b,
                   ElementType type) {
  switch (kind) {
  case OpKind::Add:
    return sum(a, b);
  case OpKind::Sub: {
    Result minus = negated(b);
    return minus ? sum(a, *minus) : std::nullopt;
  }
  case OpKind::Mul:
    return product(a, b);
  case OpKind::Div:
    return isFloat(type) ? quotient(a, b)
                         : truncatedQuotient(a.numerator, b.numerator);
  case OpKind::Mod:
  case OpKind::Fmod:
    return remainder(kind, a, b);
  case OpKind::Pow:
    return power(a, b);
  case OpKind::Min:
    return extremum(DimFunc::Min, a, b);
  case OpKind::Max:
    return extremum(DimFunc::Max, a, b);
  case OpKind::Equal:
  case OpKind::Less:
  case OpKind::LessEqual:
  case OpKind::Greater:
  case OpKind::GreaterEqual:
    return compare(kind, a, b);
  case OpKind::And:
    return extremum(DimFunc::Min, a, b);
  case OpKind::Or:
    return extremum(DimFunc::Max, a, b);
  case OpKind::Xor:
    return compare(OpKind::Equal, a, b) == truth(true) ? truth(false)
                                                       : truth(true);
  default:
    return std::nullopt;
  }
}

/// What is known although some operand isn't.
Result applyPartial(OpKind kind, ArrayRef<Result> x, ElementType type) {
  if (kind == OpKind::Where) {
    if (x[0])
      return x[0]->numerator.isConstant(0) ? x[2] : x[1];
    return x[1] == x[2] ? x[1] : std::nullopt;
  }
  std::optional<int64_t> decisive;
  if (kind == OpKind::And || (kind == OpKind::Mul && !isFloat(type)))
    decisive = 0;
  else if (kind == OpKind::Or)
    decisive = 1;
  for (const Result &operand : x)
    if (decisive && operand && operand->numerator.isConstant(*decisive))
      return operand;
  return std::nullopt;
}

/// Whether \p x is what a result of type \p type holds: a symbolic size is
/// taken to fit 32 bits, but may wrap in fewer or, when negative, in unsigned.
bool fits(const Number &x, ElementType type) {
  if (x.numerator.isOverflow())
    return false;
  if (isFloat(type))
    return bitWidth(type) >= 32;
  if (!x.isInteger())
    return false;
  std::optional<int64_t> value = x.numerator.constant();
  unsigned bits = type == ElementType::Bool ? 1 : bitWidth(type);
  if (category(type) == TypeCategory::Signed) {
    if (!value)
      return bits >= 32;
    return bits == 64 || (*value >= -(int64_t(1) << (bits - 1)) &&
                          *value < int64_t(1) << (bits - 1));
  }
  if (!value)
    return bits >= 32 && isNonNegative(x.numerator);
  return *value >= 0 && (bits == 64 || *value < int64_t(1) << bits);
}

} // namespace

std::optional<Number> applyElementwise(OpKind kind, ArrayRef<Result> operands,
                                       ElementType operand,
                                       ElementType result) {
  Result value;
  bool allKnown =
      llvm::all_of(operands, [](const Result &x) { return x.has_value(); });
  if (!allKnown || kind == OpKind::Where)
    value = applyPartial(kind, operands, operand);
  else if (operands.size() == 1)
    value = applyUnary(kind, *operands[0]);
  else
    value = applyBinary(kind, *operands[0], *operands[1], operand);
  return value && fits(*value, result) ? value : std::nullopt;
}

std::optional<Number> applyCast(const Number &x, ElementType from,
                                ElementType to) {
  Result value = x;
  if (to == ElementType::Bool)
    value = toTruth(provablyDifferent(x.numerator, 0) ? std::optional(true)
                    : x.numerator.isConstant(0)       ? std::optional(false)
                                                      : std::nullopt);
  else if (isFloat(from) && !isFloat(to))
    value = truncatedQuotient(x.numerator, x.denominator);
  return value && fits(*value, to) ? value : std::nullopt;
}

} // namespace tenon::ir
