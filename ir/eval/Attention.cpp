//===- Attention.cpp - reference semantics of attention and rotary -------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/OpDef.h"
#include "ir/eval/Loops.h"
#include "ir/support/Diag.h"
#include <cmath>
#include <limits>

using namespace tenon;
using namespace tenon::ir;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// One attention op with its operands in double.
///
/// A key is hidden from a query when causality or the window excludes it, when a
/// boolean mask is false there, or when its score is -inf (an additive mask's
/// -inf). Hidden keys get no weight. A finite additive mask, however low, hides
/// nothing: the arithmetic of softmax decides. When every key of a row is
/// hidden, `masked_row` says what the row gives: 0, the mean of all Skv values
/// (those that causality hides too), or NaN. A row over no keys at all gives 0.
class Attention {
public:
  explicit Attention(EvalContext &context)
      : attrs(context.attrs<AttentionAttrs>()), q(context.in(0)),
        k(context.in(1)), v(context.in(2)), y(context.out()),
        mask(context.operands.size() > 3 ? context.operands[3] : nullptr),
        heads(q.shape[2]), keys(k.shape[1]), keyHeads(k.shape[2]),
        depth(q.shape[3]), valueDepth(v.shape[3]) {}

  llvm::Error run(const DimEnv &env);

private:
  llvm::Error check(const DimEnv &env);
  bool isInReach(int64_t query, int64_t key) const;
  double maskAt(int64_t batch, int64_t head, int64_t query, int64_t key) const;
  void score(int64_t batch, int64_t head, int64_t query);
  void weigh();
  void mix(int64_t batch, int64_t head, int64_t query);

  const AttentionAttrs &attrs;
  const Tensor &q, &k, &v;
  Tensor &y;
  const Tensor *mask;
  int64_t heads, keys, keyHeads, depth, valueDepth;
  int64_t queryOffset = 0;
  Extents maskStrides;
  std::vector<double> qValues, kValues, vValues;
  /// The scores, then the weights, of the current row.
  std::vector<double> row;
};

llvm::Error Attention::check(const DimEnv &env) {
  if (keyHeads == 0 || heads % keyHeads != 0)
    return userError("{0} query heads cannot share {1} key heads: expected a "
                     "multiple",
                     heads, keyHeads);
  Extents scores{q.shape[0], heads, q.shape[1], keys};
  if (mask) {
    if (broadcastExtents(scores, mask->shape) != scores)
      return userError("a mask of shape {0} does not broadcast to the scores "
                       "{1}",
                       extentsText(mask->shape), extentsText(scores));
    maskStrides = broadcastStrides(mask->shape, scores);
  }
  std::optional<int64_t> offset = attrs.queryOffset.evaluate(
      [&](llvm::StringRef name) -> std::optional<int64_t> {
        auto it = env.find(name);
        return it == env.end() ? std::nullopt : std::optional(it->second);
      });
  if (!offset)
    return userError("query_offset has no value: one of its symbols isn't bound "
                     "by any input");
  queryOffset = *offset;
  return llvm::Error::success();
}

bool Attention::isInReach(int64_t query, int64_t key) const {
  int64_t position = query + queryOffset;
  if (attrs.causality == Causality::Causal && key > position)
    return false;
  if (attrs.windowLeft >= 0 && key < position - attrs.windowLeft)
    return false;
  return attrs.windowRight < 0 || key <= position + attrs.windowRight;
}

/// What the mask adds to a score: -inf where a boolean one is false.
double Attention::maskAt(int64_t batch, int64_t head, int64_t query,
                         int64_t key) const {
  if (!mask)
    return 0;
  int64_t offset = batch * maskStrides[0] + head * maskStrides[1] +
                   query * maskStrides[2] + key * maskStrides[3];
  if (mask->element == ElementType::Bool)
    return mask->intAt(offset) ? 0 : -infinity;
  return mask->at(offset);
}

void Attention::score(int64_t batch, int64_t head, int64_t query) {
  int64_t keyHead = head / (heads / keyHeads);
  const double *qRow =
      qValues.data() + ((batch * q.shape[1] + query) * heads + head) * depth;
  row.resize(keys);
  for (int64_t j = 0; j != keys; ++j) {
    if (!isInReach(query, j)) {
      row[j] = -infinity;
      continue;
    }
    const double *kRow =
        kValues.data() + ((batch * keys + j) * keyHeads + keyHead) * depth;
    double dot = 0;
    for (int64_t d = 0; d != depth; ++d)
      dot += qRow[d] * kRow[d];
    double value = dot * attrs.scale;
    if (attrs.softcap != 0)
      value = attrs.softcap * std::tanh(value / attrs.softcap);
    double added = maskAt(batch, head, query, j);
    // Hidden means hidden, also where the score is NaN or +inf.
    row[j] = added == -infinity ? -infinity : value + added;
  }
}

