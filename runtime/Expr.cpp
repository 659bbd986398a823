//===- Expr.cpp - evaluates and prints a plan's expressions -------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/Plan.h"
#include "runtime/format/DType.h"

namespace tenon::rt {
namespace {

int64_t floorDiv(int64_t a, int64_t b) {
  int64_t q = a / b;
  return q - (a % b != 0 && (a < 0) != (b < 0));
}

Status failure(const Plan &plan, ExprId id, std::span<const int64_t> values) {
  const Expr &expr = plan.exprs()[id];
  long long a = values[expr.a], b = values[expr.b];
  std::string text = plan.text(id);
  if (expr.op == ExprOp::Broadcast)
    return TN_ERROR("sizes %lld and %lld do not broadcast (%s)", a, b,
                    text.c_str());
  return TN_ERROR("size %s cannot be computed from %lld and %lld", text.c_str(),
                  a, b);
}

/// Prints an expression within a budget, since a small table can describe a
/// very long text.
class ExprPrinter {
public:
  explicit ExprPrinter(const Plan &plan) : plan(plan) {}

  void print(ExprId id, unsigned depth, bool nested) {
    if (depth == 0 || out.size() > 200) {
      out += "...";
      return;
    }
    const Expr &expr = plan.exprs()[id];
    if (expr.op == ExprOp::Constant) {
      out += std::to_string(expr.value);
      return;
    }
    if (expr.op == ExprOp::Symbol) {
      out += plan.string(plan.symbols()[size_t(expr.value)].name);
      return;
    }
    static constexpr const char *infix[] = {"",    "",    " + ", " - ",
                                            " * ", " / ", "",    " % "};
    static constexpr const char *call[] = {
        "", "", "", "", "", "", "ceildiv", "", "min", "max", "broadcast"};
    bool isCall = call[unsigned(expr.op)][0] != '\0';
    out += isCall ? call[unsigned(expr.op)] : "";
    out += isCall || nested ? "(" : "";
    print(expr.a, depth - 1, !isCall);
    out += isCall ? ", " : infix[unsigned(expr.op)];
    print(expr.b, depth - 1, !isCall);
    out += isCall || nested ? ")" : "";
  }

  std::string out;

private:
  const Plan &plan;
};

} // namespace

bool apply(ExprOp op, int64_t a, int64_t b, int64_t &out) {
  // b == -1 with the least a overflows.
  bool divides = b != 0 && !(b == -1 && a == INT64_MIN);
  switch (op) {
  case ExprOp::Add:
    return !__builtin_add_overflow(a, b, &out);
  case ExprOp::Sub:
    return !__builtin_sub_overflow(a, b, &out);
  case ExprOp::Mul:
    return !__builtin_mul_overflow(a, b, &out);
  case ExprOp::FloorDiv:
    out = divides ? floorDiv(a, b) : 0;
    return divides;
  case ExprOp::CeilDiv:
    out = divides ? floorDiv(a, b) + (a % b != 0) : 0;
    return divides;
  case ExprOp::Mod:
    // Not a - floor(a / b) * b, whose product may overflow.
    out = divides ? a % b : 0;
    out += out != 0 && (out < 0) != (b < 0) ? b : 0;
    return divides;
  case ExprOp::Min:
    out = a < b ? a : b;
    return true;
  case ExprOp::Max:
    out = a < b ? b : a;
    return true;
  case ExprOp::Broadcast:
    out = b == 1 ? a : b;
    return a == b || a == 1 || b == 1;
  case ExprOp::Constant:
  case ExprOp::Symbol:
    break;
  }
  return false;
}

std::string Plan::text(ExprId id) const {
  ExprPrinter printer(*this);
  printer.print(id, 16, false);
  return printable(printer.out);
}

std::string Plan::text(const Port &port) const {
  std::string out = std::string(dtypeInfo(port.dtype).name) + "[";
  const char *separator = "";
  for (ExprId id : run(port.shape, port.rank)) {
    out += separator + text(id);
    separator = ", ";
  }
  return out + "]";
}

Status evaluate(const Plan &plan, uint32_t segment,
                std::span<const int64_t> symbols, std::span<int64_t> values) {
  auto exprs = plan.exprs();
  for (size_t i = 0; i < exprs.size(); ++i) {
    const Expr &expr = exprs[i];
    if (expr.segment != segment)
      continue;
    if (expr.op == ExprOp::Constant)
      values[i] = expr.value;
    else if (expr.op == ExprOp::Symbol)
      values[i] = symbols[size_t(expr.value)];
    else if (!apply(expr.op, values[expr.a], values[expr.b], values[i]))
      return failure(plan, ExprId(i), values);
  }
  return {};
}

Result<std::vector<int64_t>> evaluateAll(const Plan &plan,
                                         std::span<const int64_t> symbols) {
  std::vector<int64_t> values(plan.exprs().size());
  size_t segments = plan.segments().empty() ? 1 : plan.segments().size();
  for (uint32_t s = 0; s < segments; ++s)
    if (Status status = evaluate(plan, s, symbols, values); !status.ok())
      return status;
  return values;
}

} // namespace tenon::rt
