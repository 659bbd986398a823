//===- LawUtil.cpp - what the laws share -------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/canonical/LawUtil.h"
#include "llvm/ADT/STLExtras.h"

using namespace tenon;
using namespace tenon::ir;
using llvm::ArrayRef;

const Constant *passes::constantOf(const Value *value) {
  Op *op = value ? value->def(OpKind::Const) : nullptr;
  return op ? op->attrs<ConstAttrs>().value.get() : nullptr;
}

std::optional<double> passes::splatOf(const Value *value) {
  const Constant *constant = constantOf(value);
  return constant ? constant->splatValue() : std::nullopt;
}

std::optional<double> passes::scalarOf(const Value *value) {
  const Constant *constant = constantOf(value);
  if (!constant || constant->numElements() != 1)
    return std::nullopt;
  return constant->splatValue();
}

Value *passes::rebuild(Op &op, ArrayRef<Value *> operands,
                       Rewriter &rewriter) {
  return llvm::cantFail(rewriter.before(op).clone(op, operands))->result();
}

Value *passes::buildReshape(Builder &builder, Value *x, ShapeRef shape) {
  ShapeAttrs attrs;
  attrs.shape.assign(shape.begin(), shape.end());
  return builder.buildReshape({x}, attrs);
}

Value *passes::buildTranspose(Builder &builder, Value *x,
                              ArrayRef<int64_t> perm) {
  TransposeAttrs attrs;
  attrs.perm.assign(perm.begin(), perm.end());
  return builder.buildTranspose({x}, attrs);
}

Value *passes::buildBroadcast(Builder &builder, Value *x, ShapeRef shape) {
  ShapeAttrs attrs;
  attrs.shape.assign(shape.begin(), shape.end());
  return builder.buildBroadcast({x}, attrs);
}

Value *passes::buildCast(Builder &builder, Value *x, ElementType to) {
  CastAttrs attrs;
  attrs.to = to;
  return builder.buildCast({x}, attrs);
}

bool passes::broadcastsSurely(ShapeRef from, ShapeRef to) {
  if (from.size() > to.size())
    return false;
  return llvm::all_of(llvm::zip(from, to.take_back(from.size())),
                      [](auto pair) {
                        auto [a, b] = pair;
                        return a.isConstant(1) || a == b;
                      });
}

namespace {

/// Grows a group from one dimension on each side until both products agree.
bool closeGroup(ShapeRef in, ShapeRef out, passes::DimGroup &group) {
  Dim a = in[group.inEnd++], b = out[group.outEnd++];
  while (a != b) {
    // The side that divides the other is the smaller one.
    if (group.inEnd < in.size() && Dim::divideExactly(b, a))
      a = a * in[group.inEnd++];
    else if (group.outEnd < out.size() && Dim::divideExactly(a, b))
      b = b * out[group.outEnd++];
    else
      return false;
  }
  return true;
}

} // namespace

std::optional<llvm::SmallVector<passes::DimGroup, 4>>
passes::groupDims(ShapeRef in, ShapeRef out) {
  llvm::SmallVector<DimGroup, 4> groups;
  unsigned i = 0, j = 0;
  while (i < in.size() || j < out.size()) {
    DimGroup group{i, i, j, j};
    bool bothLeft = i < in.size() && j < out.size();
    if (bothLeft && in[i] == out[j])
      ++group.inEnd, ++group.outEnd;
    else if (i < in.size() && in[i].isConstant(1))
      ++group.inEnd;
    else if (j < out.size() && out[j].isConstant(1))
      ++group.outEnd;
    else if (!bothLeft || !closeGroup(in, out, group))
      return std::nullopt;
    i = group.inEnd;
    j = group.outEnd;
    groups.push_back(group);
  }
  return groups;
}

bool passes::movesOnlyOnes(ShapeRef in, ShapeRef out) {
  auto isOne = [](Dim dim) { return dim.isConstant(1); };
  llvm::SmallVector<Dim, 4> a, b;
  llvm::copy_if(in, std::back_inserter(a), [&](Dim d) { return !isOne(d); });
  llvm::copy_if(out, std::back_inserter(b), [&](Dim d) { return !isOne(d); });
  return a == b;
}
