//===- Reduce.cpp - reductions and searches for the greatest -------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/emit/CppText.h"
#include "codegen/select/Lowering.h"
#include "ir/support/Diag.h"

namespace tenon::codegen {

using ir::OpKind;

namespace {

/// \p view with the dimensions that were reduced away, as size 1, if \p op
/// dropped them.
View withReducedDims(View view, llvm::ArrayRef<int64_t> axes, bool kept) {
  if (!kept)
    for (int64_t axis : axes)
      view = insertDim(view, axis);
  return view;
}

llvm::StringRef reductionName(OpKind kind) {
  switch (kind) {
  case OpKind::ReduceSum:
    return "sum";
  case OpKind::ReduceMean:
    return "mean";
  case OpKind::ReduceMax:
    return "max";
  case OpKind::ReduceMin:
    return "min";
  case OpKind::ReduceProd:
    return "prod";
  case OpKind::ReduceL1:
    return "l1";
  case OpKind::ReduceL2:
    return "l2";
  case OpKind::ReduceSumSquare:
    return "sum_square";
  case OpKind::ReduceLogSum:
    return "log_sum";
  case OpKind::ReduceLogSumExp:
    return "log_sum_exp";
  default:
    llvm_unreachable("not a reduction");
  }
}

llvm::Error selectReduce(Lowering &lowering, const ir::Op &op) {
  const auto &attrs = op.attrs<ir::ReduceAttrs>();
  const ir::Value *x = op.operand(0);
  if (cppType(x->element()).empty())
    return unsupportedType(op, x->element(), "f64, f32, bool and the integers");
  uint32_t axes = 0;
  if (x->rank() > 32)
    return userError("operand 'x' has rank {0}; reductions of rank 32 at most "
                     "are supported",
                     x->rank());
  for (int64_t axis : attrs.axes)
    axes |= 1u << axis;
  bool isExtreme =
      op.kind() == OpKind::ReduceMax || op.kind() == OpKind::ReduceMin;
  if (isExtreme && !lowering.isCuda() && x->rank() > 0 &&
      x->element() == ir::ElementType::F32 && attrs.axes.size() == x->rank()) {
    constexpr int64_t mostThreads = 1024; // kernels/cpu/reduce_extreme.h
    LaunchSpec all;
    all.kernel = "reduce_extreme";
    all.config.rank("rank", x->rank())
        .flag("greatest", op.kind() == OpKind::ReduceMax);
    all.operands = {lowering.view(x)};
    all.results = {lowering.result(op.result(), Strides::Any)};
    all.flops = ir::numElements(x->shape());
    all.scratchBytes = Dim(int64_t(sizeof(float)) * mostThreads);
    lowering.launch(op, std::move(all));
    return llvm::Error::success();
  }
  LaunchSpec spec;
  spec.kernel = "reduce";
  spec.config.type("T", x->element())
      .rank("rank", x->rank())
      .raw("uint32_t", "axes", std::to_string(axes))
      .raw("tn::Reduce", "op",
           ("tn::Reduce::" + reductionName(op.kind())).str());
  spec.operands = {lowering.view(x)};
  spec.results = {withReducedDims(lowering.result(op.result(), Strides::Any),
                                  attrs.axes, attrs.keepdims)};
  spec.flops = ir::numElements(x->shape());
  if (lowering.isCuda()) {
    Dim reduced = 1;
    for (int64_t axis : attrs.axes)
      reduced = reduced * x->shape()[axis];
    std::optional<int64_t> count = reduced.constant();
    bool few = count && *count <= 32;
    spec.grain = few ? Grain::Thread : Grain::Block;
    spec.config.flag("per_block", !few);
  }
  lowering.launch(op, std::move(spec));
  return llvm::Error::success();
}

llvm::Error selectArgReduce(Lowering &lowering, const ir::Op &op) {
  const auto &attrs = op.attrs<ir::ArgReduceAttrs>();
  const ir::Value *x = op.operand(0);
  if (cppType(x->element()).empty())
    return unsupportedType(op, x->element(), "f64, f32 and the integers");
  LaunchSpec spec;
  spec.kernel = "arg_reduce";
  spec.config.type("T", x->element())
      .rank("rank", x->rank())
      .rank("axis", attrs.axis)
      .flag("largest", op.kind() == OpKind::ArgMax)
      .flag("select_last", attrs.selectLast);
  spec.operands = {lowering.view(x)};
  spec.results = {withReducedDims(lowering.result(op.result(), Strides::Any),
                                  {attrs.axis}, attrs.keepdims)};
  spec.flops = ir::numElements(x->shape());
  lowering.launch(op, std::move(spec));
  return llvm::Error::success();
}

} // namespace

void addReductions(SelectTable &table) {
  for (unsigned kind = 0; kind < ir::numOpKinds; ++kind)
    if (ir::opDef(OpKind(kind)).is(ir::ReductionOp))
      table[kind] = selectReduce;
  table[unsigned(OpKind::ArgMax)] = selectArgReduce;
  table[unsigned(OpKind::ArgMin)] = selectArgReduce;
}

} // namespace tenon::codegen
