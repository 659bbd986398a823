//===- Pattern.cpp - matching by continuations ---------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

/// \file
/// Each node matches a value and then calls what is left of the match (`next`).
/// Only when that fails too does a node undo its captures and try its next
/// choice, so every combination of choices is tried before a match fails. The
/// depth of the recursion is that of the pattern, never that of the graph.

#include "ir/match/Pattern.h"
#include "ir/match/Rewriter.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <utility>

using namespace tenon::ir;
using llvm::ArrayRef;

namespace tenon::ir::detail {

using Next = llvm::function_ref<bool()>;

/// What one attempt has matched and captured so far.
struct MatchState {
  llvm::SmallVector<Op *, 8> ops;
  llvm::SmallVector<bool, 8> opIsShared;
  /// Captured variables; a second capture means equality.
  llvm::SmallVector<const void *, 8> bound;
  unsigned sharedDepth = 0;
  /// A value whose result number an m_Result has already checked.
  Value *resultChecked = nullptr;
  Explanation *why = nullptr;
  bool explained = false;

  bool isBound(const void *slot) const {
    return llvm::is_contained(bound, slot);
  }

  /// Records why this attempt fails if it came further than those before.
  bool fail(llvm::function_ref<std::string()> reason) {
    if (why && (!explained || ops.size() > why->matchedOps)) {
      why->reason = reason();
      why->matchedOps = ops.size();
      explained = true;
    }
    return false;
  }
};

class PatternNode {
public:
  virtual ~PatternNode() = default;
  virtual bool match(MatchState &state, Value *value, Next next) const = 0;
  /// Clears captured variables before a match.
  virtual void reset() const {}
  virtual bool isRest() const { return false; }
};

} // namespace tenon::ir::detail

using detail::MatchState;
using detail::Next;
using detail::PatternNode;

