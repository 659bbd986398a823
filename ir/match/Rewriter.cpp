//===- Rewriter.cpp - applying rewrite rules -----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/match/Rewriter.h"
#include "ir/support/Diag.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace tenon;
using namespace tenon::ir;
using llvm::ArrayRef;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

std::string ir::describe(const Op &op) {
  std::string kind = " (" + opDef(op).mnemonic.str() + ")";
  if (!op.loc.empty())
    return "'" + op.loc.name().str() + "'" + kind;
  if (op.numResults() && !op.result(0)->name.empty())
    return "'%" + op.result(0)->name + "'" + kind;
  return "an unnamed op" + kind;
}

std::string ir::describe(const Value &value) {
  Op *op = value.def();
  if (!op)
    return "argument '" + value.name + "'";
  if (op->kind() != OpKind::Const)
    return describe(*op);
  const Constant &constant = *op->attrs<ConstAttrs>().value;
  if (constant.numElements() == 1)
    return llvm::formatv("constant {0}", constant.floatAt(0)).str();
  if (!constant.name().empty())
    return "constant '" + constant.name().str() + "'";
  return "a constant";
}

std::optional<std::string> ir::escapes(const Match &match, const Func &func) {
  for (Op *op : match.ops) {
    if (op == match.root || match.shared.contains(op))
      continue;
    for (Value *result : op->results())
      for (const Use &use : result->uses()) {
        if (match.contains(use.op))
          continue;
        std::string reason = "the value of " + describe(*op) + " is also ";
        if (use.op->kind() == OpKind::Return && use.op->block() == &func.body)
          return reason + "the graph output '" + func.outputs[use.index].name +
                 "'";
        return reason + "used by " + describe(*use.op);
      }
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Rewriter
//===----------------------------------------------------------------------===//

Builder Rewriter::before(Op &op) {
  insertionPoints.push_back({&op, op.prev()});
  Builder builder = Builder::before(&op);
  builder.loc = op.loc;
  builder.func = &func;
  return builder;
}

Builder Rewriter::at(const Match &match) {
  Builder builder = before(*match.root);
  builder.loc = mergedLocation(match.ops);
  return builder;
}

Location Rewriter::mergedLocation(ArrayRef<Op *> ops) {
  llvm::SmallVector<Op *, 8> sorted(ops);
  llvm::sort(sorted, [](Op *a, Op *b) { return a->isBefore(b); });
  Location loc;
  for (Op *op : sorted)
    loc.merge(op->loc);
  return loc;
}

Value *Rewriter::inShapeOf(Op &op, Value *by) {
  ShapeRef wanted = op.result(0)->shape(), found = by->shape();
  bool same = wanted.size() == found.size();
  for (size_t i = 0; same && i != wanted.size(); ++i)
    same = found[i].constant() != 1 || wanted[i].constant() == 1;
  if (same)
    return by;
  ShapeAttrs attrs;
  attrs.shape.assign(wanted.begin(), wanted.end());
  return before(op).buildBroadcast({by}, std::move(attrs));
}

void Rewriter::enqueue(Op *op) {
  if (op && queued.insert(op).second)
    queue.push_back(op);
}

void Rewriter::enqueueUsers(Value *value) {
  for (const Use &use : value->uses())
    enqueue(use.op);
}

Op *Rewriter::pop() {
  while (!queue.empty()) {
    Op *op = queue.front();
    queue.pop_front();
    // An op that was erased meanwhile is no longer in the set.
    if (queued.erase(op))
      return op;
  }
  return nullptr;
}

void Rewriter::collectNew(llvm::SmallVectorImpl<Op *> &created) {
  for (auto [point, before] : insertionPoints)
    for (Op *op = point->prev(); op && op != before; op = op->prev())
      if (!llvm::is_contained(created, op))
        created.push_back(op);
  insertionPoints.clear();
  for (Op *op : llvm::reverse(created))
    enqueue(op);
}

void Rewriter::updateTypes(Value *changed) {
  llvm::SmallVector<Value *, 8> pending{changed};
  while (!pending.empty()) {
    Value *value = pending.pop_back_val();
    llvm::SmallVector<Op *, 4> users;
    for (const Use &use : value->uses())
      users.push_back(use.op);
    for (Op *user : users) {
      InferContext context;
      if (llvm::Error error = inferOp(*user, context)) {
        llvm::consumeError(std::move(error));
        assert(false && "a replacement's type does not fit its users");
        continue;
      }
      for (auto [result, type] : llvm::zip(user->results(), context.results))
        if (result->type != type) {
          result->type = type;
          pending.push_back(result);
        }
    }
  }
}

void Rewriter::replace(Value *value, Value *by) {
  if (value == by)
    return;
  assert(value->element() == by->element() && value->rank() == by->rank() &&
         "a replacement must have the same type");
  enqueueUsers(value);
  enqueue(by->def());
  bool otherType = value->type != by->type;
  if (by->name.empty())
    by->name = value->name;
  value->replaceAllUsesWith(by);
  if (otherType)
    updateTypes(by);
  if (Op *op = value->def())
    eraseIfDead(*op);
}

void Rewriter::replaceOp(Op &op, ArrayRef<Value *> by) {
  assert(op.numResults() == by.size() && "one value for each result");
  llvm::SmallVector<Value *, 2> results = op.results();
  for (size_t i = 0; i + 1 < by.size(); ++i) {
    enqueueUsers(results[i]);
    results[i]->replaceAllUsesWith(by[i]);
  }
  replace(results.back(), by.back());
}

void Rewriter::setOperand(Op &op, unsigned i, Value *value) {
  Value *old = op.operand(i);
  if (old == value)
    return;
  op.setOperand(i, value);
  enqueue(&op);
  if (value && old && old->type != value->type)
    updateTypes(value);
  if (old && old->def())
    eraseIfDead(*old->def());
}

void Rewriter::eraseIfDead(Op &root) {
  llvm::SmallVector<Op *, 8> pending{&root};
  llvm::DenseSet<Op *> gone;
  while (!pending.empty()) {
    Op *op = pending.pop_back_val();
    if (gone.contains(op) || op->hasUses() || is(*op, Terminator) ||
        is(*op, SideEffect))
      continue;
    for (Value *operand : op->operands())
      if (operand && operand->def()) {
        pending.push_back(operand->def());
        // With fewer uses, more laws may apply to what is left.
        enqueue(operand->def());
      }
    gone.insert(op);
    erase(*op);
  }
}

void Rewriter::erase(Op &op) {
  queued.erase(&op);
  llvm::erase_if(insertionPoints,
                 [&](const auto &point) { return point.first == &op; });
  for (auto &[point, before] : insertionPoints)
    if (before == &op)
      before = op.prev();
  if (onErase)
    onErase(&op);
  op.erase();
}

void Rewriter::discard(llvm::SmallVectorImpl<Op *> &created) {
  // Users first; one op at a time, because each is in the list itself.
  llvm::sort(created, [](Op *a, Op *b) { return b->isBefore(a); });
  for (Op *op : created)
    if (!op->hasUses())
      erase(*op);
  created.clear();
}

//===----------------------------------------------------------------------===//
// The drivers
//===----------------------------------------------------------------------===//

namespace tenon::ir {

/// The worklist that both kinds of rules share.
class RewriteDriver {
public:
  RewriteDriver(Module &module, Func &func, RewriteListener *listener)
      : rewriter(module, func), listener(listener) {
    for (Op &op : func.body)
      rewriter.enqueue(&op);
    limit = 1000 + 64 * func.body.size();
  }

  /// Calls \p visit with each op of the worklist until it is empty. `visit`
  /// returns the name of what it applied, or "".
  llvm::Expected<bool> run(llvm::function_ref<StringRef(Op &)> visit) {
    uint64_t count = 0;
    while (Op *op = rewriter.pop()) {
      StringRef applied = visit(*op);
      if (applied.empty())
        continue;
      if (++count > limit)
        return userError("internal error: rewriting does not end; the last "
                         "rule was '{0}'",
                         applied);
    }
    return count > 0;
  }

  bool allow(StringRef rule, const Op &root) {
    return !listener || listener->allow(rule, root);
  }

  /// Erases what a refused rewrite built.
  void discard(llvm::SmallVectorImpl<Op *> &created) {
    rewriter.discard(created);
  }

  /// Lists what was built since the last call.
  llvm::SmallVector<Op *, 8> created() {
    llvm::SmallVector<Op *, 8> ops;
    rewriter.collectNew(ops);
    return ops;
  }

  void onErase(std::function<void(Op *)> fn) {
    rewriter.onErase = std::move(fn);
  }

  Rewriter rewriter;
  RewriteListener *listener;

private:
  uint64_t limit;
};

} // namespace tenon::ir

namespace {

/// Why a candidate was not fused; of several rules, that which came furthest.
struct Miss {
  StringRef rule;
  std::string reason;
  unsigned progress;
};

/// Applies fusion rules and collects what to remark.
class RuleApplier {
public:
  RuleApplier(Module &module, Func &func, ArrayRef<Rule *> rules,
              RewriteListener *listener)
      : driver(module, func, listener), func(func), rules(rules) {
    for (Rule *rule : rules)
      patterns.push_back(rule->pattern());
    driver.onErase([this](Op *op) { misses.erase(op); });
  }

  llvm::Expected<bool> run() {
    llvm::Expected<bool> changed =
        driver.run([this](Op &op) { return visit(op); });
    if (!driver.listener)
      return changed;
    for (Op &op : func.body)
      if (auto miss = misses.find(&op); miss != misses.end())
        driver.listener->missed(miss->second.rule, op.loc, miss->second.reason);
    return changed;
  }

private:
  StringRef visit(Op &op) {
    if (!op.numResults())
      return "";
    misses.erase(&op);
    for (auto [rule, pattern] : llvm::zip(rules, patterns))
      if (apply(op, *rule, pattern))
        return rule->name();
    return "";
  }

  void miss(Op &op, Rule &rule, std::string reason, unsigned progress) {
    Miss &known = misses[&op];
    if (known.rule.empty() || known.progress < progress ||
        known.rule == rule.name())
      known = {rule.name(), std::move(reason), progress};
  }

  bool apply(Op &op, Rule &rule, const Pattern &pattern) {
    Explanation why;
    std::optional<Match> found = match(op, pattern, &why);
    if (!found) {
      if (why.matchedOps >= rule.candidateAfter())
        miss(op, rule, why.reason, why.matchedOps);
      return false;
    }
    std::optional<std::string> reason = rule.legality(*found);
    if (!reason)
      reason = escapes(*found, func);
    if (reason) {
      miss(op, rule, *reason, found->ops.size() + 1);
      return false;
    }
    if (!driver.allow(rule.name(), op))
      return false;
    Value *by = rule.rewrite(*found, driver.rewriter);
    assert(by && "a rewrite cannot fail");
    by = driver.rewriter.inShapeOf(op, by);
    driver.created();
    if (driver.listener)
      driver.listener->applied(
          rule.name(), Rewriter::mergedLocation(found->ops), found->ops);
    driver.rewriter.replace(op.result(0), by);
    return true;
  }

  RewriteDriver driver;
  Func &func;
  ArrayRef<Rule *> rules;
  llvm::SmallVector<Pattern, 4> patterns;
  llvm::DenseMap<Op *, Miss> misses;
};

} // namespace

llvm::Expected<bool> ir::applyRules(Module &module, Func &func,
                                    ArrayRef<Rule *> rules,
                                    RewriteListener *listener) {
  return RuleApplier(module, func, rules, listener).run();
}

llvm::Expected<bool> ir::applyPeepholes(Module &module, Func &func,
                                        const PeepholeSet &peepholes,
                                        RewriteListener *listener) {
  RewriteDriver driver(module, func, listener);
  return driver.run([&](Op &op) -> StringRef {
    if (op.numResults() && !op.hasUses() && !is(op, SideEffect)) {
      driver.rewriter.eraseIfDead(op);
      return "dead op";
    }
    for (const PeepholeSet::Entry &entry : peepholes.of(op.kind())) {
      Value *by = entry.fn(op, driver.rewriter);
      llvm::SmallVector<Op *, 8> created = driver.created();
      if (!by) {
        assert(created.empty() && "a law must decide before it builds");
        continue;
      }
      if (!driver.allow(entry.law, op)) {
        driver.discard(created);
        continue;
      }
      if (listener)
        listener->simplified(entry.law, op.loc);
      driver.rewriter.replace(op.result(0), by);
      return entry.law;
    }
    return "";
  });
}
