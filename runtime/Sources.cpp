//===- Sources.cpp - where symbols get their values from ----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/Sources.h"

#include <algorithm>

namespace tenon::rt {
namespace {

/// The expressions that `root` is made of, as a mask over [0, root].
std::vector<bool> partsOf(const Plan &plan, ExprId root) {
  std::vector<bool> parts(size_t(root) + 1);
  parts[root] = true;
  for (size_t i = parts.size(); i-- > 0;) {
    const Expr &expr = plan.exprs()[i];
    if (parts[i] && arity(expr.op) == 2)
      parts[expr.a] = parts[expr.b] = true;
  }
  return parts;
}

/// The one symbol that `root` mentions and that is not known, if `root` is
/// linear in it.
std::optional<uint32_t> onlyUnknown(const Plan &plan, ExprId root,
                                    const std::vector<bool> &known) {
  std::optional<uint32_t> found;
  std::vector<bool> parts = partsOf(plan, root);
  /// 0: without the symbol, 1: linear in it, 2: anything else.
  std::vector<uint8_t> degree(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    const Expr &expr = plan.exprs()[i];
    if (!parts[i] || expr.op == ExprOp::Constant)
      continue;
    if (expr.op == ExprOp::Symbol) {
      uint32_t symbol = uint32_t(expr.value);
      if (known[symbol])
        continue;
      if (found && *found != symbol)
        return std::nullopt;
      found = symbol;
      degree[i] = 1;
      continue;
    }
    unsigned a = degree[expr.a], b = degree[expr.b];
    bool isSum = expr.op == ExprOp::Add || expr.op == ExprOp::Sub;
    if (isSum)
      degree[i] = uint8_t(std::max(a, b));
    else if (expr.op == ExprOp::Mul)
      degree[i] = uint8_t(std::min(a + b, 2u));
    else
      degree[i] = a || b ? 2 : 0;
  }
  return degree[root] == 1 ? found : std::nullopt;
}

bool add(int64_t a, int64_t b, int64_t &out) {
  return !__builtin_add_overflow(a, b, &out);
}
bool multiply(int64_t a, int64_t b, int64_t &out) {
  return !__builtin_mul_overflow(a, b, &out);
}

/// One step of linearIn(); one of the operands of a product is constant.
bool combine(ExprOp op, Linear a, Linear b, Linear &out) {
  if (op == ExprOp::Add)
    return add(a.factor, b.factor, out.factor) && add(a.rest, b.rest, out.rest);
  if (op == ExprOp::Sub)
    return !__builtin_sub_overflow(a.factor, b.factor, &out.factor) &&
           !__builtin_sub_overflow(a.rest, b.rest, &out.rest);
  if (op != ExprOp::Mul)
    return apply(op, a.rest, b.rest, out.rest);
  if (a.factor == 0)
    std::swap(a, b);
  return multiply(a.factor, b.rest, out.factor) &&
         multiply(a.rest, b.rest, out.rest);
}

} // namespace

std::vector<SymbolSource> symbolSources(const Plan &plan) {
  std::vector<SymbolSource> sources;
  std::vector<bool> known(plan.symbols().size());
  std::vector<SymbolSource> formulas; // symbol is the expression's number
  // States last: they need not be given, and then tell their length alone.
  std::vector<uint32_t> order;
  for (bool states : {false, true})
    for (uint32_t i = 0; i < plan.inputs().size(); ++i)
      if ((plan.stateOfInput(i) != nullptr) == states)
        order.push_back(i);
  for (uint32_t i : order) {
    const Port &port = plan.inputs()[i];
    for (uint32_t d = 0; d < port.rank; ++d) {
      ExprId id = plan.run(port.shape, port.rank)[d];
      const Expr &expr = plan.exprs()[id];
      if (arity(expr.op) == 2)
        formulas.push_back({id, i, d});
      if (expr.op != ExprOp::Symbol || known[size_t(expr.value)])
        continue;
      known[size_t(expr.value)] = true;
      sources.push_back({uint32_t(expr.value), i, d});
    }
  }
  for (bool progress = true; progress;) {
    progress = false;
    for (const SymbolSource &formula : formulas) {
      auto symbol = onlyUnknown(plan, formula.symbol, known);
      if (!symbol)
        continue;
      known[*symbol] = progress = true;
      sources.push_back({*symbol, formula.input, formula.dim});
    }
  }
  return sources;
}

std::optional<Linear> linearIn(const Plan &plan, ExprId root, uint32_t symbol,
                               std::span<const int64_t> symbols) {
  std::vector<bool> parts = partsOf(plan, root);
  std::vector<Linear> values(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    const Expr &expr = plan.exprs()[i];
    if (!parts[i])
      continue;
    if (expr.op == ExprOp::Constant)
      values[i] = {0, expr.value};
    else if (expr.op == ExprOp::Symbol)
      values[i] = uint64_t(expr.value) == symbol
                      ? Linear{1, 0}
                      : Linear{0, symbols[size_t(expr.value)]};
    else if (!combine(expr.op, values[expr.a], values[expr.b], values[i]))
      return std::nullopt;
  }
  return values[root];
}

} // namespace tenon::rt