namespace {

std::string describeOrNone(Value *value) {
  return value ? describe(*value) : "a missing operand";
}

template <class Node, class... A> Pattern make(A &&...arguments) {
  return Pattern(std::make_shared<Node>(std::forward<A>(arguments)...));
}

class AnyNode final : public PatternNode {
public:
  bool match(MatchState &state, Value *value, Next next) const override {
    if (!value)
      return state.fail([] { return std::string("an operand is missing"); });
    return next();
  }
};

class NoneNode final : public PatternNode {
public:
  bool match(MatchState &state, Value *value, Next next) const override {
    if (value)
      return state.fail(
          [&] { return "there is an operand " + describe(*value); });
    return next();
  }
};

class RestNode final : public PatternNode {
public:
  bool match(MatchState &, Value *, Next next) const override { return next(); }
  bool isRest() const override { return true; }
};

class IsNode final : public PatternNode {
public:
  explicit IsNode(Value *value) : wanted(value) {}
  bool match(MatchState &state, Value *value, Next next) const override {
    if (value != wanted)
      return state.fail([&] {
        return describeOrNone(value) + " is not " + describe(*wanted);
      });
    return next();
  }

private:
  Value *wanted;
};

/// Captures a variable for the time of `next`, or compares where it is captured
/// already.
template <class T>
bool capture(MatchState &state, T *slot, T found, Next next,
             llvm::function_ref<bool(const T &, const T &)> same,
             llvm::function_ref<std::string()> differs) {
  if (state.isBound(slot))
    return same(*slot, found) ? next() : state.fail(differs);
  state.bound.push_back(slot);
  *slot = found;
  if (next())
    return true;
  *slot = T();
  state.bound.pop_back();
  return false;
}

class ValNode final : public PatternNode {
public:
  ValNode(Value *&slot, std::optional<Pattern> inner)
      : slot(&slot), inner(std::move(inner)) {}
  bool match(MatchState &state, Value *value, Next next) const override {
    if (!value)
      return state.fail([] { return std::string("an operand is missing"); });
    auto differs = [&] {
      return describe(*value) + " is not the same value as " + describe(**slot);
    };
    return capture<Value *>(
        state, slot, value,
        [&] {
          return inner ? inner->impl().match(state, value, next) : next();
        },
        [](Value *const &a, Value *const &b) { return a == b; }, differs);
  }
  void reset() const override {
    *slot = nullptr;
    if (inner)
      inner->impl().reset();
  }

private:
  Value **slot;
  std::optional<Pattern> inner;
};

class BindOpNode final : public PatternNode {
public:
  BindOpNode(Op *&slot, Pattern inner) : slot(&slot), inner(std::move(inner)) {}
  bool match(MatchState &state, Value *value, Next next) const override {
    if (!value || !value->def())
      return state.fail([&] {
        return describeOrNone(value) + " is not the result of an op";
      });
    auto differs = [&] {
      return describe(*value) + " is not " + describe(**slot);
    };
    return capture<Op *>(
        state, slot, value->def(),
        [&] { return inner.impl().match(state, value, next); },
        [](Op *const &a, Op *const &b) { return a == b; }, differs);
  }
  void reset() const override {
    *slot = nullptr;
    inner.impl().reset();
  }

private:
  Op **slot;
  Pattern inner;
};

class ConstNode final : public PatternNode {
public:
  explicit ConstNode(ConstantRef *slot) : slot(slot) {}
  bool match(MatchState &state, Value *value, Next next) const override {
    Op *op = value ? value->def(OpKind::Const) : nullptr;
    if (!op)
      return state.fail(
          [&] { return describeOrNone(value) + " is not a constant"; });
    if (!slot)
      return next();
    return capture<ConstantRef>(
        state, slot, op->attrs<ConstAttrs>().value, next,
        [](const ConstantRef &a, const ConstantRef &b) {
          return a->equals(*b);
        },
        [&] { return describe(*value) + " is another constant"; });
  }
  void reset() const override {
    if (slot)
      slot->reset();
  }

private:
  ConstantRef *slot;
};

/// The value of a constant with one element.
std::optional<double> oneElement(Value *value) {
  Op *op = value ? value->def(OpKind::Const) : nullptr;
  if (!op)
    return std::nullopt;
  const Constant &constant = *op->attrs<ConstAttrs>().value;
  if (constant.numElements() != 1)
    return std::nullopt;
  return constant.floatAt(0);
}

class SplatNode final : public PatternNode {
public:
  SplatNode(double wanted, double tolerance)
      : wanted(wanted), tolerance(tolerance) {}
  bool match(MatchState &state, Value *value, Next next) const override {
    std::optional<double> found = oneElement(value);
    if (!found)
      return state.fail(
          [&] { return describeOrNone(value) + " is not a scalar constant"; });
    if (*found != wanted &&
        !(std::abs(*found - wanted) <= tolerance * std::abs(wanted)))
      return state.fail([&] {
        return llvm::formatv("{0} is {1}, not {2}", describe(*value), *found,
                             wanted)
            .str();
      });
    return next();
  }

private:
  double wanted, tolerance;
};

class SplatSlotNode final : public PatternNode {
public:
  explicit SplatSlotNode(double &slot) : slot(&slot) {}
  bool match(MatchState &state, Value *value, Next next) const override {
    std::optional<double> found = oneElement(value);
    if (!found)
      return state.fail(
          [&] { return describeOrNone(value) + " is not a scalar constant"; });
    return capture<double>(
        state, slot, *found, next,
        [](const double &a, const double &b) { return a == b; },
        [&] { return describe(*value) + " is another constant"; });
  }
  void reset() const override { *slot = 0; }

private:
  double *slot;
};

class AnyOfNode final : public PatternNode {
public:
  explicit AnyOfNode(ArrayRef<Pattern> alternatives)
      : alternatives(alternatives.begin(), alternatives.end()) {}
  bool match(MatchState &state, Value *value, Next next) const override {
    return llvm::any_of(alternatives, [&](const Pattern &p) {
      return p.impl().match(state, value, next);
    });
  }
  void reset() const override {
    for (const Pattern &p : alternatives)
      p.impl().reset();
  }

private:
  llvm::SmallVector<Pattern, 3> alternatives;
};

/// Keeps \p op in the list of matched ops for the time of \p next.
bool withMatchedOp(MatchState &state, Op *op, Next next) {
  if (llvm::is_contained(state.ops, op))
    return next();
  state.ops.push_back(op);
  state.opIsShared.push_back(state.sharedDepth > 0);
  if (next())
    return true;
  state.ops.pop_back();
  state.opIsShared.pop_back();
  return false;
}

/// m_Opt (limit 1) and m_Chain.
class ChainNode final : public PatternNode {
public:
  ChainNode(ArrayRef<OpKind> kinds, unsigned limit, Pattern inner)
      : kinds(kinds.begin(), kinds.end()), limit(limit),
        inner(std::move(inner)) {}
  bool match(MatchState &state, Value *value, Next next) const override {
    return matchFrom(state, value, limit, next);
  }
  void reset() const override { inner.impl().reset(); }

private:
  bool matchFrom(MatchState &state, Value *value, unsigned left,
                 Next next) const {
    if (inner.impl().match(state, value, next))
      return true;
    Op *op = value ? value->def() : nullptr;
    if (!left || !op || !llvm::is_contained(kinds, op->kind()))
      return false;
    return withMatchedOp(state, op, [&] {
      return matchFrom(state, op->operand(0), left - 1, next);
    });
  }
  llvm::SmallVector<OpKind, 2> kinds;
  unsigned limit;
  Pattern inner;
};

class IfNode final : public PatternNode {
public:
  IfNode(Pattern inner, std::function<bool(Value *)> predicate,
         std::string reason)
      : inner(std::move(inner)), predicate(std::move(predicate)),
        reason(std::move(reason)) {}
  bool match(MatchState &state, Value *value, Next next) const override {
    return inner.impl().match(state, value, [&] {
      if (!predicate(value))
        return state.fail([&] { return describe(*value) + ": " + reason; });
      return next();
    });
  }
  void reset() const override { inner.impl().reset(); }

private:
  Pattern inner;
  std::function<bool(Value *)> predicate;
  std::string reason;
};

class SharedNode final : public PatternNode {
public:
  explicit SharedNode(Pattern inner) : inner(std::move(inner)) {}
  bool match(MatchState &state, Value *value, Next next) const override {
    ++state.sharedDepth;
    bool matched = inner.impl().match(state, value, [&] {
      --state.sharedDepth;
      bool rest = next();
      ++state.sharedDepth;
      return rest;
    });
    --state.sharedDepth;
    return matched;
  }
  void reset() const override { inner.impl().reset(); }

private:
  Pattern inner;
};

class ResultNode final : public PatternNode {
public:
  ResultNode(unsigned index, Pattern inner)
      : index(index), inner(std::move(inner)) {}
  bool match(MatchState &state, Value *value, Next next) const override {
    if (!value || value->index() != index)
      return state.fail([&] {
        return describeOrNone(value) + " is not result number " +
               std::to_string(index);
      });
    // Only for \p inner at this value: not for what follows, nor for another
    // alternative.
    Value *before = std::exchange(state.resultChecked, value);
    bool matched = inner.impl().match(state, value, [&] {
      Value *mine = std::exchange(state.resultChecked, before);
      bool rest = next();
      state.resultChecked = mine;
      return rest;
    });
    state.resultChecked = before;
    return matched;
  }
  void reset() const override { inner.impl().reset(); }

private:
  unsigned index;
  Pattern inner;
};

class OpNode final : public PatternNode {
public:
  OpNode(ArrayRef<OpKind> kinds, ArrayRef<Pattern> patterns)
      : kinds(kinds.begin(), kinds.end()),
        operands(patterns.begin(), patterns.end()) {
    if (!operands.empty() && operands.back().impl().isRest()) {
      operands.pop_back();
      hasRest = true;
    }
  }

