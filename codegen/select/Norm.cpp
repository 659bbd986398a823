//===- Norm.cpp - layer_norm, rms_norm and softmax -----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/select/Lowering.h"

namespace tenon::codegen {

using ir::ElementType;
using ir::OpKind;

namespace {

/// Rows are the dimensions from `axis`: their product, or dynamic.
void addRows(Config &config, ir::ShapeRef shape, unsigned axis) {
  config.rank("rank", shape.size())
      .rank("axes", shape.size() - axis)
      .size("N", ir::numElements(shape.drop_front(axis)));
}

/// The dimensions of a row must lie contiguously.
View rowsOf(Lowering &lowering, const ir::Op &op, const ir::Value *value,
            unsigned axis) {
  View view = lowering.view(value);
  View row = view;
  row.shape.erase(row.shape.begin(), row.shape.begin() + axis);
  row.strides.erase(row.strides.begin(), row.strides.begin() + axis);
  return isContiguous(row) ? view : lowering.fit(op, view, Strides::Contiguous);
}

/// A GPU gives a short row to a warp and a long one to a block.
Grain rowGrain(ir::ShapeRef row) {
  constexpr int64_t longest = 1024;
  std::optional<int64_t> count = ir::numElements(row).constant();
  return count && *count <= longest ? Grain::Warp : Grain::Block;
}

/// The element types of operands (those with a name) and of the result, as they
/// lie in memory.
void addTypes(LaunchSpec &spec, llvm::ArrayRef<llvm::StringRef> operands,
              llvm::StringRef result) {
  unsigned next = 0;
  for (llvm::StringRef name : operands)
    if (!name.empty())
      spec.config.type(name, spec.operands[next++].element);
  spec.config.type(result, spec.results[0].element);
}

llvm::Error selectNorm(Lowering &lowering, const ir::Op &op) {
  const auto &attrs = op.attrs<ir::NormAttrs>();
  const ir::Value *x = op.operand(0);
  for (const ir::Value *operand : op.operands())
    if (operand && operand->element() != ElementType::F32)
      return unsupportedType(op, operand->element(), "f32");
  LaunchSpec spec;
  bool layer = op.kind() == OpKind::LayerNorm;
  spec.kernel = layer ? "layer_norm_f32" : "rms_norm_f32";
  if (lowering.isCuda()) {
    spec.kernel = layer ? "layer_norm" : "rms_norm";
    spec.items = ir::numElements(x->shape().take_front(attrs.axis));
    spec.grain = rowGrain(x->shape().drop_front(attrs.axis));
    spec.config.flag("row_per_warp", spec.grain == Grain::Warp);
  }
  addRows(spec.config, x->shape(), attrs.axis);
  spec.config.number("epsilon", attrs.epsilon)
      .flag("has_residual", false)
      .flag("has_gamma", op.operand(1))
      .flag("has_beta", op.operand(2))
      .flag("has_mean", false)
      .flag("has_inv_std", false)
      .flag("has_sum", false);
  spec.operands = {rowsOf(lowering, op, x, attrs.axis)};
  for (unsigned i : {1u, 2u})
    if (op.operand(i))
      spec.operands.push_back(
          lowering.operand(op, op.operand(i), Strides::Contiguous));
  spec.overlays = {0};
  spec.flops = ir::numElements(x->shape()) * Dim(8);
  Strides strides = attrs.axis + 1 == int64_t(x->rank())
                        ? Strides::InnerContiguous
                        : Strides::Contiguous;
  spec.results = {lowering.result(op.result(), strides)};
  if (lowering.isCuda())
    addTypes(spec,
             {"X", op.operand(1) ? "Gamma" : "", op.operand(2) ? "Beta" : ""},
             "Y");
  lowering.launch(op, std::move(spec));
  if (lowering.isCuda())
    lowering.noteNormLaunch(op);
  return llvm::Error::success();
}

llvm::Error selectSoftmax(Lowering &lowering, const ir::Op &op) {
  const ir::Value *x = op.operand(0);
  if (x->element() != ElementType::F32)
    return unsupportedType(op, x->element(), "f32");
  int64_t axis = op.attrs<ir::AxisAttrs>().axis;
  // The axis moves last; its stride may be anything.
  llvm::SmallVector<int64_t> perm;
  for (int64_t i = 0; i < int64_t(x->rank()); ++i)
    if (i != axis)
      perm.push_back(i);
  perm.push_back(axis);
  LaunchSpec spec;
  bool log = op.kind() == OpKind::LogSoftmax;
  spec.kernel = log ? "log_softmax_f32" : "softmax_f32";
  if (lowering.isCuda()) {
    spec.kernel = log ? "log_softmax" : "softmax";
    ir::Shape rows(x->shape().begin(), x->shape().end());
    rows.erase(rows.begin() + axis);
    spec.items = ir::numElements(rows);
    spec.grain = rowGrain(x->shape().slice(axis, 1));
    spec.config.flag("row_per_warp", spec.grain == Grain::Warp);
  }
  spec.operands = {transposeView(lowering.view(x), perm)};
  View y = lowering.result(op.result(), Strides::Any);
  spec.results = {transposeView(y, perm)};
  addRows(spec.config, spec.results[0].shape, x->rank() - 1);
  if (lowering.isCuda())
    addTypes(spec, {"X"}, "Y");
  spec.overlays = {0};
  spec.flops = ir::numElements(x->shape()) * Dim(5);
  lowering.launch(op, std::move(spec));
  return llvm::Error::success();
}

} // namespace

void addNorms(SelectTable &table) {
  table[unsigned(OpKind::LayerNorm)] = selectNorm;
  table[unsigned(OpKind::RmsNorm)] = selectNorm;
  table[unsigned(OpKind::Softmax)] = selectSoftmax;
  table[unsigned(OpKind::LogSoftmax)] = selectSoftmax;
}

} // namespace tenon::codegen
