//===- Pattern.h - patterns over the graph -------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_IR_MATCH_PATTERN_H
#define TENON_IR_MATCH_PATTERN_H

/// \file
/// Patterns are run-time values built from constructors that Ops.def generates,
/// one m_<Name> for each op:
///
/// \code
///   Value *x = nullptr;
///   Op *softmax = nullptr;
///   double scale = 1;
///   Pattern p = m_MatMul(
///       m_Bind(softmax, m_Softmax(m_Mul(m_Val(x), m_Splat(scale)))), m_Any());
///   if (std::optional<Match> m = match(value, p)) ... // x, softmax, scale set
/// \endcode
///
/// Commutative ops try both orders and every choice is undone when what follows
/// fails, so the order in which a pattern is written never matters. Captured
/// variables must outlive the pattern; `match` resets them, and they are
/// meaningful only after it succeeded. A failed match can say which condition
/// failed (Explanation).

#include "ir/Op.h"
#include "ir/OpDef.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallVector.h"
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace tenon::ir {

/// How far a failed match came, and what stopped it there. Of all alternatives
/// the one that matched most ops is kept, the first among equals.
struct Explanation {
  /// For the user: "operand 'b' of 'enc/Add_3' (add) is the result of
  /// 'enc/Mul' (mul), not of softmax".
  std::string reason;
  /// How many ops had matched.
  unsigned matchedOps = 0;
};

/// A successful match.
struct Match {
  Op *root = nullptr;
  /// Every op that an m_<Op> pattern matched, the root first, each once.
  llvm::SmallVector<Op *, 8> ops;
  /// Those of `ops` under an m_Shared: uses elsewhere are allowed.
  llvm::SmallPtrSet<Op *, 4> shared;

  bool contains(const Op *op) const { return llvm::is_contained(ops, op); }
};

namespace detail {
class PatternNode;
} // namespace detail

/// A pattern for one value. Cheap to copy.
class Pattern {
public:
  explicit Pattern(std::shared_ptr<const detail::PatternNode> node)
      : node(std::move(node)) {}
  const detail::PatternNode &impl() const { return *node; }

private:
  std::shared_ptr<const detail::PatternNode> node;
};

/// Matches \p value against \p pattern. \p why, if given, is filled on failure.
std::optional<Match> match(Value *value, const Pattern &pattern,
                           Explanation *why = nullptr);
/// Matches the first result of \p op; an op without results matches nothing.
std::optional<Match> match(Op &op, const Pattern &pattern,
                           Explanation *why = nullptr);

//===----------------------------------------------------------------------===//
// Leaves
//===----------------------------------------------------------------------===//

/// Any value at all (not a missing optional operand).
Pattern m_Any();
/// An optional operand that is left out.
Pattern m_None();
/// Any value; captured. Where \p slot was captured before in the same match,
/// the very same value.
Pattern m_Val(Value *&slot);
/// Exactly \p value.
Pattern m_Is(Value *value);
/// Any constant.
Pattern m_Const();
Pattern m_Const(ConstantRef &slot);
/// A constant with one element (of rank 0, [1], [1, 1] ...) whose value is
/// \p value up to a relative difference of \p tolerance, as different spellings
/// of one number in f32 are.
Pattern m_Splat(double value, double tolerance = 1e-6);
/// A constant with one element; its value is captured. A second use in the same
/// pattern must have an equal value.
Pattern m_AnySplat(double &slot);

//===----------------------------------------------------------------------===//
// Combinators
//===----------------------------------------------------------------------===//

/// \p pattern, whose op is captured (for its attributes, location, type).
Pattern m_Bind(Op *&slot, Pattern pattern);
/// \p pattern, and its value captured; for the equality of m_Val too.
Pattern m_Bind(Value *&slot, Pattern pattern);
/// The first alternative with which all of the rest matches too.
Pattern m_AnyOf(llvm::ArrayRef<Pattern> alternatives);
template <class... P>
Pattern m_AnyOf(Pattern first, Pattern second, P... rest) {
  return m_AnyOf(llvm::ArrayRef<Pattern>({first, second, rest...}));
}
/// \p pattern behind at most one op of kind \p kind (its operand 0).
Pattern m_Opt(OpKind kind, Pattern pattern);
/// \p pattern behind any number (at most 8) of ops of the \p kinds. Takes as
/// few as possible first.
Pattern m_Chain(llvm::ArrayRef<OpKind> kinds, Pattern pattern);
/// \p pattern where \p predicate holds of the value; else \p reason explains:
/// "the row is not the last dimension".
Pattern m_If(Pattern pattern, std::function<bool(Value *)> predicate,
             std::string reason);
/// \p pattern, whose ops may also be used outside of the match: masks, shared
/// scales. They are not erased while they have uses.
Pattern m_Shared(Pattern pattern);
/// \p pattern on an op whose result number \p index is matched (others match
/// result 0).
Pattern m_Result(unsigned index, Pattern pattern);
/// An op of kind \p kind with exactly these operands and no region.
Pattern m_Op(OpKind kind, llvm::ArrayRef<Pattern> operands);
/// An op of any of \p kinds with exactly these operands.
Pattern m_OpOf(llvm::ArrayRef<OpKind> kinds, llvm::ArrayRef<Pattern> operands);

/// As the last operand of an op pattern: any further operands, and a region.
Pattern m_Rest();

namespace detail {
/// How many operands an Ops.def spec names, and how many of them are needed.
struct OperandCount {
  unsigned least = 0, most = 0;
};
constexpr OperandCount countOperands(const char *spec) {
  OperandCount count;
  bool inName = false, optional = false;
  auto finish = [&] {
    if (inName) {
      ++count.most;
      count.least += !optional;
    }
    inName = optional = false;
  };
  for (; *spec; ++spec) {
    if (*spec == ',')
      finish();
    else if (*spec == '?')
      optional = true;
    else if (*spec == '.') {
      optional = true;
      count.most = 1000; // variadic: any number
    } else if (*spec != ' ')
      inName = true;
  }
  finish();
  return count;
}
} // namespace detail

// m_<Name>(operand patterns...): fewer than needed or more than there can be
// do not compile. Operands without a pattern must be left out in the graph.
#define TN_OP(Name, mnemonic, operands, results, ...)                          \
  template <class... P> Pattern m_##Name(P... patterns) {                      \
    constexpr detail::OperandCount count = detail::countOperands(operands);    \
    static_assert(sizeof...(P) >= count.least,                                 \
                  "too few operand patterns for " mnemonic);                   \
    static_assert(sizeof...(P) <= count.most + 1,                              \
                  "too many operand patterns for " mnemonic);                  \
    if constexpr (sizeof...(P) == 0)                                           \
      return m_Op(OpKind::Name, {});                                           \
    else                                                                       \
      return m_Op(OpKind::Name, {patterns...});                                \
  }
#include "ir/ops/Ops.def"

} // namespace tenon::ir

#endif // TENON_IR_MATCH_PATTERN_H