  bool match(MatchState &state, Value *value, Next next) const override {
    Op *op = value ? value->def() : nullptr;
    if (!op || !llvm::is_contained(kinds, op->kind()))
      return state.fail([&] { return wrongKind(value); });
    if (value->index() != 0 && state.resultChecked != value)
      return state.fail(
          [&] { return describe(*value) + " is not the first result"; });
    return matchOp(state, *op, next);
  }

  bool matchOp(MatchState &state, Op &op, Next next) const {
    if (!hasRest && op.region())
      return state.fail([&] { return describe(op) + " has an epilogue"; });
    if (!hasRest && countOperands(op) > operands.size())
      return state.fail([&] {
        return llvm::formatv("{0} has {1} operands, not {2}", describe(op),
                             countOperands(op), operands.size())
            .str();
      });
    return withMatchedOp(state, &op, [&] {
      if (matchOperands(state, op, 0, /*swapped=*/false, next))
        return true;
      return is(op, Commutative) && operands.size() == 2 &&
             op.operand(0) != op.operand(1) &&
             matchOperands(state, op, 0, /*swapped=*/true, next);
    });
  }

  bool isOneOf(OpKind kind) const { return llvm::is_contained(kinds, kind); }
  void reset() const override {
    for (const Pattern &p : operands)
      p.impl().reset();
  }

private:
  /// Without operands left out at the end.
  static unsigned countOperands(Op &op) {
    unsigned n = op.numOperands();
    while (n && !op.operand(n - 1))
      --n;
    return n;
  }

