//===- DimImpl.h - how dimension expressions are stored ------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Private to Dim*.cpp. A polynomial (DimNode) is a sorted list of terms over
/// atoms; both are interned in one pool and never freed. Terms are in graded
/// lexicographic order, largest first, which is also the order for division:
/// `batch * seq + past + 1`.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_IR_DIMIMPL_H
#define TENON_IR_DIMIMPL_H

#include "ir/Dim.h"
#include <string>

namespace tenon::ir {

/// Limits past which an expression becomes Dim::overflow().
inline constexpr unsigned maxDimTerms = 256;
inline constexpr unsigned maxDimDegree = 32;
/// Nesting of function applications.
inline constexpr unsigned maxDimDepth = 32;
/// Atoms and terms, counted as in print.
inline constexpr unsigned maxDimSize = 16384;

/// Inclusive bounds for all non-negative symbols; nullopt is unbounded.
struct DimBounds {
  std::optional<int64_t> low, high;
};

struct AtomNode : Dim::Atom {
  uint64_t hash = 0;
  DimBounds bounds;
  unsigned depth = 0, size = 1;
  std::string name;
};

using DimTerms = llvm::SmallVector<Dim::Term, 2>;

struct DimNode {
  DimTerms terms;
  uint64_t hash = 0;
  DimBounds bounds;
  unsigned depth = 0, size = 0;
};

/// Reaches into Dim for the functions of Dim*.cpp.
struct DimPool {
  static const DimNode *node(Dim dim) { return dim.node; }
  static Dim dim(const DimNode *node) { return Dim::fromNode(node); }
};

inline const AtomNode *impl(const Dim::Atom *atom) {
  return static_cast<const AtomNode *>(atom);
}

/// Orders monomials: higher degree first, then by their atoms.
int compareMonomials(llvm::ArrayRef<const Dim::Atom *> a,
                     llvm::ArrayRef<const Dim::Atom *> b);
/// Sorts, merges and interns \p terms (their atoms sorted).
Dim makePolynomial(DimTerms terms);
/// A polynomial of one term.
Dim makeTerm(int64_t coefficient, llvm::ArrayRef<const Dim::Atom *> atoms);
/// f(a, b) as an atom, without simplifying.
Dim makeAtom(DimFunc f, Dim a, Dim b);
/// f(a, b) of integers; nullopt on overflow, division by zero, or a broadcast
/// of sizes that differ.
std::optional<int64_t> evaluateFunc(DimFunc f, int64_t a, int64_t b);
/// Bounds of f over operands with bounds.
DimBounds boundsOf(DimFunc f, Dim a, Dim b);
llvm::StringRef dimFuncName(DimFunc f);

} // namespace tenon::ir

#endif // TENON_IR_DIMIMPL_H
