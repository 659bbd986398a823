//===- Indexing.cpp - gathers and scatters -------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/emit/CppText.h"
#include "codegen/select/Lowering.h"
#include "ir/support/Diag.h"

namespace tenon::codegen {

using ir::ElementType;
using ir::OpKind;

namespace {

/// Element type, index type and ranks: what all of them start with.
llvm::Expected<LaunchSpec> startSpec(Lowering &lowering, const ir::Op &op,
                                     llvm::StringRef kernel,
                                     ElementType element) {
  ElementType index = op.operand(1)->element();
  if (index != ElementType::I64 && index != ElementType::I32)
    return unsupportedType(op, index, "i64 and i32 indices");
  if (ir::bitWidth(element) < 8)
    return unsupportedType(op, element, "types of at least 8 bits");
  LaunchSpec spec;
  spec.kernel = kernel;
  spec.config.type("T", element).type("Index", index);
  for (const ir::Value *operand : op.operands())
    spec.operands.push_back(lowering.view(operand));
  return spec;
}

llvm::Error finish(Lowering &lowering, const ir::Op &op, LaunchSpec spec) {
  spec.results = {lowering.result(op.result(), Strides::Any)};
  bool scatters =
      op.kind() == OpKind::ScatterElements || op.kind() == OpKind::ScatterNd;
  if (scatters && lowering.isCuda()) {
    // Blocks can't wait for each other: the copy is a launch of its own. What
    // a cache holds is there already.
    const View &from = spec.operands[0], &to = spec.results[0];
    bool inPlace = from.buffer == to.buffer && from.offset == to.offset &&
                   from.strides == to.strides;
    if (!inPlace)
      lowering.copy(op, from, to);
    spec.operands[0] = spec.results[0];
    spec.overlays.clear();
    spec.items = ir::numElements(op.operand(2)->shape());
  }
  lowering.launch(op, std::move(spec));
  return llvm::Error::success();
}

llvm::Error selectGather(Lowering &lowering, const ir::Op &op) {
  llvm::Expected<LaunchSpec> spec =
      startSpec(lowering, op, "gather", movedAs(op.operand(0)->element()));
  if (!spec)
    return spec.takeError();
  spec->config.rank("data_rank", op.operand(0)->rank());
  spec->config.rank("axis", op.attrs<ir::AxisAttrs>().axis);
  spec->config.rank("indices_rank", op.operand(1)->rank());
  // Of the table only the chosen rows are read.
  const ir::Value *indices = op.operand(1), *y = op.result();
  spec->bytes =
      byteCount(indices->element(), ir::numElements(indices->shape())) +
      byteCount(y->element(), ir::numElements(y->shape())) * Dim(2);
  if (lowering.isCuda()) {
    int64_t axis = op.attrs<ir::AxisAttrs>().axis;
    ir::ShapeRef data = op.operand(0)->shape();
    std::optional<int64_t> row =
        ir::numElements(data.drop_front(axis + 1)).constant();
    spec->grain = row && *row < 32 ? Grain::Thread : Grain::Warp;
    spec->config.flag("row_per_warp", spec->grain == Grain::Warp);
    spec->items = ir::numElements(data.take_front(axis)) *
                  ir::numElements(op.operand(1)->shape());
  }
  return finish(lowering, op, std::move(*spec));
}

llvm::Error selectGatherElements(Lowering &lowering, const ir::Op &op) {
  llvm::Expected<LaunchSpec> spec = startSpec(
      lowering, op, "gather_elements", movedAs(op.operand(0)->element()));
  if (!spec)
    return spec.takeError();
  spec->config.rank("rank", op.operand(0)->rank());
  spec->config.rank("axis", op.attrs<ir::AxisAttrs>().axis);
  return finish(lowering, op, std::move(*spec));
}

/// The number of indices that make a multi-index, which must be known now.
llvm::Expected<int64_t> depthOf(const ir::Op &op) {
  const ir::Value *indices = op.operand(1);
  if (std::optional<int64_t> depth = indices->shape().back().constant())
    return *depth;
  return userError("the last dimension of operand 'indices' must be known when "
                   "compiling; name it with --dim");
}

llvm::Error selectGatherNd(Lowering &lowering, const ir::Op &op) {
  llvm::Expected<LaunchSpec> spec =
      startSpec(lowering, op, "gather_nd", movedAs(op.operand(0)->element()));
  if (!spec)
    return spec.takeError();
  llvm::Expected<int64_t> depth = depthOf(op);
  if (!depth)
    return depth.takeError();
  spec->config.rank("data_rank", op.operand(0)->rank());
  spec->config.rank("indices_rank", op.operand(1)->rank());
  spec->config.rank("batch_dims", op.attrs<ir::GatherNdAttrs>().batchDims);
  spec->config.rank("depth", *depth);
  return finish(lowering, op, std::move(*spec));
}

llvm::StringRef reductionName(ir::ScatterReduction reduction) {
  static constexpr llvm::StringLiteral names[] = {
      "tn::Reduction::none", "tn::Reduction::add", "tn::Reduction::mul",
      "tn::Reduction::min", "tn::Reduction::max"};
  return names[unsigned(reduction)];
}

/// Scatters that compute need the true element type.
llvm::Expected<LaunchSpec> startScatter(Lowering &lowering, const ir::Op &op,
                                        llvm::StringRef kernel,
                                        ir::ScatterReduction reduction) {
  ElementType element = op.operand(0)->element();
  if (reduction == ir::ScatterReduction::None)
    element = movedAs(element);
  else if (cppType(element).empty())
    return unsupportedType(op, element, "f64, f32 and the integers");
  llvm::Expected<LaunchSpec> spec = startSpec(lowering, op, kernel, element);
  if (spec) {
    spec->config.raw("tn::Reduction", "reduction", reductionName(reduction));
    spec->overlays = {0};
  }
  return spec;
}

llvm::Error selectScatterElements(Lowering &lowering, const ir::Op &op) {
  const auto &attrs = op.attrs<ir::ScatterElementsAttrs>();
  llvm::Expected<LaunchSpec> spec =
      startScatter(lowering, op, "scatter_elements", attrs.reduction);
  if (!spec)
    return spec.takeError();
  spec->config.rank("rank", op.operand(0)->rank());
  spec->config.rank("axis", attrs.axis);
  return finish(lowering, op, std::move(*spec));
}

llvm::Error selectScatterNd(Lowering &lowering, const ir::Op &op) {
  llvm::Expected<LaunchSpec> spec = startScatter(
      lowering, op, "scatter_nd", op.attrs<ir::ScatterNdAttrs>().reduction);
  if (!spec)
    return spec.takeError();
  llvm::Expected<int64_t> depth = depthOf(op);
  if (!depth)
    return depth.takeError();
  spec->config.rank("data_rank", op.operand(0)->rank());
  spec->config.rank("indices_rank", op.operand(1)->rank());
  spec->config.rank("depth", *depth);
  return finish(lowering, op, std::move(*spec));
}

} // namespace

void addIndexing(SelectTable &table) {
  table[unsigned(OpKind::Gather)] = selectGather;
  table[unsigned(OpKind::GatherElements)] = selectGatherElements;
  table[unsigned(OpKind::GatherNd)] = selectGatherNd;
  table[unsigned(OpKind::ScatterElements)] = selectScatterElements;
  table[unsigned(OpKind::ScatterNd)] = selectScatterNd;
}

} // namespace tenon::codegen
