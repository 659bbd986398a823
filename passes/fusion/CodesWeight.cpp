//===- CodesWeight.cpp - matrices of codes side by side ------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/fusion/CodesWeight.h"
#include "ir/OpDef.h"
#include "passes/analysis/PackedWeights.h"
#include "passes/canonical/LawUtil.h"
#include "llvm/ADT/STLExtras.h"

using namespace tenon;
using namespace tenon::ir;
using namespace tenon::passes;

namespace {

ConstantRef valueOf(const Value *value) {
  Op *op = value->def(OpKind::Const);
  return op ? op->attrs<ConstAttrs>().value : nullptr;
}

/// The constant that a step combines what it works on with: its operand's
/// number; none for steps that only move or cast.
std::optional<unsigned> constantOperand(const Op &step) {
  if (step.numOperands() != 2)
    return std::nullopt;
  return valueOf(step.operand(1)) ? 1 : 0;
}

/// Where a step has the dimension of columns that its operand has at \p axis.
std::optional<unsigned> columnsAfter(const Op &step, unsigned axis) {
  unsigned last = step.result()->rank() - 1;
  if (step.kind() == OpKind::Transpose) {
    llvm::ArrayRef<int64_t> perm = step.attrs<TransposeAttrs>().perm;
    return unsigned(llvm::find(perm, int64_t(axis)) - perm.begin());
  }
  if (step.kind() != OpKind::Reshape)
    return axis;
  const Value *from = step.operand(0);
  // Other dimensions merge or split beside it.
  unsigned after = axis == 0 ? 0 : last;
  bool outermost = axis == 0 || axis + 1 == from->rank();
  if (!outermost || step.result()->shape()[after] != from->shape()[axis])
    return std::nullopt;
  return after;
}

/// Whether a constant has values of its own for each column.
bool isPerColumn(const ConstantRef &value, int64_t columns) {
  return value->shape().size() == 3 && value->shape()[0] == columns;
}

std::optional<std::string> differ(const CodesWeight &a, const CodesWeight &b) {
  if (a.codes->element() != b.codes->element() ||
      a.codes->shape().drop_front() != b.codes->shape().drop_front() ||
      a.steps.size() != b.steps.size())
    return "their codes differ in type, in blocks or in rows";
  for (auto [x, y] : llvm::zip(a.steps, b.steps)) {
    std::optional<unsigned> i = constantOperand(*x);
    if (x->kind() != y->kind() || i != constantOperand(*y))
      return "they are decoded in different ways";
    if (!i)
      continue;
    ConstantRef p = valueOf(x->operand(*i)), q = valueOf(y->operand(*i));
    if (isPerColumn(p, a.columns()) != isPerColumn(q, b.columns()))
      return "one has zero points of its own";
    if (!isPerColumn(p, a.columns()) &&
        (!p->splatValue() || p->splatValue() != q->splatValue()))
      return "their zero points differ";
  }
  return std::nullopt;
}

/// Joined values of operand \p i of step number \p s.
ConstantRef joinConstants(llvm::ArrayRef<CodesWeight> weights, size_t s,
                          unsigned i) {
  llvm::SmallVector<ConstantRef, 4> parts;
  for (const CodesWeight &weight : weights)
    parts.push_back(valueOf(weight.steps[s]->operand(i)));
  bool each = isPerColumn(parts[0], weights[0].columns());
  return each ? Constant::concat(parts, 0) : parts[0];
}

/// \p step on \p value, whose columns are \p columns from now on.
Value *repeat(const Op &step, Value *value, unsigned axis, int64_t columns,
              Builder &builder) {
  switch (step.kind()) {
  case OpKind::Cast:
    return builder.buildCast({value}, step.attrs<CastAttrs>());
  case OpKind::Transpose:
    return builder.buildTranspose({value}, step.attrs<TransposeAttrs>());
  case OpKind::Slice: {
    SliceAttrs attrs = step.attrs<SliceAttrs>();
    attrs.sizes[axis] = columns;
    return builder.buildSlice({value}, attrs);
  }
  default: {
    assert(step.kind() == OpKind::Reshape && "not a step");
    Shape shape(step.result()->shape().begin(), step.result()->shape().end());
    shape[axis] = columns;
    return buildReshape(builder, value, shape);
  }
  }
}

} // namespace

std::optional<CodesWeight> passes::codesWeight(const Value *weight) {
  CodesWeight found;
  for (Op *op = weight->def(); op && unpacksWeight(*op);) {
    found.steps.push_back(op);
    std::optional<unsigned> constant = constantOperand(*op);
    Value *from = op->operand(constant ? 1 - *constant : 0);
    if (op->kind() == OpKind::Cast) {
      found.codes = valueOf(from);
      break;
    }
    op = from->def();
  }
  if (!found.codes || found.codes->shape().size() != 3)
    return std::nullopt;
  std::reverse(found.steps.begin(), found.steps.end());
  return found;
}

std::optional<std::string>
passes::notJoinable(llvm::ArrayRef<CodesWeight> weights) {
  for (const CodesWeight &weight : weights) {
    unsigned perColumn =
        weight.codes->numElements() / std::max<int64_t>(1, weight.columns());
    if (perColumn * bitWidth(weight.codes->element()) % 8 != 0)
      return "a column's codes are no whole bytes";
    if (auto reason = differ(weights.front(), weight))
      return reason;
    std::optional<unsigned> axis = 0;
    for (const Op *step : weight.steps) {
      axis = columnsAfter(*step, *axis);
      if (!axis || (step->kind() == OpKind::Slice &&
                    !step->attrs<SliceAttrs>().starts[*axis].isConstant(0)))
        return "its columns are moved in a way that is not known";
    }
  }
  return std::nullopt;
}

Value *passes::joinColumns(llvm::ArrayRef<CodesWeight> weights,
                           Builder &builder) {
  llvm::SmallVector<ConstantRef, 4> codes;
  int64_t columns = 0;
  for (const CodesWeight &weight : weights) {
    codes.push_back(weight.codes);
    columns += weight.columns();
  }
  Value *value = builder.constant(Constant::concat(codes, 0));
  unsigned axis = 0;
  for (const auto &[s, step] : llvm::enumerate(weights.front().steps)) {
    axis = *columnsAfter(*step, axis);
    std::optional<unsigned> constant = constantOperand(*step);
    if (!constant) {
      value = repeat(*step, value, axis, columns, builder);
      continue;
    }
    Value *with = builder.constant(joinConstants(weights, s, *constant));
    Value *x = *constant == 0 ? with : value,
          *y = *constant == 0 ? value : with;
    value = step->kind() == OpKind::Mul   ? builder.buildMul({x, y})
            : step->kind() == OpKind::Add ? builder.buildAdd({x, y})
                                          : builder.buildSub({x, y});
  }
  return value;
}
