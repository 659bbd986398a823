//===- IndexRange.cpp - what is known of index arithmetic
//--------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/IndexExpr.h"
#include "llvm/ADT/StringExtras.h"

using namespace tenon;
using namespace tenon::ir;
using namespace tenon::passes;
using llvm::ArrayRef;
using llvm::StringRef;

/// No name in a model that the frontend accepts begins so.
static constexpr StringRef indexPrefix = "\x01i";

Dim IndexAnalysis::index(unsigned i) {
  return Dim::symbol((indexPrefix + std::to_string(i)).str());
}

static std::optional<unsigned> indexNumber(StringRef symbol) {
  unsigned number;
  if (!symbol.consume_front(indexPrefix) || symbol.getAsInteger(10, number))
    return std::nullopt;
  return number;
}

std::optional<unsigned> IndexAnalysis::asIndex(Dim dim) {
  std::optional<StringRef> name = dim.symbolName();
  return name ? indexNumber(*name) : std::nullopt;
}

IndexAnalysis::IndexAnalysis(const Module &module) : module(module) {
  for (const Module::Symbol &symbol : module.symbols)
    disabled |= indexNumber(symbol.name).has_value();
}

bool passes::dependsOnIndex(Dim dim) {
  bool depends = false;
  dim.collectSymbols(
      [&](StringRef name) { depends |= indexNumber(name).has_value(); });
  return depends;
}

static Dim asDim(const Dim::Atom &atom) {
  if (atom.symbol)
    return Dim::symbol(*atom.symbol);
  return Dim::func(atom.func, atom.lhs(), atom.rhs());
}

std::optional<LinearIndex> passes::asLinear(Dim dim) {
  LinearIndex linear;
  for (const Dim::Term &term : dim.terms()) {
    std::optional<unsigned> index;
    Dim coefficient = term.coefficient;
    for (const Dim::Atom *atom : term.atoms) {
      std::optional<unsigned> number =
          atom->symbol ? indexNumber(*atom->symbol) : std::nullopt;
      if (number && !index) {
        index = number;
        continue;
      }
      Dim factor = asDim(*atom);
      if (dependsOnIndex(factor))
        return std::nullopt;
      coefficient = coefficient * factor;
    }
    if (!index) {
      linear.rest = linear.rest + coefficient;
      continue;
    }
    auto known = llvm::find_if(linear.coefficients, [&](const auto &entry) {
      return entry.first == *index;
    });
    if (known != linear.coefficients.end())
      known->second = known->second + coefficient;
    else
      linear.coefficients.push_back({*index, coefficient});
  }
  return linear;
}

bool IndexAnalysis::atLeast(Dim dim, int64_t bound, ShapeRef shape) const {
  // Sizes that are at least n are n plus something that is not negative.
  auto shifted = [&](Dim value) {
    return value.substitute([&](StringRef name) -> std::optional<Dim> {
      if (indexNumber(name))
        return std::nullopt;
      int64_t low = module.rangeOf(name).low;
      if (low <= 0)
        return std::nullopt;
      return Dim::symbol(name) + Dim(low);
    });
  };
  std::optional<LinearIndex> linear = asLinear(dim);
  if (!linear)
    return shifted(dim).isAtLeast(bound);
  Dim least = linear->rest;
  for (auto [i, coefficient] : linear->coefficients) {
    if (shifted(coefficient).isAtLeast(0))
      continue; // least at index 0
    if (i >= shape.size() || !shifted(Dim(0) - coefficient).isAtLeast(0))
      return false;
    least = least + coefficient * (shape[i] - Dim(1));
  }
  return shifted(least).isAtLeast(bound);
}

std::optional<std::pair<Dim, Dim>> IndexAnalysis::divide(Dim flat, Dim size,
                                                         ShapeRef shape) const {
  std::optional<LinearIndex> linear = asLinear(flat);
  if (!linear)
    return std::nullopt;
  Dim quotient = 0, remainder = 0;
  auto split = [&](Dim coefficient, Dim factor) {
    if (std::optional<Dim> part = Dim::divideExactly(coefficient, size))
      quotient = quotient + *part * factor;
    else
      remainder = remainder + coefficient * factor;
  };
  for (auto [i, coefficient] : linear->coefficients)
    split(coefficient, index(i));
  split(linear->rest, 1);
  if (!atLeast(remainder, 0, shape))
    return std::nullopt;
  if (atLeast(size - remainder, 1, shape))
    return std::pair(quotient, remainder);
  // A plain index beside whole rows is meant to stay in its row, unless it
  // counts several rows itself.
  std::optional<unsigned> i = asIndex(remainder);
  if (!assumptions || !i || *i >= shape.size() || size.constant() ||
      Dim::divideExactly(shape[*i], size))
    return std::nullopt;
  assumptions->push_back({size, shape[*i]});
  return std::pair(quotient, remainder);
}

Dim IndexAnalysis::simplify(Dim dim, ShapeRef shape) const {
  auto simplifyAtom = [&](const Dim::Atom &atom) {
    if (atom.symbol)
      return Dim::symbol(*atom.symbol);
    bool isQuotient = atom.func == DimFunc::FloorDiv;
    if (isQuotient || atom.func == DimFunc::Mod)
      if (auto known = divide(simplify(atom.lhs(), shape), atom.rhs(), shape))
        return isQuotient ? known->first : known->second;
    return asDim(atom);
  };
  Dim sum = 0;
  for (const Dim::Term &term : dim.terms()) {
    Dim product = term.coefficient;
    for (const Dim::Atom *atom : term.atoms)
      product = product * simplifyAtom(*atom);
    sum = sum + product;
  }
  return sum;
}

std::optional<bool> IndexAnalysis::prove(OpKind comparison, Dim a, Dim b,
                                         ShapeRef shape) const {
  auto negated = [](std::optional<bool> known) {
    return known ? std::optional<bool>(!*known) : std::nullopt;
  };
  switch (comparison) {
  case OpKind::LessEqual:
    if (atLeast(b - a, 0, shape))
      return true;
    if (atLeast(a - b, 1, shape))
      return false;
    return std::nullopt;
  case OpKind::Less:
    return prove(OpKind::LessEqual, a + Dim(1), b, shape);
  case OpKind::GreaterEqual:
    return prove(OpKind::LessEqual, b, a, shape);
  case OpKind::Greater:
    return negated(prove(OpKind::LessEqual, a, b, shape));
  case OpKind::Equal:
    if (a == b)
      return true;
    if (atLeast(a - b, 1, shape) || atLeast(b - a, 1, shape))
      return false;
    return std::nullopt;
  default:
    return std::nullopt;
  }
}
