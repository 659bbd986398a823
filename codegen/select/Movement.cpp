//===- Movement.cpp - pad, trilu, range, one_hot, scans, non_zero, rotary ===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/emit/CppText.h"
#include "codegen/select/Lowering.h"

namespace tenon::codegen {

using ir::ElementType;
using ir::OpKind;

namespace {

constexpr llvm::StringLiteral computed = "f64, f32, bool and the integers";

/// Launches what \p spec says with the op's operands and first result, all
/// with any strides.
llvm::Error finish(Lowering &lowering, const ir::Op &op, LaunchSpec spec) {
  for (const ir::Value *operand : op.operands())
    if (operand)
      spec.operands.push_back(lowering.view(operand));
  spec.results = {lowering.result(op.result(), Strides::Any)};
  lowering.launch(op, std::move(spec));
  return llvm::Error::success();
}

llvm::Error selectPad(Lowering &lowering, const ir::Op &op) {
  const auto &attrs = op.attrs<ir::PadAttrs>();
  static constexpr llvm::StringLiteral modes[] = {
      "tn::Pad::constant", "tn::Pad::reflect", "tn::Pad::edge",
      "tn::Pad::wrap"};
  LaunchSpec spec;
  spec.kernel = "pad";
  spec.config.type("T", movedAs(op.result()->element()))
      .rank("rank", op.result()->rank())
      .flag("has_value", op.operand(1))
      .raw("tn::Pad", "mode", modes[unsigned(attrs.mode)]);
  for (unsigned i = 0; i < op.result()->rank(); ++i) {
    spec.params.push_back(attrs.low[i]);
    spec.params.push_back(attrs.high[i]);
  }
  return finish(lowering, op, std::move(spec));
}

llvm::Error selectTrilu(Lowering &lowering, const ir::Op &op) {
  const auto &attrs = op.attrs<ir::TriluAttrs>();
  LaunchSpec spec;
  spec.kernel = "trilu";
  spec.config.type("T", movedAs(op.result()->element()))
      .rank("rank", op.result()->rank())
      .flag("upper", attrs.upper);
  spec.params = {attrs.k};
  return finish(lowering, op, std::move(spec));
}

llvm::Error selectRange(Lowering &lowering, const ir::Op &op) {
  if (cppType(op.result()->element()).empty())
    return unsupportedType(op, op.result()->element(), computed);
  LaunchSpec spec;
  spec.kernel = "range";
  spec.config.type("T", op.result()->element());
  return finish(lowering, op, std::move(spec));
}

llvm::Error selectOneHot(Lowering &lowering, const ir::Op &op) {
  ElementType index = op.operand(0)->element();
  if (cppType(index).empty())
    return unsupportedType(op, index, computed);
  LaunchSpec spec;
  spec.kernel = "one_hot";
  spec.config.type("T", movedAs(op.result()->element()))
      .type("Index", index)
      .rank("rank", op.result()->rank())
      .rank("axis", op.attrs<ir::OneHotAttrs>().axis);
  return finish(lowering, op, std::move(spec));
}

llvm::Error selectCumSum(Lowering &lowering, const ir::Op &op) {
  const auto &attrs = op.attrs<ir::CumSumAttrs>();
  if (cppType(op.result()->element()).empty())
    return unsupportedType(op, op.result()->element(), computed);
  LaunchSpec spec;
  spec.kernel = "cum_sum";
  spec.config.type("T", op.result()->element())
      .rank("rank", op.result()->rank())
      .rank("axis", attrs.axis)
      .flag("product", op.kind() == OpKind::CumProd)
      .flag("exclusive", attrs.exclusive)
      .flag("reverse", attrs.reverse);
  return finish(lowering, op, std::move(spec));
}

llvm::Error selectGreedyKeep(Lowering &lowering, const ir::Op &op) {
  LaunchSpec spec;
  spec.kernel = "greedy_keep";
  spec.config.rank("rank", op.result()->rank());
  return finish(lowering, op, std::move(spec));
}

llvm::Error selectTopK(Lowering &lowering, const ir::Op &op) {
  const auto &attrs = op.attrs<ir::TopKAttrs>();
  const ir::Value *x = op.operand(0);
  if (cppType(x->element()).empty())
    return unsupportedType(op, x->element(), computed);
  LaunchSpec spec;
  spec.kernel = "top_k";
  spec.config.type("T", x->element())
      .rank("rank", x->rank())
      .rank("axis", attrs.axis)
      .flag("largest", attrs.largest);
  spec.operands = {lowering.view(x)};
  for (const ir::Value *result : op.results())
    spec.results.push_back(lowering.result(result, Strides::Any));
  lowering.launch(op, std::move(spec));
  return llvm::Error::success();
}

/// Counts, makes the count a size, and then lists: the segment ends between.
llvm::Error selectNonZero(Lowering &lowering, const ir::Op &op) {
  const ir::Value *x = op.operand(0);
  if (cppType(x->element()).empty())
    return unsupportedType(op, x->element(), computed);
  LaunchSpec count;
  count.kernel = "count_non_zero";
  count.config.type("T", x->element()).rank("rank", x->rank());
  count.operands = {lowering.view(x)};
  View number = lowering.temporary(ElementType::I64, {});
  count.results = {number};
  count.items = 1;
  lowering.launch(op, std::move(count));
  lowering.bindSymbols(op, number, {op.attrs<ir::CountAttrs>().count});
  LaunchSpec list;
  list.kernel = "non_zero";
  list.config.type("T", x->element()).rank("rank", x->rank());
  list.items = 1;
  return finish(lowering, op, std::move(list));
}

/// One part of what kernels/cuda/rotary.cuh does; JoinParts.h adds others.
LaunchSpec rotaryOnGpu(const ir::RotaryAttrs &attrs,
                       llvm::ArrayRef<View> tables, const View &from,
                       const View &to) {
  LaunchSpec spec;
  spec.kernel = "rotary_parts";
  spec.config.rank("parts", 1)
      .integer("rotated", 1)
      .types("Inputs", {from.element})
      .types("Results", {to.element})
      .integer("rotary_dim", attrs.rotaryDim)
      .integer("half", attrs.rotaryDim / 2)
      .flag("interleaved", attrs.interleaved);
  spec.operands = {tables[0], tables[1], from};
  spec.overlays = {2};
  spec.flops = ir::numElements(to.shape) * Dim(3);
  spec.items = ir::numElements(ir::ShapeRef(to.shape).drop_back()) *
               (to.shape[3] - Dim(attrs.rotaryDim / 2));
  spec.results = {to};
  return spec;
}

llvm::Error selectRotary(Lowering &lowering, const ir::Op &op) {
  const auto &attrs = op.attrs<ir::RotaryAttrs>();
  const ir::Value *x = op.operand(0);
  if (x->element() != ElementType::F32 && x->element() != ElementType::F64)
    return unsupportedType(op, x->element(), "f32 and f64");
  View from = lowering.view(x);
  std::vector<View> tables;
  for (unsigned i : {1u, 2u})
    tables.push_back(lowering.broadcast(
        lowering.view(op.operand(i)),
        {x->shape()[0], x->shape()[1], Dim(attrs.rotaryDim / 2)}));
  View to = lowering.result(op.result(), Strides::Any);
  if (lowering.isCuda() && x->element() == ElementType::F32) {
    lowering.launch(op, rotaryOnGpu(attrs, tables, from, to));
    return llvm::Error::success();
  }
  LaunchSpec spec;
  spec.kernel = "rotary";
  spec.config.type("T", x->element())
      .integer("rotary_dim", attrs.rotaryDim)
      .integer("half", attrs.rotaryDim / 2)
      .flag("interleaved", attrs.interleaved);
  spec.operands = {from, tables[0], tables[1]};
  spec.overlays = {0};
  spec.flops = ir::numElements(x->shape()) * Dim(3);
  spec.results = {to};
  lowering.launch(op, std::move(spec));
  return llvm::Error::success();
}

} // namespace

void addMovement(SelectTable &table) {
  table[unsigned(OpKind::Pad)] = selectPad;
  table[unsigned(OpKind::Trilu)] = selectTrilu;
  table[unsigned(OpKind::Range)] = selectRange;
  table[unsigned(OpKind::OneHot)] = selectOneHot;
  table[unsigned(OpKind::CumSum)] = selectCumSum;
  table[unsigned(OpKind::CumProd)] = selectCumSum;
  table[unsigned(OpKind::GreedyKeep)] = selectGreedyKeep;
  table[unsigned(OpKind::TopK)] = selectTopK;
  table[unsigned(OpKind::NonZero)] = selectNonZero;
  table[unsigned(OpKind::Rotary)] = selectRotary;
}

} // namespace tenon::codegen
