//===- FewRows.cpp - what GPUs do for a few rows at a time ---------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/select/FewRows.h"
#include "codegen/select/Tensor.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace tenon::codegen {

using ir::ElementType;
using ir::OpKind;

Dim isAtMost(Dim value, int64_t limit) {
  return Dim::min(Dim::max(Dim(limit + 1) - value, 0), 1);
}

Dim isAbove(Dim value, int64_t limit) {
  return Dim::min(Dim::max(value - Dim(limit), 0), 1);
}

namespace {

struct GemvTuning {
  llvm::StringLiteral name;
  int64_t warps, kSplit, columnsOfWarp;

  int64_t threads() const { return warps * 32; }
  int64_t columns() const { return warps / kSplit * columnsOfWarp; }
};

constexpr GemvTuning gemvTunings[] = {
#define TN_GEMV_TUNING(NAME, WARPS, K_SPLIT, COLUMNS)                          \
  {#NAME, WARPS, K_SPLIT, COLUMNS},
#include "codegen/kernels/cuda/tunings.def"
};

/// Warps share the k of a column where there are few columns; all of a block's,
/// where k is great.
const GemvTuning &chooseGemv(Dim n, Dim k) {
  constexpr int64_t manyColumns = 8192, greatK = 4096;
  llvm::StringRef wanted = n.constant().value_or(0) >= manyColumns ? "wide"
                           : k.constant().value_or(0) >= greatK    ? "deep"
                                                                   : "narrow";
  return *llvm::find_if(gemvTunings, [&](const GemvTuning &tuning) {
    return tuning.name == wanted;
  });
}

/// The matrix as the kernel takes it: its name, its part of the Cfg, its views.
struct Matrix {
  llvm::StringRef kernel;
  Config config;
  std::vector<View> views;
  ElementType element; ///< that the left operand must have
};

/// What a product does to its rows before it multiplies them.
struct RowsNorm {
  const ir::Op *op = nullptr;
  View x;
  std::vector<View> operands; ///< gamma, beta
  bool hasGamma = false, hasBeta = false;
};

std::optional<View> flatRows(const View &view) {
  if (view.rank() < 2)
    return std::nullopt;
  return view.rank() == 2 ? view : mergeDims(view, 0, view.rank() - 1);
}

/// The norm whose result alone \p product multiplies, if its rows lie like
/// those of a, in f32 or \p element, and its operands are of \p element.
std::optional<RowsNorm> normOf(const Lowering &lowering, const ir::Op &product,
                               const View &a, ElementType element) {
  const ir::Op *norm = lowering.maker(product.operand(0))->def();
  if (!norm ||
      (norm->kind() != OpKind::RmsNorm && norm->kind() != OpKind::LayerNorm))
    return std::nullopt;
  const ir::Value *x = norm->operand(0);
  if (norm->attrs<ir::NormAttrs>().axis + 1 != int64_t(x->rank()))
    return std::nullopt;
  std::optional<View> rows = flatRows(lowering.view(x));
  RowsNorm found;
  found.op = norm;
  found.hasGamma = norm->operand(1);
  found.hasBeta = norm->operand(2);
  for (unsigned i : {1u, 2u})
    if (norm->operand(i))
      found.operands.push_back(lowering.view(norm->operand(i)));
  bool single = rows && rows->element == ElementType::F32;
  bool fits = rows && (single || rows->element == element) && a.rank() == 2 &&
              satisfies(*rows, Strides::InnerContiguous) &&
              llvm::all_of(found.operands, [&](const View &view) {
                return view.element == element && isContiguous(view);
              });
  if (!fits)
    return std::nullopt;
  found.x = *rows;
  found.x.shape = a.shape;
  return found;
}

/// \p value with every element in memory, as kernels of codes read scales.
ir::ConstantRef spread(const ir::ConstantRef &value) {
  return value->splatValue()
             ? ir::Constant::copy(value->element(), value->shape(),
                                  value->materialize(), value->name())
             : value;
}

Matrix matrixOf(Lowering &lowering, const QuantisedMatrix &codes,
                ElementType element) {
  Matrix m;
  m.kernel = "gemv_codes";
  m.element = element;
  ir::ConstantRef zeros = lowering.zerosOf(codes);
  m.config.type("Scale", ElementType::F32)
      .type("Zero", zeros ? zeros->element() : ElementType::F32)
      .rank("bits", ir::bitWidth(codes.codes->element()))
      .integer("block", codes.block)
      .flag("zeros", zeros != nullptr)
      .number("zero", codes.zero);
  m.views = {lowering.bytes(codes.codes),
             lowering.weight(spread(codes.scales))};
  if (zeros)
    m.views.push_back(lowering.weight(spread(zeros)));
  return m;
}

/// The launch of a kernel for few rows, but for the epilogue and the result.
LaunchSpec gemvLaunch(const Product &p, const Matrix &matrix,
                      const RowsNorm &norm, int64_t rows, bool pair) {
  const GemvTuning &tuning = chooseGemv(p.n(), p.k());
  LaunchSpec spec;
  spec.kernel = matrix.kernel;
  spec.config = matrix.config;
  llvm::StringRef kind = !norm.op                             ? "none"
                         : norm.op->kind() == OpKind::RmsNorm ? "rms"
                                                              : "layer";
  double epsilon = norm.op ? norm.op->attrs<ir::NormAttrs>().epsilon : 0.0;
  View rowsOfA = norm.op ? norm.x : p.a;
  spec.config.type("In", p.a.element)
      .type("A", rowsOfA.element)
      .type("Out", p.c.element)
      .raw("using", "Tiling",
           llvm::formatv("tn::GemvTiling<{0}, {1}, {2}>", tuning.warps,
                         tuning.kSplit, tuning.columnsOfWarp)
               .str())
      .rank("rows", rows)
      .rank("rank", p.c.rank())
      .raw("tn::RowNorm", "norm", ("tn::RowNorm::" + kind).str())
      .number("epsilon", epsilon)
      .flag("has_gamma", norm.hasGamma)
      .flag("has_beta", norm.hasBeta)
      .flag("pair", pair);
  spec.operands = {rowsOfA};
  llvm::append_range(spec.operands, matrix.views);
  llvm::append_range(spec.operands, norm.operands);
  kernel::Geometry &geometry = spec.geometry.emplace();
  geometry.threads = tuning.threads();
  geometry.grid[0] = Dim::ceilDiv(p.n(), Dim(tuning.columns()));
  geometry.grid[1] = Dim::ceilDiv(p.m(), Dim(rows));
  geometry.grid[2] = Dim::min(ir::numElements(p.batch()), Dim(65535));
  return spec;
}

/// Rows that are handled together, where few are there.
int64_t rowsTogether(Dim m) {
  return std::clamp<int64_t>(m.constant().value_or(fewRows), 1, fewRows / 2);
}

//===----------------------------------------------------------------------===//
// The map behind a product
//===----------------------------------------------------------------------===//

/// The map that alone uses a product's columns: the first half with the second.
struct HalvesMap {
  const ir::Op *op = nullptr;
  bool swapped = false; ///< its first argument is the second half
};

/// Whether \p slice is columns [begin, begin + half) of its operand.
bool isColumns(const ir::Op &slice, Dim begin, Dim half) {
  const auto &attrs = slice.attrs<ir::SliceAttrs>();
  const ir::Value *from = slice.operand(0);
  unsigned last = from->rank() - 1;
  for (unsigned d = 0; d <= last; ++d) {
    Dim start = d == last ? begin : Dim(0);
    Dim size = d == last ? half : from->shape()[d];
    if (attrs.starts[d] != start || attrs.sizes[d] != size ||
        attrs.steps[d] != 1)
      return false;
  }
  return true;
}

HalvesMap mapOfHalves(const Lowering &lowering, const ir::Op &product) {
  const ir::Value *y = lowering.stored(product.result());
  if (y->rank() < 2)
    return {};
  std::optional<int64_t> columns = y->shape().back().constant();
  if (product.region() || !columns || *columns % 2 != 0 ||
      y->uses().size() != 2)
    return {};
  HalvesMap found;
  for (const ir::Use &use : y->uses()) {
    const ir::Op *slice = use.op;
    if (slice->kind() != OpKind::Slice || !slice->result()->hasOneUse())
      return {};
    bool second = isColumns(*slice, Dim(*columns / 2), Dim(*columns / 2));
    if (!second && !isColumns(*slice, Dim(0), Dim(*columns / 2)))
      return {};
    ir::Use next = slice->result()->uses().front();
    if (next.op->kind() != OpKind::Map || next.op->numOperands() != 2 ||
        next.op->numResults() != 1 || (found.op && found.op != next.op))
      return {};
    found.op = next.op;
    found.swapped = second == (next.index == 0);
  }
  return found;
}

/// The map's function of both sums: the first is the kernel's, the other a
/// scalar operand.
kernel::Functor functorOfSums(const HalvesMap &map) {
  kernel::Functor functor = functorOf(*map.op->region());
  functor.arguments[0] = {ElementType::F32, kernel::Access::Value};
  functor.arguments[1] = {ElementType::F32, kernel::Access::Scalar};
  auto swap = [&](unsigned &value) {
    if (map.swapped && value < 2)
      value = 1 - value;
  };
  for (kernel::Functor::Node &node : functor.nodes)
    llvm::for_each(node.operands, swap);
  llvm::for_each(functor.results, swap);
  return functor;
}

/// The product with the map behind it, if there is one that the kernel can do:
/// launched where the map is.
void keepPair(Lowering &lowering, const ir::Op &product, const Product &p,
              const Matrix &matrix, const RowsNorm &norm) {
  HalvesMap map = mapOfHalves(lowering, product);
  if (!map.op || p.c.rank() != 2)
    return;
  kernel::Functor functor = functorOfSums(map);
  if (unsupportedElement(functor))
    return;
  std::optional<View> c =
      flatRows(lowering.result(map.op->result(), Strides::InnerContiguous));
  if (!c || !satisfies(*c, Strides::InnerContiguous) || !isGpuFloat(c->element))
    return;
  Product half = p;
  half.c = *c;
  half.c.shape[0] = p.m();
  LaunchSpec spec = gemvLaunch(half, matrix, norm, rowsTogether(p.m()), true);
  spec.config.types("Operands", {});
  spec.functors.push_back(functor);
  spec.flops = ir::numElements(p.c.shape) * p.k() * Dim(2);
  spec.results = {half.c};
  Lowering::PairedMap pair{std::move(spec), isAtMost(p.m(), fewRows),
                           isAbove(p.m(), fewRows)};
  lowering.keepPair(product, *map.op, std::move(pair));
}

} // namespace

bool fitsGpu(const QuantisedMatrix &codes) { return codes.block % 16 == 0; }

LaunchSpec codesProduct(Lowering &lowering, const Product &p,
                        const QuantisedMatrix &codes,
                        const Epilogue &epilogue) {
  Matrix matrix = matrixOf(lowering, codes, p.a.element);
  ir::Shape shape(p.batch().begin(), p.batch().end());
  shape.append(p.a.shape.end() - 2, p.a.shape.end());
  View a = lowering.broadcast(p.a, shape);
  if (auto tiled = tensorCodes(lowering, a, p.c, epilogue)) {
    tiled->kernel = "gemm_codes";
    llvm::append_range(tiled->config.members, matrix.config.members);
    tiled->operands = {a};
    llvm::append_range(tiled->operands, matrix.views);
    return std::move(*tiled);
  }
  LaunchSpec spec = gemvLaunch(p, matrix, {}, fewRows, false);
  spec.config.types("Operands", epilogue.elements);
  return spec;
}

Dim launchFewRows(Lowering &lowering, const ir::Op &op, Product &p,
                  const QuantisedMatrix *codes, const Epilogue &epilogue) {
  Dim few = isAtMost(p.m(), fewRows), many = isAbove(p.m(), fewRows);
  if (few.isConstant(0) || (!few.isConstant(1) && !lowering.decodes()))
    return 1;
  if (!isGpuFloat(p.a.element) || !isGpuFloat(p.c.element) ||
      !satisfies(p.a, Strides::InnerContiguous) ||
      !satisfies(p.c, Strides::InnerContiguous))
    return 1;
  Matrix matrix;
  if (codes) {
    matrix = matrixOf(lowering, *codes, p.a.element);
  } else {
    std::optional<View> columns;
    if (p.a.element == p.b.element && p.b.rank() == 2 && p.c.rank() == 2)
      columns = lowering.columns(p.b);
    if (!columns)
      return 1;
    p.b = *columns;
    matrix.kernel = "gemv";
    matrix.views = {*columns};
    matrix.element = p.b.element;
  }
  RowsNorm norm =
      normOf(lowering, op, p.a, matrix.element).value_or(RowsNorm());
  if (norm.op)
    lowering.noteNormTaken(*norm.op, many);
  keepPair(lowering, op, p, matrix, norm);
  if (lowering.hasPair(op))
    return many;
  LaunchSpec spec = gemvLaunch(p, matrix, norm, rowsTogether(p.m()), false);
  spec.config.types("Operands", epilogue.elements);
  addEpilogue(spec, p, epilogue);
  Lowering::When when(lowering, few);
  lowering.launch(op, std::move(spec));
  return many;
}

} // namespace tenon::codegen
