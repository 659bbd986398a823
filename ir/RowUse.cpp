//===- RowUse.cpp - which rows of its operands an op's rows need ---------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/RowUse.h"
#include "ir/OpDef.h"
#include "llvm/ADT/STLExtras.h"

using namespace tenon;
using namespace tenon::ir;

namespace {

using Uses = llvm::SmallVector<RowUse, 4>;
using MaybeUses = std::optional<Uses>;

/// How an operand that broadcasts to the result is used.
RowUse broadcastUse(const Value *operand, ShapeRef result, unsigned axis) {
  if (!operand)
    return {};
  unsigned missing = result.size() - operand->rank();
  if (axis < missing)
    return {};
  Dim dim = operand->shape()[axis - missing];
  if (dim.isConstant(1) && !result[axis].isConstant(1))
    return {};
  return {axis - missing};
}

MaybeUses broadcastUses(const Op &op, unsigned axis) {
  Uses uses;
  for (const Value *operand : op.operands())
    uses.push_back(broadcastUse(operand, op.result()->shape(), axis));
  return uses;
}

Dim product(ShapeRef shape) {
  Dim result = 1;
  for (Dim dim : shape)
    result = result * dim;
  return result;
}

MaybeUses reshapeUses(const Op &op, unsigned axis) {
  ShapeRef from = op.operand(0)->shape(), to = op.result()->shape();
  Dim before = product(to.take_front(axis));
  for (unsigned d = 0; d < from.size(); ++d)
    if (from[d] == to[axis] && product(from.take_front(d)) == before)
      return Uses{{d}};
  return std::nullopt;
}

MaybeUses sliceUses(const Op &op, unsigned axis) {
  const auto &attrs = op.attrs<SliceAttrs>();
  bool all = attrs.starts[axis].isConstant(0) && attrs.steps[axis] == 1 &&
             attrs.sizes[axis] == op.operand(0)->shape()[axis];
  return all ? MaybeUses(Uses{{axis}}) : std::nullopt;
}

MaybeUses padUses(const Op &op, unsigned axis) {
  const auto &attrs = op.attrs<PadAttrs>();
  if (!attrs.low[axis].isConstant(0) || !attrs.high[axis].isConstant(0))
    return std::nullopt;
  return Uses{{axis}, {}};
}

/// All operands along the same axis, unless the op works along it.
MaybeUses alongOther(const Op &op, unsigned axis, int64_t worksAlong) {
  if (int64_t(axis) == worksAlong)
    return std::nullopt;
  return Uses(op.numOperands(), RowUse{axis});
}

MaybeUses gatherUses(const Op &op, unsigned axis) {
  unsigned along = op.attrs<AxisAttrs>().axis,
           indexRank = op.operand(1)->rank();
  if (axis < along)
    return Uses{{axis}, {}};
  if (axis < along + indexRank)
    return Uses{{}, {axis - along}};
  return Uses{{axis - indexRank + 1}, {}};
}

MaybeUses matmulUses(const Op &op, unsigned axis) {
  const Value *factors[] = {op.operand(0), op.operand(1)};
  unsigned rank = op.result()->rank();
  if (factors[0]->rank() < 2 || factors[1]->rank() < 2)
    return std::nullopt;
  Uses uses;
  // Rows of a, columns of b, batches of both.
  for (const auto &[i, x] : llvm::enumerate(factors)) {
    unsigned missing = rank - x->rank();
    bool isOwn = axis + 2 < rank || axis == rank - 2 + i;
    bool has = axis >= missing && isOwn;
    if (has && axis + 2 < rank && x->shape()[axis - missing].isConstant(1))
      has = op.result()->shape()[axis].isConstant(1);
    uses.push_back(has ? RowUse{axis - missing} : RowUse{});
  }
  for (const Value *extra : op.operands().drop_front(2))
    uses.push_back(broadcastUse(extra, op.result()->shape(), axis));
  return uses;
}

MaybeUses normUses(const Op &op, unsigned axis) {
  if (int64_t(axis) >= op.attrs<NormAttrs>().axis)
    return std::nullopt;
  Uses uses(op.numOperands());
  uses[0] = {axis};
  return uses;
}

MaybeUses reduceUses(const Op &op, unsigned axis, llvm::ArrayRef<int64_t> axes,
                     bool keepdims) {
  unsigned d = 0, kept = 0;
  for (unsigned end = op.operand(0)->rank(); d < end; ++d) {
    bool reduced = llvm::is_contained(axes, int64_t(d));
    if (reduced && !keepdims)
      continue;
    if (kept++ != axis)
      continue;
    return reduced ? std::nullopt : MaybeUses(Uses{{d}});
  }
  return std::nullopt;
}

MaybeUses rotaryUses(const Op &op, unsigned axis) {
  if (axis == 3)
    return std::nullopt;
  Uses uses = {{axis}};
  for (const Value *table : op.operands().drop_front())
    uses.push_back(axis < 2 && !(axis == 0 && table->shape()[0].isConstant(1))
                       ? RowUse{axis}
                       : RowUse{});
  return uses;
}

} // namespace