  bool matchOperands(MatchState &state, Op &op, unsigned i, bool swapped,
                     Next next) const {
    if (i == operands.size())
      return next();
    Value *operand = op.operand(swapped ? 1 - i : i);
    return operands[i].impl().match(state, operand, [&] {
      return matchOperands(state, op, i + 1, swapped, next);
    });
  }

  std::string wrongKind(Value *value) const {
    std::string wanted;
    for (OpKind kind : kinds) {
      if (!wanted.empty())
        wanted += " or ";
      wanted += opDef(kind).mnemonic;
    }
    return describeOrNone(value) + " is not the result of " + wanted;
  }

  llvm::SmallVector<OpKind, 2> kinds;
  llvm::SmallVector<Pattern, 4> operands;
  bool hasRest = false;
};

std::optional<Match> finish(MatchState &state, Op *root, bool matched) {
  if (!matched)
    return std::nullopt;
  Match match;
  match.root = root;
  match.ops = state.ops;
  for (auto [op, shared] : llvm::zip(state.ops, state.opIsShared))
    if (shared)
      match.shared.insert(op);
  return match;
}

} // namespace

std::optional<Match> tenon::ir::match(Value *value, const Pattern &pattern,
                                      Explanation *why) {
  MatchState state;
  state.why = why;
  pattern.impl().reset();
  bool matched = pattern.impl().match(state, value, [] { return true; });
  return finish(state, value ? value->def() : nullptr, matched);
}

std::optional<Match> tenon::ir::match(Op &op, const Pattern &pattern,
                                      Explanation *why) {
  if (op.numResults())
    return match(op.result(0), pattern, why);
  return std::nullopt;
}

Pattern tenon::ir::m_Any() { return make<AnyNode>(); }
Pattern tenon::ir::m_None() { return make<NoneNode>(); }
Pattern tenon::ir::m_Rest() { return make<RestNode>(); }
Pattern tenon::ir::m_Val(Value *&slot) {
  return make<ValNode>(slot, std::nullopt);
}
Pattern tenon::ir::m_Is(Value *value) { return make<IsNode>(value); }
Pattern tenon::ir::m_Const() { return make<ConstNode>(nullptr); }
Pattern tenon::ir::m_Const(ConstantRef &slot) { return make<ConstNode>(&slot); }
Pattern tenon::ir::m_Splat(double value, double tolerance) {
  return make<SplatNode>(value, tolerance);
}
Pattern tenon::ir::m_AnySplat(double &slot) {
  return make<SplatSlotNode>(slot);
}
Pattern tenon::ir::m_Bind(Op *&slot, Pattern pattern) {
  return make<BindOpNode>(slot, std::move(pattern));
}
Pattern tenon::ir::m_Bind(Value *&slot, Pattern pattern) {
  return make<ValNode>(slot, std::move(pattern));
}
Pattern tenon::ir::m_AnyOf(ArrayRef<Pattern> alternatives) {
  return make<AnyOfNode>(alternatives);
}
Pattern tenon::ir::m_Opt(OpKind kind, Pattern pattern) {
  return make<ChainNode>(ArrayRef<OpKind>(kind), 1, std::move(pattern));
}
Pattern tenon::ir::m_Chain(ArrayRef<OpKind> kinds, Pattern pattern) {
  return make<ChainNode>(kinds, 8, std::move(pattern));
}
Pattern tenon::ir::m_If(Pattern pattern, std::function<bool(Value *)> predicate,
                        std::string reason) {
  return make<IfNode>(std::move(pattern), std::move(predicate),
                      std::move(reason));
}
Pattern tenon::ir::m_Shared(Pattern pattern) {
  return make<SharedNode>(std::move(pattern));
}
Pattern tenon::ir::m_Result(unsigned index, Pattern pattern) {
  return make<ResultNode>(index, std::move(pattern));
}
Pattern tenon::ir::m_Op(OpKind kind, ArrayRef<Pattern> operands) {
  return make<OpNode>(ArrayRef<OpKind>(kind), operands);
}
Pattern tenon::ir::m_OpOf(ArrayRef<OpKind> kinds, ArrayRef<Pattern> operands) {
  return make<OpNode>(kinds, operands);
}
