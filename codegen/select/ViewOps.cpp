//===- ViewOps.cpp - reshape, transpose, broadcast and slice -------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/select/Lowering.h"

namespace tenon::codegen {

namespace {

llvm::Error selectReshape(Lowering &lowering, const ir::Op &op) {
  View from = lowering.view(op.operand(0));
  const ir::Value *y = op.result();
  if (std::optional<View> view = reshapeView(from, y->shape())) {
    lowering.define(y, *view);
    return llvm::Error::success();
  }
  View to = lowering.result(y, Strides::Contiguous);
  to.shape = from.shape;
  to.strides = kernel::contiguousStrides(from.shape);
  lowering.copy(op, from, to);
  return llvm::Error::success();
}

llvm::Error selectBitCast(Lowering &lowering, const ir::Op &op) {
  View view = lowering.view(op.operand(0));
  view.element = op.result()->element();
  lowering.define(op.result(), view);
  return llvm::Error::success();
}

llvm::Error selectTranspose(Lowering &lowering, const ir::Op &op) {
  lowering.define(op.result(),
                  transposeView(lowering.view(op.operand(0)),
                                op.attrs<ir::TransposeAttrs>().perm));
  return llvm::Error::success();
}

llvm::Error selectBroadcast(Lowering &lowering, const ir::Op &op) {
  lowering.define(op.result(), lowering.broadcast(lowering.view(op.operand(0)),
                                                  op.result()->shape()));
  return llvm::Error::success();
}

llvm::Error selectSlice(Lowering &lowering, const ir::Op &op) {
  const auto &attrs = op.attrs<ir::SliceAttrs>();
  lowering.define(op.result(),
                  sliceView(lowering.view(op.operand(0)), attrs.starts,
                            attrs.sizes, attrs.steps));
  return llvm::Error::success();
}

/// The inputs were written into the result where their kernels could do it; the
/// others are copied.
llvm::Error selectConcat(Lowering &lowering, const ir::Op &op) {
  for (unsigned i = 0; i < op.numOperands(); ++i) {
    View part = lowering.concatPart(op, i);
    View from = lowering.view(op.operand(i));
    if (from != part)
      lowering.copy(op, from, part);
  }
  lowering.define(op.result(), lowering.concatWhole(op));
  return llvm::Error::success();
}

} // namespace

void addViews(SelectTable &table) {
  table[unsigned(ir::OpKind::Reshape)] = selectReshape;
  table[unsigned(ir::OpKind::BitCast)] = selectBitCast;
  table[unsigned(ir::OpKind::Transpose)] = selectTranspose;
  table[unsigned(ir::OpKind::Broadcast)] = selectBroadcast;
  table[unsigned(ir::OpKind::Slice)] = selectSlice;
  table[unsigned(ir::OpKind::Concat)] = selectConcat;
}

} // namespace tenon::codegen
