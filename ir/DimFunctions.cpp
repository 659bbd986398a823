//===- DimFunctions.cpp - symbolic dimensions: division, min, max, bounds ===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/DimImpl.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CheckedArithmetic.h"
#include <numeric>
#include <vector>

using namespace llvm;

namespace tenon::ir {

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

namespace {

std::optional<int64_t> floorDivide(int64_t a, int64_t b) {
  if (b == 0 || (a == INT64_MIN && b == -1))
    return std::nullopt;
  int64_t q = a / b;
  return q - (a % b != 0 && (a < 0) != (b < 0));
}

std::optional<int64_t> modulo(int64_t a, int64_t b) {
  if (b == 0)
    return std::nullopt;
  if (b == -1)
    return 0;
  int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

} // namespace

std::optional<int64_t> evaluateFunc(DimFunc f, int64_t a, int64_t b) {
  switch (f) {
  case DimFunc::FloorDiv:
    return floorDivide(a, b);
  case DimFunc::CeilDiv: {
    std::optional<int64_t> q = floorDivide(a, b);
    return q ? std::optional(*q + (a % b != 0)) : std::nullopt;
  }
  case DimFunc::Mod:
    return modulo(a, b);
  case DimFunc::Min:
    return std::min(a, b);
  case DimFunc::Max:
    return std::max(a, b);
  case DimFunc::Broadcast:
    if (b == 1 || a == b)
      return a;
    return a == 1 ? std::optional(b) : std::nullopt;
  }
  llvm_unreachable("a function of dimensions");
}

//===----------------------------------------------------------------------===//
// Bounds
//===----------------------------------------------------------------------===//

namespace {

using Bound = std::optional<int64_t>;

/// The smaller (larger) of two bounds that both hold for one value each.
Bound lesser(Bound a, Bound b) {
  return a && b ? Bound(std::min(*a, *b)) : std::nullopt;
}
Bound greater(Bound a, Bound b) {
  return a && b ? Bound(std::max(*a, *b)) : std::nullopt;
}
/// The smaller (larger) of two bounds on the same value.
Bound tighterHigh(Bound a, Bound b) {
  return a && b ? lesser(a, b) : a ? a : b;
}
Bound tighterLow(Bound a, Bound b) {
  return a && b ? greater(a, b) : a ? a : b;
}

DimBounds divisionBounds(DimFunc f, Dim a, Dim b) {
  DimBounds bounds;
  // A divisor is not 0, so one that is not negative is at least 1.
  if (b.lowerBound().value_or(-1) < 0)
    return bounds;
  if (Bound k = b.constant(); k && *k > 0) {
    if (Bound low = a.lowerBound())
      bounds.low = evaluateFunc(f, *low, *k);
    if (Bound high = a.upperBound())
      bounds.high = evaluateFunc(f, *high, *k);
    return bounds;
  }
  // Dividing by 1 or more moves towards 0.
  if (Bound low = a.lowerBound())
    bounds.low = std::min<int64_t>(*low, 0);
  if (Bound high = a.upperBound())
    bounds.high = std::max<int64_t>(*high, 0);
  return bounds;
}

DimBounds moduloBounds(Dim a, Dim b) {
  DimBounds bounds;
  if (b.lowerBound().value_or(-1) < 0)
    return bounds;
  bounds.low = 0;
  if (Bound high = b.upperBound())
    bounds.high = *high - 1;
  if (a.lowerBound().value_or(-1) >= 0)
    bounds.high = tighterHigh(bounds.high, a.upperBound());
  return bounds;
}

} // namespace

DimBounds boundsOf(DimFunc f, Dim a, Dim b) {
  switch (f) {
  case DimFunc::FloorDiv:
  case DimFunc::CeilDiv:
    return divisionBounds(f, a, b);
  case DimFunc::Mod:
    return moduloBounds(a, b);
  case DimFunc::Min:
    return {lesser(a.lowerBound(), b.lowerBound()),
            tighterHigh(a.upperBound(), b.upperBound())};
  case DimFunc::Max:
    return {tighterLow(a.lowerBound(), b.lowerBound()),
            greater(a.upperBound(), b.upperBound())};
  case DimFunc::Broadcast:
    return {lesser(a.lowerBound(), b.lowerBound()),
            greater(a.upperBound(), b.upperBound())};
  }
  llvm_unreachable("a function of dimensions");
}

namespace {

/// Expressions that are no larger than coefficient * atom, for all values of
/// the symbols; they let a function application cancel against its operands.
SmallVector<Dim, 2> lowerEstimates(int64_t coefficient, const Dim::Atom *atom) {
  if (atom->symbol)
    return {};
  Dim x = atom->lhs(), y = atom->rhs(), c = coefficient;
  Bound k = y.constant();
  bool divides = k && *k > 0 && coefficient % *k == 0;
  bool shrinks = x.lowerBound().value_or(-1) >= 0 && k && *k > 0;
  switch (atom->func) {
  case DimFunc::Min:
    return coefficient < 0 ? SmallVector<Dim, 2>{c * x, c * y}
                           : SmallVector<Dim, 2>{};
  case DimFunc::Max:
    return coefficient > 0 ? SmallVector<Dim, 2>{c * x, c * y}
                           : SmallVector<Dim, 2>{};
  case DimFunc::FloorDiv:
    // x - (k - 1) <= k * floor(x / k) <= x.
    if (coefficient > 0)
      return divides ? SmallVector<Dim, 2>{Dim(coefficient / *k) *
                                           (x - Dim(*k - 1))}
                     : SmallVector<Dim, 2>{};
    if (divides)
      return {Dim(coefficient / *k) * x};
    return shrinks ? SmallVector<Dim, 2>{c * x} : SmallVector<Dim, 2>{};
  case DimFunc::Mod:
    return coefficient < 0 && shrinks ? SmallVector<Dim, 2>{c * x}
                                      : SmallVector<Dim, 2>{};
  case DimFunc::CeilDiv:
  case DimFunc::Broadcast:
    return {};
  }
  llvm_unreachable("a function of dimensions");
}

/// Whether \p dim >= \p bound, replacing applications by estimates; \p budget
/// bounds the work.
bool provablyAtLeast(Dim dim, int64_t bound, unsigned &budget) {
  if (Bound low = dim.lowerBound(); low && *low >= bound)
    return true;
  if (dim.isOverflow())
    return false;
  for (const Dim::Term &term : dim.terms()) {
    if (term.atoms.size() != 1)
      continue;
    for (Dim estimate : lowerEstimates(term.coefficient, term.atoms.front())) {
      if (budget == 0)
        return false;
      --budget;
      Dim rest = dim - makeTerm(term.coefficient, term.atoms) + estimate;
      if (provablyAtLeast(rest, bound, budget))
        return true;
    }
  }
  return false;
}

bool provablyNotLess(Dim a, Dim b) { return (a - b).isAtLeast(0); }

} // namespace

bool Dim::isAtLeast(int64_t bound) const {
  unsigned budget = 24;
  return provablyAtLeast(*this, bound, budget);
}

//===----------------------------------------------------------------------===//
// Division
//===----------------------------------------------------------------------===//

namespace {

using Monomial = SmallVector<const Dim::Atom *, 2>;

/// a / b as monomials, if b divides a. Both sorted alike.
std::optional<Monomial> divideMonomial(ArrayRef<const Dim::Atom *> a,
                                       ArrayRef<const Dim::Atom *> b) {
  Monomial quotient;
  for (const Dim::Atom *atom : a) {
    if (!b.empty() && b.front() == atom)
      b = b.drop_front();
    else
      quotient.push_back(atom);
  }
  return b.empty() ? std::optional(quotient) : std::nullopt;
}

struct Quotient {
  Dim quotient, remainder;
};

/// a = quotient * b + remainder by the leading-term algorithm, with integer
/// coefficients: no term of the remainder is divisible by b's leading term with
/// a coefficient outside [0, b's). nullopt for b = 0 and when it takes too
/// long.
std::optional<Quotient> dividePolynomials(Dim a, Dim b) {
  if (b.terms().empty() || a.isOverflow() || b.isOverflow())
    return std::nullopt;
  const Dim::Term &lead = b.terms().front();
  Dim quotient = 0, remainder = 0, rest = a;
  for (unsigned steps = 0; !rest.terms().empty(); ++steps) {
    if (steps == 2 * maxDimTerms || rest.isOverflow() || quotient.isOverflow())
      return std::nullopt;
    const Dim::Term &top = rest.terms().front();
    std::optional<Monomial> atoms = divideMonomial(top.atoms, lead.atoms);
    Bound factor =
        atoms ? floorDivide(top.coefficient, lead.coefficient) : Bound(0);
    if (!factor)
      return std::nullopt;
    if (*factor != 0) {
      Dim part = makeTerm(*factor, *atoms);
      quotient = quotient + part;
      rest = rest - part * b;
      // What is left of the top term cannot be divided further.
      if (rest.isOverflow() || rest.terms().empty() ||
          compareMonomials(rest.terms().front().atoms, top.atoms) != 0)
        continue;
    }
    Dim kept =
        makeTerm(rest.terms().front().coefficient, rest.terms().front().atoms);
    remainder = remainder + kept;
    rest = rest - kept;
  }
  if (quotient.isOverflow() || remainder.isOverflow())
    return std::nullopt;
  return Quotient{quotient, remainder};
}

uint64_t magnitude(int64_t value) {
  return value < 0 ? -uint64_t(value) : uint64_t(value);
}

/// The largest integer that divides every coefficient but the constant's.
uint64_t contentOf(Dim dim) {
  uint64_t gcd = 0;
  for (const Dim::Term &term : dim.terms())
    if (!term.atoms.empty())
      gcd = std::gcd(gcd, magnitude(term.coefficient));
  return gcd;
}

/// floor of every coefficient over \p g.
Dim divideCoefficients(Dim dim, int64_t g) {
  DimTerms terms(dim.terms());
  for (Dim::Term &term : terms)
    term.coefficient = *floorDivide(term.coefficient, g);
  return makePolynomial(std::move(terms));
}

int64_t constantTerm(Dim dim) {
  ArrayRef<Dim::Term> terms = dim.terms();
  return !terms.empty() && terms.back().atoms.empty() ? terms.back().coefficient
                                                      : 0;
}

const Dim::Atom *asApplication(Dim dim, DimFunc f) {
  ArrayRef<Dim::Term> terms = dim.terms();
  if (terms.size() != 1 || terms[0].coefficient != 1 ||
      terms[0].atoms.size() != 1)
    return nullptr;
  const Dim::Atom *atom = terms[0].atoms.front();
  return !atom->symbol && atom->func == f ? atom : nullptr;
}

/// A factor common to a remainder and its divisor; 1 when there is none.
int64_t commonFactor(Dim a, Dim b) {
  uint64_t g = std::gcd(contentOf(a), contentOf(b));
  g = std::gcd(g, magnitude(constantTerm(b)));
  return g > 1 && g <= uint64_t(INT64_MAX) ? int64_t(g) : 1;
}

bool isPositiveConstant(Dim dim) { return dim.constant().value_or(0) > 0; }

Dim floorDivDims(Dim a, Dim b);

/// floor(a / b) where a is already reduced by b.
Dim floorDivReduced(Dim a, Dim b) {
  if (a.isConstant(0))
    return 0;
  if (a.isAtLeast(0) && (b - a).isAtLeast(1))
    return 0;
  // floor((g * y + k) / (g * m)) = floor((y + floor(k / g)) / m) for integers.
  if (int64_t g = commonFactor(a, b); g > 1 && isPositiveConstant(b))
    return floorDivDims(divideCoefficients(a, g), divideCoefficients(b, g));
  if (int64_t g = commonFactor(a, b); g > 1 && constantTerm(a) % g == 0)
    return floorDivDims(divideCoefficients(a, g), divideCoefficients(b, g));
  // floor(floor(x / m) / n) = floor(x / (m * n)) for positive m and n.
  if (const Dim::Atom *inner = asApplication(a, DimFunc::FloorDiv);
      inner && isPositiveConstant(b) && isPositiveConstant(inner->rhs()))
    return floorDivDims(inner->lhs(), inner->rhs() * b);
  return makeAtom(DimFunc::FloorDiv, a, b);
}

Dim floorDivDims(Dim a, Dim b) {
  if (b.isConstant(1))
    return a;
  if (Bound k = b.constant(); k && *k < 0)
    return floorDivDims(Dim(0) - a, Dim(0) - b);
  if (std::optional<Dim> exact = Dim::divideExactly(a, b))
    return *exact;
  if (std::optional<Quotient> q = dividePolynomials(a, b))
    return q->quotient + floorDivReduced(q->remainder, b);
  return makeAtom(DimFunc::FloorDiv, a, b);
}

Dim ceilDivDims(Dim a, Dim b) {
  if (std::optional<Dim> exact = Dim::divideExactly(a, b))
    return *exact;
  if (Bound k = b.constant(); k && *k < 0)
    return ceilDivDims(Dim(0) - a, Dim(0) - b);
  // A divisor that is not negative is at least 1.
  if (b.isAtLeast(0))
    return floorDivDims(a + b - Dim(1), b);
  return makeAtom(DimFunc::CeilDiv, a, b);
}

/// Inside mod(., b), mod(x, m) is x where b divides m.
Dim dropInnerModulo(Dim a, int64_t b) {
  Dim result = 0;
  for (const Dim::Term &term : a.terms()) {
    Dim value = makeTerm(term.coefficient, term.atoms);
    if (term.atoms.size() == 1 && !term.atoms[0]->symbol &&
        term.atoms[0]->func == DimFunc::Mod) {
      Bound m = term.atoms[0]->rhs().constant();
      if (m && *m > 0 && *m % b == 0)
        value = Dim(term.coefficient) * term.atoms[0]->lhs();
    }
    result = result + value;
  }
  return result;
}

Dim modDims(Dim a, Dim b) {
  if (b.isConstant(1) || Dim::divideExactly(a, b))
    return 0;
  if (Bound k = b.constant(); k && *k > 0)
    a = dropInnerModulo(a, *k);
  std::optional<Quotient> q = dividePolynomials(a, b);
  if (!q)
    return a.isOverflow() ? a : makeAtom(DimFunc::Mod, a, b);
  a = q->remainder;
  if (a.isConstant(0) || (a.isAtLeast(0) && (b - a).isAtLeast(1)))
    return a;
  int64_t g = commonFactor(a, b);
  if (g > 1 && constantTerm(a) % g == 0)
    return Dim(g) * modDims(divideCoefficients(a, g), divideCoefficients(b, g));
  return makeAtom(DimFunc::Mod, a, b);
}

//===----------------------------------------------------------------------===//
// Min, max, broadcast
//===----------------------------------------------------------------------===//

/// The operands of nested applications of \p f, sorted and without repetition.
SmallVector<Dim, 4> flatten(DimFunc f, Dim a, Dim b) {
  SmallVector<Dim, 4> operands, work{b, a};
  while (!work.empty()) {
    Dim dim = work.pop_back_val();
    if (const Dim::Atom *atom = asApplication(dim, f))
      work.append({atom->rhs(), atom->lhs()});
    else
      operands.push_back(dim);
  }
  llvm::sort(operands, [](Dim x, Dim y) { return Dim::compare(x, y) < 0; });
  operands.erase(llvm::unique(operands), operands.end());
  return operands;
}

/// f(f(x, y), z) ... over sorted operands; of many, groups of such, for depth
/// is limited.
Dim nest(DimFunc f, ArrayRef<Dim> operands) {
  constexpr size_t group = 8;
  if (operands.size() > group) {
    SmallVector<Dim, 4> groups;
    for (size_t i = 0; i < operands.size(); i += group)
      groups.push_back(nest(f, operands.slice(i).take_front(group)));
    return nest(f, groups);
  }
  Dim result = operands.front();
  for (Dim operand : operands.drop_front())
    result = makeAtom(f, result, operand);
  return result;
}

Dim minMaxDims(DimFunc f, Dim a, Dim b) {
  SmallVector<Dim, 4> operands = flatten(f, a, b);
  // `x` makes `y` superfluous.
  auto covers = [&](Dim x, Dim y) {
    return f == DimFunc::Min ? provablyNotLess(y, x) : provablyNotLess(x, y);
  };
  std::vector<Dim> kept;
  for (Dim operand : operands) {
    if (any_of(kept, [&](Dim other) { return covers(other, operand); }))
      continue;
    erase_if(kept, [&](Dim other) { return covers(operand, other); });
    kept.push_back(operand);
  }
  return nest(f, kept);
}

Dim broadcastDims(Dim a, Dim b) {
  SmallVector<Dim, 4> operands = flatten(DimFunc::Broadcast, a, b);
  erase_if(operands, [](Dim dim) { return dim.isConstant(1); });
  if (operands.empty())
    return 1;
  // A size that is certainly not 1 is the result: all others are 1 or equal.
  for (Dim operand : operands)
    if (operand.isConstant(0) || operand.isAtLeast(2))
      return operand;
  return nest(DimFunc::Broadcast, operands);
}

} // namespace

std::optional<Dim> Dim::divideExactly(Dim a, Dim b) {
  std::optional<Quotient> q = dividePolynomials(a, b);
  return q && q->remainder.isConstant(0) ? std::optional(q->quotient)
                                         : std::nullopt;
}

Dim Dim::func(DimFunc f, Dim a, Dim b) {
  if (a.isOverflow() || b.isOverflow())
    return overflow();
  if (std::optional<int64_t> x = a.constant(), y = b.constant(); x && y) {
    if (std::optional<int64_t> value = evaluateFunc(f, *x, *y))
      return *value;
    return f == DimFunc::FloorDiv && *y == -1 ? overflow() : makeAtom(f, a, b);
  }
  // Nothing is known about a division by zero.
  bool divides =
      f == DimFunc::FloorDiv || f == DimFunc::CeilDiv || f == DimFunc::Mod;
  if (divides && b.isConstant(0))
    return makeAtom(f, a, b);
  switch (f) {
  case DimFunc::FloorDiv:
    return floorDivDims(a, b);
  case DimFunc::CeilDiv:
    return ceilDivDims(a, b);
  case DimFunc::Mod:
    return modDims(a, b);
  case DimFunc::Min:
  case DimFunc::Max:
    return minMaxDims(f, a, b);
  case DimFunc::Broadcast:
    return broadcastDims(a, b);
  }
  llvm_unreachable("a function of dimensions");
}

} // namespace tenon::ir
