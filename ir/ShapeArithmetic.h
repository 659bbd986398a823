//===- ShapeArithmetic.h - elementwise ops on symbolic numbers -----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_IR_SHAPEARITHMETIC_H
#define TENON_IR_SHAPEARITHMETIC_H

#include "ir/Dim.h"
#include "ir/OpKind.h"
#include "ir/Type.h"
#include <optional>

namespace tenon::ir {

/// A finite number known as an expression over a positive constant: what an
/// element of a shape computation is, also where it passes through floats
/// (`floor(cast(n) / 2)`).
struct Number {
  Dim numerator;
  int64_t denominator = 1;

  bool isInteger() const { return denominator == 1; }
  bool operator==(const Number &) const = default;

  /// numerator / denominator in lowest terms; nullopt for a denominator of 0 or
  /// when it is too large to compute.
  static std::optional<Number> ratio(Dim numerator, Dim denominator);
  /// A float, if it is finite and a small fraction of a power of two.
  static std::optional<Number> fromFloat(double value);
  /// The value, if no symbol is in it.
  std::optional<double> constant() const;
};

/// The result of an elementwise op other than cast on one element of each
/// operand, as far as it is provable: `equal` and `less` of sizes that differ
/// whatever the symbols are, `where` on a known condition or on equal branches,
/// products with 0. \p result is the type of the result.
std::optional<Number>
applyElementwise(OpKind kind, llvm::ArrayRef<std::optional<Number>> operands,
                 ElementType operand, ElementType result);

/// A cast from \p from to \p to.
std::optional<Number> applyCast(const Number &x, ElementType from,
                                ElementType to);

} // namespace tenon::ir

#endif // TENON_IR_SHAPEARITHMETIC_H
