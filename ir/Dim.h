//===- Dim.h - symbolic dimensions ---------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_IR_DIM_H
#define TENON_IR_DIM_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdint>
#include <optional>

namespace tenon::ir {

struct DimNode;
struct DimPool;

/// Functions that stay as atoms inside a polynomial when they don't simplify.
enum class DimFunc : uint8_t {
  FloorDiv, ///< floor(a / b)
  CeilDiv,  ///< ceil(a / b)
  Mod,      ///< a - b * floor(a / b)
  Min,
  Max,
  Broadcast, ///< a if b == 1, else b if a == 1, else a (they must be equal)
};

/// An integer expression over named symbols (`batch`, `past + seq`,
/// `heads * 64`): a polynomial with integer coefficients whose atoms are
/// symbols and DimFunc applications, kept in one canonical form. Expressions
/// are interned for the life of the process, so comparing and hashing are by
/// pointer, and all orders that show (printing, terms) are by structure, never
/// by address. A value type, cheap to copy; thread-safe.
///
/// Symbols stand for sizes and are never negative; expressions may be (a
/// Trilu offset, a slice start). Rules assume that an expression has a value:
/// no divisor is 0 and broadcast operands agree.
///
/// A coefficient outside 64 bits, or an expression larger than any model's
/// (see DimImpl.h), makes the one expression `overflow()`. It swallows what it
/// is combined with, never evaluates and is refused wherever ops are made, so
/// that a hostile file gives an error and neither a crash nor a wrapped size.
class Dim {
public:
  Dim() : Dim(int64_t(0)) {}
  Dim(int64_t value); // NOLINT: integers are dimensions
  /// A named symbol. Any text is allowed; what is not an identifier prints in
  /// quotes.
  static Dim symbol(llvm::StringRef name);

  static Dim overflow();
  bool isOverflow() const;

  std::optional<int64_t> constant() const;
  bool isConstant(int64_t value) const { return constant() == value; }
  /// The name, if this is a symbol and nothing more.
  std::optional<llvm::StringRef> symbolName() const;

  friend Dim operator+(Dim a, Dim b);
  friend Dim operator-(Dim a, Dim b);
  friend Dim operator*(Dim a, Dim b);
  static Dim func(DimFunc f, Dim a, Dim b);
  static Dim floorDiv(Dim a, Dim b) { return func(DimFunc::FloorDiv, a, b); }
  static Dim ceilDiv(Dim a, Dim b) { return func(DimFunc::CeilDiv, a, b); }
  static Dim mod(Dim a, Dim b) { return func(DimFunc::Mod, a, b); }
  static Dim min(Dim a, Dim b) { return func(DimFunc::Min, a, b); }
  static Dim max(Dim a, Dim b) { return func(DimFunc::Max, a, b); }
  static Dim broadcast(Dim a, Dim b) { return func(DimFunc::Broadcast, a, b); }
  /// a / b where b divides a as a polynomial (`12 * batch * seq` by
  /// `seq * 4`), else nullopt.
  static std::optional<Dim> divideExactly(Dim a, Dim b);

  bool operator==(const Dim &other) const = default;
  /// A total order by structure: the same in every run.
  static int compare(Dim a, Dim b);
  friend llvm::hash_code hash_value(Dim dim);

  /// Whether the value is provably >= \p bound for all non-negative symbols.
  bool isAtLeast(int64_t bound) const;
  /// Inclusive bounds by interval arithmetic over non-negative symbols.
  std::optional<int64_t> lowerBound() const;
  std::optional<int64_t> upperBound() const;

  using Env = llvm::function_ref<std::optional<int64_t>(llvm::StringRef)>;
  /// The value under \p env; nullopt when a symbol is unbound, on overflow or
  /// division by zero.
  std::optional<int64_t> evaluate(Env env) const;
  /// Every symbol replaced by what \p map returns for it (nullopt keeps it).
  Dim substitute(
      llvm::function_ref<std::optional<Dim>(llvm::StringRef)> map) const;
  /// Calls \p visit once for each symbol, in the order of printing.
  void collectSymbols(llvm::function_ref<void(llvm::StringRef)> visit) const;

  /// The polynomial, for code that lowers or pattern-matches expressions: a sum
  /// of terms, each coefficient * product of atoms.
  struct Atom;
  struct Term {
    int64_t coefficient;
    llvm::SmallVector<const Atom *, 2> atoms;
  };
  struct Atom {
    /// Set for a symbol.
    std::optional<llvm::StringRef> symbol;
    /// For a function application: f(a, b).
    DimFunc func;
    const DimNode *a, *b;
    Dim lhs() const;
    Dim rhs() const;
  };
  llvm::ArrayRef<Term> terms() const;

  void print(llvm::raw_ostream &os) const;

private:
  friend struct DimNode;
  friend struct DimPool;
  /// Named, because a pointer constructor would make `Dim(0)` ambiguous.
  static Dim fromNode(const DimNode *node);
  struct FromNode {};
  Dim(FromNode, const DimNode *node) : node(node) {}
  const DimNode *node;
};

llvm::raw_ostream &operator<<(llvm::raw_ostream &os, Dim dim);

/// Parses `past + 2 * seq`, `floordiv(n, 2)`, `"odd name"`; nullopt when it is
/// not a well-formed expression. Depth is limited.
std::optional<Dim> parseDim(llvm::StringRef text);
/// Takes the longest expression off the front of \p text. When there is none,
/// returns nullopt with \p text at the place that is wrong.
std::optional<Dim> parseDimPrefix(llvm::StringRef &text);

} // namespace tenon::ir

#endif // TENON_IR_DIM_H
