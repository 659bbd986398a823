//===- Rewriter.h - applying rewrite rules -------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_IR_MATCH_REWRITER_H
#define TENON_IR_MATCH_REWRITER_H

/// \file
/// Two kinds of rules, one driver.
///
/// A *fusion* (Rule) is match, judge, rewrite, kept apart: a pattern, a
/// legality check that may give a reason, and a rewrite that cannot fail. The
/// driver refuses a match whose interior values are used outside of it, names
/// the fused op's locations, and reports what was and was not done.
///
/// A *simplification* (Peephole) is a function from an op to the value that
/// replaces it, or null. It must decide before it builds anything.

#include "ir/Builder.h"
#include "ir/match/Pattern.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/Error.h"
#include <deque>
#include <functional>

namespace tenon::ir {

/// What the world outside hears of and decides about rewrites; the pass manager
/// implements it (remarks, --rewrite-limit, --explain).
class RewriteListener {
public:
  virtual ~RewriteListener() = default;
  /// Asked before each rewrite; false refuses it (--rewrite-limit).
  virtual bool allow(llvm::StringRef rule, const Op &root) { return true; }
  /// A peephole's law was applied to an op located at \p loc.
  virtual void simplified(llvm::StringRef law, const Location &loc) {}
  /// \p ops, located at \p loc, were fused.
  virtual void applied(llvm::StringRef rule, const Location &loc,
                       llvm::ArrayRef<Op *> ops) {}
  /// \p root was a candidate of \p rule, but \p reason.
  virtual void missed(llvm::StringRef rule, const Location &loc,
                      llvm::StringRef reason) {}
};

/// All mutation goes through a Rewriter, which keeps the worklist up to date.
class Rewriter {
public:
  Rewriter(Module &module, Func &func) : module(module), func(func) {}

  Module &module;
  Func &func;

  /// A builder that inserts before \p op, at \p op's location.
  Builder before(Op &op);
  /// A builder that inserts before the root of \p match; what it makes is
  /// located at all matched ops.
  Builder at(const Match &match);

  /// \p by broadcast to the shape of \p op's result, where a constant of
  /// another rank or size that a rule has taken up is what gave it that shape.
  Value *inShapeOf(Op &op, Value *by);

  /// Makes \p by take the place of \p value everywhere, then erases ops that
  /// became dead. Where the types differ (an equal dimension in another form),
  /// those of all that depends on it are inferred anew.
  void replace(Value *value, Value *by);
  /// As above for each result of \p op.
  void replaceOp(Op &op, llvm::ArrayRef<Value *> by);
  void setOperand(Op &op, unsigned i, Value *value);
  /// Erases \p op and, while nothing uses them, what it used.
  void eraseIfDead(Op &op);

  /// A location that covers \p ops, in graph order.
  static Location mergedLocation(llvm::ArrayRef<Op *> ops);

private:
  friend class RewriteDriver;
  void enqueue(Op *op);
  void enqueueUsers(Value *value);
  /// The next op to look at, or null when all is done.
  Op *pop();
  /// Finds what was built since the last call.
  void collectNew(llvm::SmallVectorImpl<Op *> &created);
  void updateTypes(Value *changed);
  /// Erases \p op, which nothing uses.
  void erase(Op &op);
  /// Erases what a refused rewrite built and leaves the rest as it was.
  void discard(llvm::SmallVectorImpl<Op *> &created);

  std::deque<Op *> queue;
  llvm::DenseSet<Op *> queued;
  /// Where builders insert, with the op that came before it then.
  llvm::SmallVector<std::pair<Op *, Op *>, 2> insertionPoints;
  /// Told of each op that is erased.
  std::function<void(Op *)> onErase;
};

/// A fusion. Write the four parts in this order in its file: the law with its
/// picture and what is not matched; pattern; legality; rewrite.
class Rule {
public:
  virtual ~Rule() = default;
  /// The pass's flag: "fuse-layer-norm".
  virtual llvm::StringRef name() const = 0;
  /// Matched at the first result of every op. Captures are members of the
  /// derived class.
  virtual Pattern pattern() = 0;
  /// With how many matched ops a failed match counts as a candidate that
  /// deserves a remark.
  virtual unsigned candidateAfter() const { return 2; }
  /// Why this match must not be rewritten, or nullopt. May fill members that
  /// rewrite uses. Changes nothing.
  virtual std::optional<std::string> legality(const Match &match) {
    return std::nullopt;
  }
  /// Builds one op (and what feeds it) with \p rewriter.at(match) and returns
  /// the value that replaces the root's result.
  virtual Value *rewrite(const Match &match, Rewriter &rewriter) = 0;
};

/// A simplification. Returns the value that replaces \p op's first result (the
/// op must have one result), or null when the law does not apply.
using Peephole = Value *(*)(Op &op, Rewriter &rewriter);

/// Peepholes by the kind of op that they look at.
class PeepholeSet {
public:
  /// \p law names it in --explain and debugging: "x * 1 = x".
  void add(OpKind kind, llvm::StringRef law, Peephole fn) {
    table[static_cast<unsigned>(kind)].push_back({law, fn});
  }
  void add(llvm::ArrayRef<OpKind> kinds, llvm::StringRef law, Peephole fn) {
    for (OpKind kind : kinds)
      add(kind, law, fn);
  }
  struct Entry {
    llvm::StringRef law;
    Peephole fn;
  };
  llvm::ArrayRef<Entry> of(OpKind kind) const {
    return table[static_cast<unsigned>(kind)];
  }

private:
  llvm::SmallVector<Entry, 2> table[numOpKinds];
};

/// Applies \p rules at every op of \p func until none matches, in order of the
/// rules at each op and of the ops in the block. Returns whether anything
/// changed; an error when it does not end (a bug in a rule).
llvm::Expected<bool> applyRules(Module &module, Func &func,
                                llvm::ArrayRef<Rule *> rules,
                                RewriteListener *listener = nullptr);
llvm::Expected<bool> applyPeepholes(Module &module, Func &func,
                                    const PeepholeSet &peepholes,
                                    RewriteListener *listener = nullptr);

/// Why \p match may not be replaced: an op of it (not its root, not shared)
/// has a result that is used outside. nullopt when it is closed.
std::optional<std::string> escapes(const Match &match, const Func &func);

/// How an op or a value is called in messages: "'enc/Add_3' (add)", "input
/// 'ids'".
std::string describe(const Op &op);
std::string describe(const Value &value);

} // namespace tenon::ir

#endif // TENON_IR_MATCH_REWRITER_H