/// Turns the row of scores into one of weights.
void Attention::weigh() {
  double top = -infinity;
  bool allHidden = true;
  for (double value : row) {
    allHidden &= value == -infinity;
    top = value > top ? value : top;
  }
  if (allHidden) {
    double weight = attrs.maskedRow == MaskedRow::Zero      ? 0.0
                    : attrs.maskedRow == MaskedRow::Uniform ? 1.0 / keys
                        : std::numeric_limits<double>::quiet_NaN();
    std::fill(row.begin(), row.end(), weight);
    return;
  }
  double sum = 0;
  for (double &value : row) {
    value = value == -infinity ? 0.0 : std::exp(value - top);
    sum += value;
  }
  for (double &value : row)
    value /= sum;
}

void Attention::mix(int64_t batch, int64_t head, int64_t query) {
  int64_t keyHead = head / (heads / keyHeads);
  std::vector<double> sum(valueDepth, 0.0);
  for (int64_t j = 0; j != keys; ++j) {
    if (row[j] == 0)
      continue; // an infinite value under a hidden key must not give NaN
    const double *vRow =
        vValues.data() + ((batch * keys + j) * keyHeads + keyHead) * valueDepth;
    for (int64_t d = 0; d != valueDepth; ++d)
      sum[d] += row[j] * vRow[d];
  }
  int64_t base = ((batch * q.shape[1] + query) * heads + head) * valueDepth;
  for (int64_t d = 0; d != valueDepth; ++d)
    y.set(base + d, sum[d]);
}

llvm::Error Attention::run(const DimEnv &env) {
  if (llvm::Error error = check(env))
    return error;
  qValues = loadAll<double>(q);
  kValues = loadAll<double>(k);
  vValues = loadAll<double>(v);
  for (int64_t b = 0; b != q.shape[0]; ++b)
    for (int64_t h = 0; h != heads; ++h)
      for (int64_t i = 0; i != q.shape[1]; ++i) {
        score(b, h, i);
        weigh();
        mix(b, h, i);
      }
  return llvm::Error::success();
}

} // namespace

llvm::Error tenon::ir::evalAttention(EvalContext &context) {
  return Attention(context).run(context.env);
}

llvm::Error tenon::ir::evalRotary(EvalContext &context) {
  const Tensor &x = context.in(0), &cos = context.in(1), &sin = context.in(2);
  const auto &attrs = context.attrs<RotaryAttrs>();
  int64_t length = x.shape[1], heads = x.shape[2], depth = x.shape[3];
  int64_t half = attrs.rotaryDim / 2;
  if (attrs.rotaryDim > depth)
    return userError("rotary_dim is {0}, but the heads have {1} elements",
                     attrs.rotaryDim, depth);
  Extents table{x.shape[0], length, half};
  for (const Tensor *angles : {&cos, &sin})
    if (broadcastExtents(table, angles->shape) != table)
      return userError("a table of shape {0} does not broadcast to {1}",
                       extentsText(angles->shape), extentsText(table));
  Tensor &y = context.out();
  y = x; // what isn't rotated is copied
  Extents cosStrides = broadcastStrides(cos.shape, table),
          sinStrides = broadcastStrides(sin.shape, table);
  forEachIndex({x.shape[0], length, heads, half},
               [&](llvm::ArrayRef<int64_t> i) {
                 int64_t base =
                     ((i[0] * length + i[1]) * heads + i[2]) * depth;
                 int64_t first = base + (attrs.interleaved ? 2 * i[3] : i[3]);
                 int64_t second = first + (attrs.interleaved ? 1 : half);
                 double c = cos.at(i[0] * cosStrides[0] + i[1] * cosStrides[1] +
                                   i[3] * cosStrides[2]);
                 double s = sin.at(i[0] * sinStrides[0] + i[1] * sinStrides[1] +
                                   i[3] * sinStrides[2]);
                 y.set(first, x.at(first) * c - x.at(second) * s);
                 y.set(second, x.at(first) * s + x.at(second) * c);
               });
  return llvm::Error::success();
}
