//===- Shapes.cpp - constants, and sizes as data -------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/select/Lowering.h"

namespace tenon::codegen {

using ir::OpKind;

namespace {

llvm::Error selectConst(Lowering &lowering, const ir::Op &op) {
  lowering.define(op.result(),
                  lowering.weight(op.attrs<ir::ConstAttrs>().value));
  return llvm::Error::success();
}

llvm::Error selectDims(Lowering &lowering, const ir::Op &op) {
  View to = lowering.result(op.result(), Strides::Contiguous);
  lowering.writeDims(op, op.attrs<ir::DimsAttrs>().values, to);
  return llvm::Error::success();
}

llvm::Error selectBindDims(Lowering &lowering, const ir::Op &op) {
  lowering.bindSymbols(op,
                       lowering.operand(op, op.operand(0), Strides::Contiguous),
                       op.attrs<ir::BindDimsAttrs>().symbols);
  return llvm::Error::success();
}

} // namespace

void addShapes(SelectTable &table) {
  table[unsigned(OpKind::Const)] = selectConst;
  table[unsigned(OpKind::Dims)] = selectDims;
  table[unsigned(OpKind::BindDims)] = selectBindDims;
}

} // namespace tenon::codegen
