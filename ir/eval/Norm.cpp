//===- Norm.cpp - reference semantics of normalisations ------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/OpDef.h"
#include "ir/eval/Loops.h"
#include <cmath>
#include <limits>

using namespace tenon;
using namespace tenon::ir;

namespace {

/// A tensor seen as [outer, length, inner] around its rows.
struct Rows {
  int64_t outer = 1, length = 1, inner = 1;
};

Rows rowsAlong(llvm::ArrayRef<int64_t> shape, int64_t axis) {
  Rows rows;
  for (int64_t d = 0; d != static_cast<int64_t>(shape.size()); ++d)
    (d < axis ? rows.outer : d == axis ? rows.length : rows.inner) *= shape[d];
  return rows;
}

Rows rowsFrom(llvm::ArrayRef<int64_t> shape, int64_t axis) {
  Rows rows;
  for (int64_t d = 0; d != static_cast<int64_t>(shape.size()); ++d)
    (d < axis ? rows.outer : rows.length) *= shape[d];
  return rows;
}

/// Replaces every row of operand 0 by what \p transform makes of it.
template <class Transform>
llvm::Error mapRows(EvalContext &context, const Rows &rows,
                    Transform transform) {
  std::vector<double> values = loadAll<double>(context.in(0)),
                      row(rows.length);
  for (int64_t o = 0; o != rows.outer; ++o)
    for (int64_t i = 0; i != rows.inner; ++i) {
      int64_t base = o * rows.length * rows.inner + i;
      for (int64_t k = 0; k != rows.length; ++k)
        row[k] = values[base + k * rows.inner];
      transform(row);
      for (int64_t k = 0; k != rows.length; ++k)
        context.out().set(base + k * rows.inner, row[k]);
    }
  return llvm::Error::success();
}

double maximum(const std::vector<double> &row) {
  double top = -std::numeric_limits<double>::infinity();
  for (double value : row)
    top = value > top ? value : top;
  return top;
}

double sumOfExp(const std::vector<double> &row, double top) {
  double sum = 0;
  for (double value : row)
    sum += std::exp(value - top);
  return sum;
}

/// The elements of an optional scale or offset, or \p count times
/// \p otherwise.
std::vector<double> parameter(const EvalContext &context, unsigned operand,
                              int64_t count, double otherwise) {
  if (operand < context.operands.size() && context.operands[operand])
    return loadAll<double>(context.in(operand));
  return std::vector<double>(count, otherwise);
}

} // namespace

llvm::Error tenon::ir::evalSoftmax(EvalContext &context) {
  Rows rows =
      rowsAlong(context.in(0).shape, context.attrs<AxisAttrs>().axis);
  return mapRows(context, rows, [](std::vector<double> &row) {
    double top = maximum(row), sum = sumOfExp(row, top);
    for (double &value : row)
      value = std::exp(value - top) / sum;
  });
}

llvm::Error tenon::ir::evalLogSoftmax(EvalContext &context) {
  Rows rows =
      rowsAlong(context.in(0).shape, context.attrs<AxisAttrs>().axis);
  return mapRows(context, rows, [](std::vector<double> &row) {
    double top = maximum(row), logSum = std::log(sumOfExp(row, top));
    for (double &value : row)
      value = value - top - logSum;
  });
}

llvm::Error tenon::ir::evalLayerNorm(EvalContext &context) {
  const auto &attrs = context.attrs<NormAttrs>();
  Rows rows = rowsFrom(context.in(0).shape, attrs.axis);
  std::vector<double> gamma = parameter(context, 1, rows.length, 1.0),
                      beta = parameter(context, 2, rows.length, 0.0);
  return mapRows(context, rows, [&](std::vector<double> &row) {
    double mean = 0, variance = 0;
    for (double value : row)
      mean += value / rows.length;
    for (double value : row)
      variance += (value - mean) * (value - mean) / rows.length;
    double factor = 1 / std::sqrt(variance + attrs.epsilon);
    for (int64_t k = 0; k != rows.length; ++k)
      row[k] = (row[k] - mean) * factor * gamma[k] + beta[k];
  });
}

llvm::Error tenon::ir::evalRmsNorm(EvalContext &context) {
  const auto &attrs = context.attrs<NormAttrs>();
  Rows rows = rowsFrom(context.in(0).shape, attrs.axis);
  std::vector<double> gamma = parameter(context, 1, rows.length, 1.0);
  return mapRows(context, rows, [&](std::vector<double> &row) {
    double meanSquare = 0;
    for (double value : row)
      meanSquare += value * value / rows.length;
    double factor = 1 / std::sqrt(meanSquare + attrs.epsilon);
    for (int64_t k = 0; k != rows.length; ++k)
      row[k] = row[k] * factor * gamma[k];
  });
}
