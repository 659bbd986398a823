//===- Binding.cpp - symbols from the shapes of inputs ------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/Binding.h"

#include "runtime/Npz.h"

namespace tenon::rt {
namespace {

long long ll(int64_t value) { return value; }

/// Where a symbol got its value.
struct Origin {
  size_t input;
  size_t dim;
  bool known = false;
};

} // namespace

std::string describeInput(const Plan &plan, size_t index) {
  const char *name = plan.string(plan.inputs()[index].name);
  return "input '" + printable(std::string(name)) + "'";
}

std::string describeSymbols(const Plan &plan,
                            std::span<const int64_t> symbols) {
  std::string out;
  for (size_t i = 0; i < symbols.size(); ++i)
    out += format(
        "%s%s = %lld", i ? ", " : "",
        printable(std::string(plan.string(plan.symbols()[i].name))).c_str(),
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
                  ll(value), range.c_str(),
                  printable(std::string(plan.string(symbol.name))).c_str());
}

Status bindSymbols(const Plan &plan, std::span<const InputValue> inputs,
                   std::span<int64_t> symbols) {
  std::vector<Origin> origins(symbols.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Port &port = plan.inputs()[i];
    if (!inputs[i].set)
      return TN_ERROR("%s is not set; expected %s",
                      describeInput(plan, i).c_str(), plan.text(port).c_str());
    auto dims = plan.run(port.shape, port.rank);
    for (size_t d = 0; d < dims.size(); ++d) {
      const Expr &expr = plan.exprs()[dims[d]];
      if (expr.op != ExprOp::Symbol)
        continue;
      size_t symbol = size_t(expr.value);
      int64_t size = inputs[i].shape[d];
      Origin &origin = origins[symbol];
      std::string where =
          format("%s: dimension %zu is ", describeInput(plan, i).c_str(), d);
      if (origin.known && symbols[symbol] != size)
        return TN_ERROR(
            "%s%lld, expected '%s' = %lld as in dimension %zu of %s",
            where.c_str(), ll(size),
            printable(std::string(plan.string(plan.symbols()[symbol].name)))
                .c_str(),
            ll(symbols[symbol]), origin.dim,
            describeInput(plan, origin.input).c_str());
      if (Status status = checkRange(plan, symbol, size, where); !status.ok())
        return status;
      symbols[symbol] = size;
      origin = {i, d, true};
    }
  }
  return {};
}

Status checkDerivedDims(const Plan &plan, std::span<const InputValue> inputs,
                        std::span<const int64_t> values) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Port &port = plan.inputs()[i];
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