std::optional<llvm::SmallVector<RowUse, 4>> ir::rowUses(const Op &op,
                                                        unsigned axis) {
  if (is(op, ElementwiseOp) || op.kind() == OpKind::Map)
    return broadcastUses(op, axis);
  if (is(op, ReductionOp)) {
    const auto &attrs = op.attrs<ReduceAttrs>();
    return reduceUses(op, axis, attrs.axes, attrs.keepdims);
  }
  switch (op.kind()) {
  case OpKind::Broadcast:
    return broadcastUses(op, axis);
  case OpKind::Reshape:
    return reshapeUses(op, axis);
  case OpKind::Transpose:
    return Uses{{unsigned(op.attrs<TransposeAttrs>().perm[axis])}};
  case OpKind::Slice:
    return sliceUses(op, axis);
  case OpKind::Pad:
    return padUses(op, axis);
  case OpKind::Concat:
  case OpKind::GatherElements:
  case OpKind::Softmax:
  case OpKind::LogSoftmax:
    return alongOther(op, axis, op.attrs<AxisAttrs>().axis);
  case OpKind::CumSum:
    return alongOther(op, axis, op.attrs<CumSumAttrs>().axis);
  case OpKind::TopK:
    return alongOther(op, axis, op.attrs<TopKAttrs>().axis);
  case OpKind::ArgMax:
  case OpKind::ArgMin: {
    const auto &attrs = op.attrs<ArgReduceAttrs>();
    return reduceUses(op, axis, {attrs.axis}, attrs.keepdims);
  }
  case OpKind::Gather:
    return gatherUses(op, axis);
  case OpKind::MatMul:
    return matmulUses(op, axis);
  case OpKind::LayerNorm:
  case OpKind::RmsNorm:
    return normUses(op, axis);
  case OpKind::Rotary:
    return rotaryUses(op, axis);
  default:
    return std::nullopt;
  }
}

namespace {

class DimRewriter final : public FieldVisitor {
public:
  explicit DimRewriter(llvm::function_ref<Dim(Dim)> rewrite)
      : rewrite(rewrite) {}
  void nextIsOptional(bool) override {}
  void visit(llvm::StringRef, int64_t &) override {}
  void visit(llvm::StringRef, bool &) override {}
  void visit(llvm::StringRef, double &) override {}
  void visit(llvm::StringRef, Ints &) override {}
  void visit(llvm::StringRef, Dim &value) override { value = rewrite(value); }
  void visit(llvm::StringRef, Dims &value) override {
    for (Dim &dim : value)
      dim = rewrite(dim);
  }
  void visit(llvm::StringRef, ElementType &) override {}
  void visit(llvm::StringRef, ConstantRef &) override {}
  void visit(llvm::StringRef, EnumRef) override {}

private:
  llvm::function_ref<Dim(Dim)> rewrite;
};

} // namespace

void ir::rewriteAttrDims(Op &op, llvm::function_ref<Dim(Dim)> rewrite) {
  DimRewriter rewriter(rewrite);
  op.rawAttrs().fields(rewriter);
}

bool ir::mentions(Dim dim, llvm::StringRef symbol) {
  bool found = false;
  dim.collectSymbols([&](llvm::StringRef name) { found |= name == symbol; });
  return found;
}
