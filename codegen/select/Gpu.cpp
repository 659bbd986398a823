//===- Gpu.cpp - what lowering does for GPUs alone -----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/select/Lowering.h"
#include "llvm/ADT/STLExtras.h"

namespace tenon::codegen {

std::vector<const GpuArch *> Lowering::gpuArchs() const {
  return options.archs.empty() ? llvm::cantFail(parseGpuArchs(""))
                               : options.archs;
}

unsigned Lowering::lowestArch() const {
  unsigned lowest = ~0u;
  for (const GpuArch *arch : gpuArchs())
    lowest = std::min(lowest, arch->number);
  return lowest;
}

unsigned Lowering::leastMultiprocessors() const {
  unsigned least = ~0u;
  for (const GpuArch *arch : gpuArchs())
    least = std::min(least, arch->multiprocessors);
  return least;
}

bool Lowering::hasHopper() const {
  return llvm::any_of(gpuArchs(), [](const GpuArch *arch) {
    return arch->number == 90 && arch->exact;
  });
}

namespace {

bool isHalf(const ir::Value *value) {
  return value->element() == ir::ElementType::F16 ||
         value->element() == ir::ElementType::BF16;
}

/// Whether a GPU's kernel of the use's op widens halves as it loads them.
bool widens(const ir::Use &use) {
  switch (use.op->kind()) {
  case ir::OpKind::MatMul:
  case ir::OpKind::Conv:
    return use.index < 2;
  case ir::OpKind::Attention:
  case ir::OpKind::LayerNorm:
  case ir::OpKind::RmsNorm:
  case ir::OpKind::Softmax:
  case ir::OpKind::LogSoftmax:
    return true;
  default:
    return false;
  }
}

} // namespace

/// Finds the casts between halves and f32 that are no launches of their own:
/// those whose every user widens, and those that alone use a result.
void Lowering::absorbCasts() {
  for (const ir::Op &op : func.body) {
    if (op.kind() != ir::OpKind::Cast)
      continue;
    const ir::Value *from = op.operand(0), *to = op.result();
    if (isHalf(from) && to->element() == ir::ElementType::F32 &&
        llvm::all_of(to->uses(), widens))
      absorbedCasts.insert(&op);
    bool stores = isHalf(to) && from->element() == ir::ElementType::F32 &&
                  from->def() && from->uses().size() == 1 &&
                  !from->def()->region() &&
                  widens({const_cast<ir::Op *>(from->def()), 0});
    if (stores) {
      absorbedCasts.insert(&op);
      storedAs[from] = to;
    }
  }
}

/// Gives \p spec its grid, and its Cfg what every CUDA unit's has
/// (kernels/cuda/common.cuh).
void Lowering::placeOnGrid(LaunchSpec &spec) const {
  constexpr int64_t threads = 256;
  if (!spec.geometry) {
    constexpr int64_t perBlock[] = {threads * 4, threads, threads / 32, 1};
    Dim items =
        spec.items ? *spec.items : ir::numElements(spec.results.front().shape);
    kernel::Geometry geometry;
    geometry.threads = threads;
    geometry.grid[0] = Dim::ceilDiv(items, Dim(perBlock[unsigned(spec.grain)]));
    spec.geometry = geometry;
  }
  size_t rank = 1;
  for (const std::vector<View> *views : {&spec.operands, &spec.results})
    for (const View &view : *views)
      rank = std::max<size_t>(rank, view.rank());
  auto complete = [&](Config &config, unsigned threads) {
    config.rank("num_views", spec.operands.size() + spec.results.size())
        .rank("num_params", spec.params.size())
        .rank("view_rank", rank)
        .rank("threads", threads);
  };
  complete(spec.config, spec.geometry->threads);
  for (VariantSpec &variant : spec.variants)
    complete(variant.config, variant.geometry.threads);
}

} // namespace tenon::codegen
