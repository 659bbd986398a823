//===- Gpu.cpp - what lowering does for GPUs alone -----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/select/FewRows.h"
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
  case ir::OpKind::Rotary:
    return use.index == 0;
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

const ir::Value *Lowering::maker(const ir::Value *value) const {
  while (value->def() && absorbedCasts.contains(value->def()))
    value = value->def()->operand(0);
  return value;
}

const ir::Value *Lowering::stored(const ir::Value *value) const {
  const ir::Value *cast = storedAs.lookup(value);
  return cast ? cast : value;
}

/// Uses by ops that are not absorbed.
unsigned Lowering::countUses(const ir::Value *value) const {
  unsigned count = 0;
  for (const ir::Use &use : value->uses())
    count += absorbedCasts.contains(use.op) ? countUses(use.op->result()) : 1;
  return count;
}

bool Lowering::findsDecoder() const {
  return !program.states.empty() ||
         llvm::any_of(func.body, [&](const ir::Op &op) {
           return op.kind() == ir::OpKind::Attention &&
                  !provedEqual(op.operand(0)->shape()[1],
                               op.operand(1)->shape()[1]);
         });
}

void Lowering::noteNormTaken(const ir::Op &norm, Dim others) {
  TakenNorm &taken = norms[&norm];
  ++taken.uses;
  taken.others = others;
}

void Lowering::noteNormLaunch(const ir::Op &norm) {
  norms[&norm].launch = program.launches.size() - 1;
}

void Lowering::restrict(kernel::Launch &launch, Dim condition) {
  if (condition.isConstant(1))
    return;
  assert(launch.geometry && "only a launch on a grid can be left out");
  launch.geometry->grid[0] = launch.geometry->grid[0] * condition;
  for (kernel::Variant &variant : launch.variants)
    variant.geometry.grid[0] = variant.geometry.grid[0] * condition;
  if (launch.scratchBytes)
    launch.scratchBytes = *launch.scratchBytes * condition;
  launch.flops = launch.flops * condition;
  launch.bytes = launch.bytes * condition;
}

void Lowering::restrictNorms() {
  for (const auto &[norm, taken] : norms)
    if (taken.uses != 0 && taken.launch != kernel::none &&
        taken.uses == countUses(norm->result()))
      restrict(program.launches[taken.launch], taken.others);
}

void Lowering::keepPair(const ir::Op &product, const ir::Op &map,
                        PairedMap pair) {
  paired.insert(&product);
  pairs.emplace(&map, std::move(pair));
}

Lowering::PairedMap *Lowering::pairOf(const ir::Op &map) {
  auto found = pairs.find(&map);
  return found == pairs.end() ? nullptr : &found->second;
}

std::optional<QuantisedMatrix>
Lowering::quantised(const ir::Op &product) const {
  std::optional<QuantisedMatrix> matrix = quantisedMatrix(product);
  if (matrix && isCuda() && !fitsGpu(*matrix))
    return std::nullopt;
  return matrix;
}

ir::ConstantRef Lowering::zerosOf(const QuantisedMatrix &matrix) {
  ir::ConstantRef &zeros = zeroPoints[matrix.zeros.get()];
  if (!zeros)
    zeros = packedZeros(matrix);
  return zeros;
}

View Lowering::bytes(ir::ConstantRef value) {
  kernel::Weight stored;
  stored.bytes =
      ir::byteSize(value->element(), value->numElements()).value_or(0);
  stored.value = std::move(value);
  int64_t count = stored.bytes;
  return kernel::Program::contiguous(addWeight(std::move(stored)),
                                     {ir::ElementType::U8, {Dim(count)}});
}

std::optional<View> Lowering::columns(const View &view) {
  int64_t size = ir::bitWidth(view.element) / 8;
  auto isAligned = [&](Dim elements) {
    return Dim::divideExactly(elements * Dim(size), 16).has_value();
  };
  bool lieSo = view.strides[0].isConstant(1);
  if (lieSo && isAligned(view.strides[1]) && isAligned(view.offset))
    return view;
  std::optional<kernel::Weight::Matrix> matrix = constantMatrix(*this, view);
  if (!matrix)
    return lieSo ? std::optional(view) : std::nullopt;
  kernel::Weight stored;
  stored.value = constantOf(view);
  stored.layout = kernel::WeightLayout::Columns;
  stored.matrix = *matrix;
  int64_t pitch = (matrix->k * size + 15) / 16 * 16;
  stored.bytes = matrix->n * pitch;
  View columns = kernel::Program::contiguous(
      addWeight(std::move(stored)),
      {view.element, {Dim(matrix->n), Dim(pitch / size)}});
  columns = transposeView(columns, {1, 0});
  columns.shape = view.shape;
  return columns;
}

void completeConfig(Config &config, llvm::ArrayRef<View> views,
                    size_t numParams, unsigned threads) {
  size_t rank = 1;
  for (const View &view : views)
    rank = std::max<size_t>(rank, view.rank());
  config.rank("num_views", views.size())
      .rank("num_params", numParams)
      .rank("view_rank", rank)
      .rank("threads", threads);
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
  std::vector<View> views = spec.operands;
  llvm::append_range(views, spec.results);
  auto complete = [&](Config &config, unsigned threads) {
    completeConfig(config, views, spec.params.size(), threads);
  };
  complete(spec.config, spec.geometry->threads);
  for (VariantSpec &variant : spec.variants)
    complete(variant.config, variant.geometry.threads);
}

} // namespace tenon::codegen
