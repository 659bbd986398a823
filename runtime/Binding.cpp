//===- Binding.cpp - symbols from the shapes of inputs ------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/Binding.h"

#include "runtime/Npz.h"
#include "runtime/Sources.h"

#include <algorithm>

namespace tenon::rt {
namespace {

long long ll(int64_t value) { return value; }

std::string symbolName(const Plan &plan, size_t index) {
  return printable(std::string(plan.string(plan.symbols()[index].name)));
}

/// How a message about the size of a dimension begins.
std::string describeDim(const Plan &plan, uint32_t input, uint32_t dim) {
  return format("%s: dimension %u is ", describeInput(plan, input).c_str(),
                dim);
}

} // namespace

std::string describeInput(const Plan &plan, size_t index) {
  const char *name = plan.string(plan.inputs()[index].name);
  return "input '" + printable(std::string(name)) + "'";
}

std::string describeSymbols(const Plan &plan,
                            std::span<const int64_t> symbols) {
  std::string out;
  for (size_t i = 0; i < symbols.size(); ++i)
    out += format("%s%s = %lld", i ? ", " : "", symbolName(plan, i).c_str(),
                  ll(symbols[i]));
  return out;
}

Status checkInput(const Plan &plan, size_t index, DType dtype,
                  std::span<const int64_t> shape) {
  const Port &port = plan.inputs()[index];
  std::string name = describeInput(plan, index);
  if (!isDType(dtype))
    return TN_ERROR("%s: unknown element type %u", name.c_str(),
                    unsigned(dtype));
  uint64_t count;
  if (!countElements(shape, count))
    return TN_ERROR("%s: size of %s is out of range", name.c_str(),
                    describeType(dtype, shape).c_str());
  if (dtype != port.dtype || shape.size() != port.rank)
    return TN_ERROR("%s: found %s, expected %s", name.c_str(),
                    describeType(dtype, shape).c_str(),
                    plan.text(port).c_str());
  auto dims = plan.run(port.shape, port.rank);
  for (size_t d = 0; d < dims.size(); ++d) {
    const Expr &expr = plan.exprs()[dims[d]];
    if (expr.op == ExprOp::Constant && expr.value != shape[d])
      return TN_ERROR("%s: dimension %zu is %lld, expected %lld in %s",
                      name.c_str(), d, ll(shape[d]), ll(expr.value),
                      plan.text(port).c_str());
  }
  return {};
}

Status checkRange(const Plan &plan, size_t index, int64_t value,
                  const std::string &where) {
  const Symbol &symbol = plan.symbols()[index];
  if (value >= symbol.low && value <= symbol.high)
    return {};
  std::string range = std::to_string(symbol.low) + "..";
  if (symbol.high != INT64_MAX)
    range += std::to_string(symbol.high);
  return TN_ERROR("%s%lld, outside the range %s of '%s'", where.c_str(),
                  ll(value), range.c_str(), symbolName(plan, index).c_str());
}

namespace {

ExprId dimOf(const Plan &plan, uint32_t input, uint32_t dim) {
  const Port &port = plan.inputs()[input];
  return plan.run(port.shape, port.rank)[dim];
}

/// The value that `source` gives its symbol; those before it have theirs.
Result<int64_t> solve(const Plan &plan, int64_t size,
                      const SymbolSource &source,
                      std::span<const int64_t> symbols) {
  std::string where = describeDim(plan, source.input, source.dim);
  ExprId id = dimOf(plan, source.input, source.dim);
  int64_t value = size;
  if (plan.exprs()[id].op != ExprOp::Symbol) {
    std::string formula = plan.text(id);
    std::string name = symbolName(plan, source.symbol);
    auto linear = linearIn(plan, id, source.symbol, symbols);
    int64_t product;
    if (!linear || __builtin_sub_overflow(size, linear->rest, &product) ||
        product == INT64_MIN)
      return TN_ERROR("%s%lld: %s does not fit 64 bits", where.c_str(),
                      ll(size), formula.c_str());
    if (linear->factor == 0)
      return TN_ERROR("%s%lld: as %s it does not tell '%s' (%s)", where.c_str(),
                      ll(size), formula.c_str(), name.c_str(),
                      describeSymbols(plan, symbols).c_str());
    if (product % linear->factor != 0)
      return TN_ERROR("%s%lld, expected %s for a whole '%s'", where.c_str(),
                      ll(size), formula.c_str(), name.c_str());
    value = product / linear->factor;
    where +=
        format("%lld = %s: '%s' is ", ll(size), formula.c_str(), name.c_str());
  }
  if (Status status = checkRange(plan, source.symbol, value, where);
      !status.ok())
    return status;
  return value;
}

} // namespace

Status bindSymbols(const Plan &plan, std::span<const InputValue> inputs,
                   int64_t length, int64_t chosen, std::span<int64_t> symbols) {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i].set && !plan.stateOfInput(i))
      return TN_ERROR("%s is not set; expected %s",
                      describeInput(plan, i).c_str(),
                      plan.text(plan.inputs()[i]).c_str());
  std::vector<const SymbolSource *> origins(symbols.size());
  for (const SymbolSource &source : plan.symbolSources()) {
    const InputValue &input = inputs[source.input];
    if (!input.set && source.dim != plan.stateOfInput(source.input)->axis)
      return TN_ERROR("%s is not set, and no other input tells '%s'",
                      describeInput(plan, source.input).c_str(),
                      symbolName(plan, source.symbol).c_str());
    int64_t size = input.set ? input.shape[source.dim] : length;
    Result<int64_t> value = solve(plan, size, source, symbols);
    if (!value.ok())
      return value.status();
    symbols[source.symbol] = *value;
    origins[source.symbol] = &source;
  }
  for (size_t i = 0; i < symbols.size(); ++i)
    if (uint32_t most = plan.symbols()[i].most; most != none)
      symbols[i] = std::min(symbols[most], chosen);
  // Where a symbol is a dimension again, it has to be the same.
  for (uint32_t i = 0; i < inputs.size(); ++i)
    for (uint32_t d = 0; inputs[i].set && d < plan.inputs()[i].rank; ++d) {
      const Expr &expr = plan.exprs()[dimOf(plan, i, d)];
      int64_t size = inputs[i].shape[d];
      if (expr.op != ExprOp::Symbol || size == symbols[size_t(expr.value)])
        continue;
      const SymbolSource &origin = *origins[size_t(expr.value)];
      return TN_ERROR("%s%lld, expected '%s' = %lld as in dimension %u of %s",
                      describeDim(plan, i, d).c_str(), ll(size),
                      symbolName(plan, origin.symbol).c_str(),
                      ll(symbols[origin.symbol]), origin.dim,
                      describeInput(plan, origin.input).c_str());
    }
  return {};
}

Status checkDerivedDims(const Plan &plan, std::span<const InputValue> inputs,
                        std::span<const int64_t> values) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Port &port = plan.inputs()[i];
    if (!inputs[i].set)
      continue;
    auto dims = plan.run(port.shape, port.rank);
    for (size_t d = 0; d < dims.size(); ++d)
      if (arity(plan.exprs()[dims[d]].op) != 0 &&
          inputs[i].shape[d] != values[dims[d]])
        return TN_ERROR("%s: dimension %zu is %lld, expected %s = %lld",
                        describeInput(plan, i).c_str(), d,
                        ll(inputs[i].shape[d]), plan.text(dims[d]).c_str(),
                        ll(values[dims[d]]));
  }
  return {};
}

} // namespace tenon::rt
