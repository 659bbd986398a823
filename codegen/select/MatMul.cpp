//===- MatMul.cpp - matmul: packed, batched and generic ------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/emit/CppText.h"
#include "codegen/kernels/cpu/codes_pack.h"
#include "codegen/select/Epilogue.h"
#include "codegen/select/FewRows.h"
#include "codegen/select/Loop.h"
#include "codegen/select/Product.h"
#include "codegen/select/Quantised.h"
#include "codegen/select/Tensor.h"
#include "llvm/Support/MathExtras.h"

namespace tenon::codegen {

using ir::ElementType;
using kernel::Weight;

namespace {

/// Whether the artifact should hold \p matrix in panels. One number may stand
/// for a matrix of any size, which only small ones are expanded for.
bool isWorthPacking(const Weight::Matrix &matrix,
                    const ir::Constant &constant) {
  constexpr uint64_t smallFloats = 1 << 24;
  uint64_t floats = llvm::SaturatingMultiply(
      uint64_t(matrix.k), llvm::alignTo(uint64_t(matrix.n), 16));
  // A column is padded to sixteen.
  return floats <= smallFloats || floats / 16 <= constant.numElements();
}

} // namespace

std::optional<Weight::Matrix> constantMatrix(const Lowering &lowering,
                                             const View &b) {
  if (!lowering.constantOf(b))
    return std::nullopt;
  for (Dim size : ir::ShapeRef(b.shape).drop_back(2))
    if (!size.isConstant(1))
      return std::nullopt;
  unsigned rank = b.rank();
  std::optional<int64_t> k = b.shape[rank - 2].constant(),
                         n = b.shape[rank - 1].constant(),
                         offset = b.offset.constant(),
                         row = b.strides[rank - 2].constant(),
                         column = b.strides[rank - 1].constant();
  if (!k || !n || !offset || !row || !column)
    return std::nullopt;
  Weight::Matrix matrix;
  matrix.k = *k;
  matrix.n = *n;
  matrix.offset = *offset;
  matrix.rowStride = *row;
  matrix.columnStride = *column;
  return isWorthPacking(matrix, *lowering.constantOf(b)) ? std::optional(matrix)
                                                         : std::nullopt;
}

void addEpilogue(LaunchSpec &spec, const Product &p, const Epilogue &epilogue) {
  unsigned first = spec.operands.size();
  llvm::append_range(spec.operands, epilogue.operands);
  // Rows and columns that are multiplied are read by many threads.
  auto isFactor = [&](unsigned buffer) {
    return llvm::any_of(
        llvm::ArrayRef(spec.operands).take_front(first),
        [&](const View &view) { return view.buffer == buffer; });
  };
  for (unsigned i : epilogue.overlays)
    if (!isFactor(epilogue.operands[i].buffer))
      spec.overlays.push_back(first + i);
  spec.functors.push_back(epilogue.functor);
  spec.flops = ir::numElements(p.c.shape) * p.k() * Dim(2);
  spec.results = {p.c};
}

void flattenRows(Product &p, Epilogue &epilogue) {
  unsigned rank = p.c.rank();
  // A matrix of codes has no view.
  bool oneMatrix = p.b.rank() == 2 || p.b.buffer == kernel::none;
  if (rank == 2 || p.a.rank() != rank || !oneMatrix)
    return;
  std::vector<View> flat;
  for (const std::vector<View> &views :
       {std::vector<View>{p.a, p.c}, epilogue.operands})
    for (const View &view : views) {
      std::optional<View> merged = mergeDims(view, 0, rank - 1);
      if (!merged)
        return;
      flat.push_back(*merged);
    }
  p.a = flat[0];
  p.c = flat[1];
  epilogue.operands.assign(flat.begin() + 2, flat.end());
  for (const auto &[i, view] : llvm::enumerate(epilogue.operands))
    epilogue.functor.arguments[i + 1].access = accessOf(view);
}

namespace {

/// A 1-D operand becomes a row or a column, and the result gets the dimension
/// that NumPy dropped.
struct Promotion {
  bool row, column;
  View operator()(View result) const {
    if (column)
      result = insertDim(result, result.rank());
    if (row)
      result = insertDim(result, result.rank() - 1);
    return result;
  }
};

/// Extras broadcast to the result, so they are promoted once they have its
/// rank.
View promoteExtra(const Lowering &lowering, const Promotion &promote,
                  const View &extra, ir::ShapeRef shape) {
  if (!promote.row && !promote.column)
    return extra;
  return promote(lowering.broadcast(extra, shape));
}

View toBatch(const Lowering &lowering, const View &view, const Product &p) {
  ir::Shape shape(p.batch().begin(), p.batch().end());
  shape.append(view.shape.end() - 2, view.shape.end());
  return lowering.broadcast(view, shape);
}

/// GPUs: blocks of 64 x 64 of one batch, all in one line.
LaunchSpec tiledKernel(const Lowering &lowering, const Product &p,
                       const Epilogue &epilogue) {
  constexpr int64_t tile = 64;
  View a = toBatch(lowering, p.a, p), b = toBatch(lowering, p.b, p);
  if (auto fast = tensorProduct(lowering, a, b, p.c, epilogue))
    return std::move(*fast);
  LaunchSpec spec;
  spec.kernel = "matmul";
  spec.config.type("A", p.a.element)
      .type("B", p.b.element)
      .type("C", p.c.element)
      .type("Sum", epilogue.functor.arguments[0].element)
      .rank("rank", p.c.rank())
      .types("Operands", epilogue.elements);
  spec.operands = {a, b};
  kernel::Geometry &geometry = spec.geometry.emplace();
  geometry.threads = 256;
  geometry.grid[0] = Dim::ceilDiv(p.m(), Dim(tile)) *
                     Dim::ceilDiv(p.n(), Dim(tile)) *
                     ir::numElements(p.batch());
  return spec;
}

/// The product with panels of \p matrix, in f32 or halves.
LaunchSpec packedProduct(Lowering &lowering, const ir::Op &op, Product &p,
                         const View &panels, const Weight::Matrix &matrix,
                         const Epilogue &epilogue) {
  LaunchSpec spec;
  spec.kernel = "gemm_f32";
  spec.config.integer("N", matrix.n)
      .integer("K", matrix.k)
      .type("B", panels.element)
      .rank("rank", p.c.rank())
      .types("Operands", epilogue.elements);
  // What a unit is by default stays out of its text.
  if (lowering.partProducts() != TargetOptions().partProducts)
    spec.config.rank("products", lowering.partProducts());
  spec.operands = {
      lowering.fit(op, toBatch(lowering, p.a, p), Strides::InnerContiguous),
      panels};
  return spec;
}

/// The product in bf16.
LaunchSpec bf16Kernel(Lowering &lowering, const ir::Op &op, Product &p,
                      const HalfMatrix &half, const Epilogue &epilogue) {
  LaunchSpec spec;
  spec.kernel = "gemm_bf16";
  spec.config.integer("N", half.matrix.n)
      .integer("K", half.matrix.k)
      .rank("rank", p.c.rank())
      .types("Operands", epilogue.elements);
  spec.operands = {
      lowering.fit(op, toBatch(lowering, p.a, p), Strides::InnerContiguous),
      lowering.packed(half.value, kernel::WeightLayout::Panels16Codes,
                      half.matrix)};
  spec.scratchBytes = ir::numElements(p.batch()) * p.m() *
                      Dim(tn::half_row_bytes(half.matrix.k));
  return spec;
}

/// The product of bytes, whose a has the view p.a.
LaunchSpec byteKernel(Lowering &lowering, const ir::Op &op, Product &p,
                      const ByteProduct &bytes, const Epilogue &epilogue) {
  LaunchSpec spec;
  spec.kernel = "gemm_bytes";
  Weight::Matrix matrix = bytes.matrix(), sums = matrix;
  sums.k = 1;
  spec.config.integer("N", matrix.n)
      .integer("K", matrix.k)
      .rank("rank", p.c.rank())
      .types("Operands", epilogue.elements);
  spec.operands = {
      lowering.fit(op, toBatch(lowering, p.a, p), Strides::InnerContiguous),
      bytes.zero ? lowering.view(bytes.zero)
                 : lowering.weight(ir::Constant::scalar(ElementType::F32, 0)),
      lowering.packed(bytes.bytes(), kernel::WeightLayout::Panels16Codes,
                      matrix),
      lowering.packed(bytes.columnSums(), kernel::WeightLayout::Panels16,
                      sums)};
  return spec;
}

/// The kernel's part of the launch: everything but the epilogue.
LaunchSpec chooseKernel(Lowering &lowering, const ir::Op &op, Product &p,
                        const Epilogue &epilogue) {
  if (lowering.isCuda())
    return tiledKernel(lowering, p, epilogue);
  bool isF32 = p.a.element == ElementType::F32;
  if (std::optional<ByteProduct> bytes = byteProduct(op))
    return byteKernel(lowering, op, p, *bytes, epilogue);
  std::optional<HalfMatrix> half = halfMatrix(op);
  if (half && half->value->element() == ElementType::BF16 &&
      lowering.partProducts() == 1)
    return bf16Kernel(lowering, op, p, *half, epilogue);
  if (half)
    return packedProduct(lowering, op, p,
                         lowering.packed(half->value,
                                         kernel::WeightLayout::Panels16,
                                         half->matrix),
                         half->matrix, epilogue);
  if (std::optional<Weight::Matrix> matrix =
          isF32 && p.b.element == ElementType::F32
              ? constantMatrix(lowering, p.b)
              : std::nullopt)
    return packedProduct(lowering, op, p, lowering.packed(p.b, *matrix),
                         *matrix, epilogue);
  LaunchSpec spec;
  spec.operands = {toBatch(lowering, p.a, p), toBatch(lowering, p.b, p)};
  if (isF32) {
    spec.kernel = "batch_matmul_f32";
    spec.config.rank("rank", p.c.rank()).types("Operands", epilogue.elements);
    return spec;
  }
  spec.kernel = "matmul_generic";
  spec.config.type("A", p.a.element)
      .type("B", p.b.element)
      .type("C", p.c.element)
      .rank("rank", p.c.rank())
      .types("Operands", epilogue.elements);
  return spec;
}

/// The product with a matrix of codes.
LaunchSpec quantisedProduct(Lowering &lowering, const ir::Op &op, Product &p,
                            const QuantisedMatrix &matrix,
                            const Epilogue &epilogue) {
  LaunchSpec spec;
  spec.kernel = "gemm_codes_f32";
  if (op.attrs<ir::MatMulAttrs>().eightBitRows) {
    spec.kernel = "gemm_codes_i8";
    spec.scratchBytes = ir::numElements(p.batch()) * p.m() *
                        Dim(tn::i8_scratch_per_row(matrix.k, matrix.block));
  }
  spec.config.integer("N", matrix.n)
      .integer("K", matrix.k)
      .rank("bits", ir::bitWidth(matrix.codes->element()))
      .integer("block", matrix.block)
      .flag("zeros", matrix.zeros != nullptr)
      .number("zero", matrix.zero)
      .rank("rank", p.c.rank())
      .types("Operands", epilogue.elements);
  spec.operands = {
      lowering.fit(op, toBatch(lowering, p.a, p), Strides::InnerContiguous),
      lowering.packed(matrix.codes, kernel::WeightLayout::Panels16Codes,
                      matrix.codeMatrix()),
      lowering.packed(matrix.scales, kernel::WeightLayout::Panels16,
                      matrix.blockMatrix())};
  if (matrix.zeros)
    spec.operands.push_back(lowering.packed(
        matrix.zeros, kernel::WeightLayout::Panels16, matrix.blockMatrix()));
  return spec;
}

void launchProduct(Lowering &lowering, const ir::Op &op, Product &p,
                   Epilogue epilogue) {
  if (std::optional<ByteProduct> bytes = byteProduct(op);
      bytes && lowering.isCuda()) {
    flattenRows(p, epilogue);
    return launchIntegers(lowering, op, p, *bytes, epilogue);
  }
  std::optional<QuantisedMatrix> codes = lowering.quantised(op);
  if (!codes && launchInBytes(lowering, op, p.a, p.b, p.c, epilogue))
    return;
  Dim rest = 1;
  if (lowering.isCuda()) {
    flattenRows(p, epilogue);
    rest = launchFewRows(lowering, op, p, codes ? &*codes : nullptr, epilogue);
  }
  if (rest.isConstant(0))
    return;
  Lowering::When when(lowering, rest);
  LaunchSpec spec = !codes ? chooseKernel(lowering, op, p, epilogue)
                    : lowering.isCuda()
                        ? codesProduct(lowering, p, *codes, epilogue)
                        : quantisedProduct(lowering, op, p, *codes, epilogue);
  addEpilogue(spec, p, epilogue);
  lowering.launch(op, std::move(spec));
}

llvm::Error selectMatMul(Lowering &lowering, const ir::Op &op) {
  const ir::Value *y = op.result();
  ElementType sums = op.operand(0)->element();
  if (cppType(sums).empty())
    return unsupportedType(op, sums, "f64, f32 and the integers");
  Promotion promote{op.operand(0)->rank() == 1, op.operand(1)->rank() == 1};
  Product p;
  std::optional<ByteProduct> bytes = byteProduct(op);
  p.a = lowering.view(bytes ? bytes->a : op.operand(0));
  if (!bytes && !lowering.quantised(op) &&
      (lowering.isCuda() || !halfMatrix(op)))
    p.b = lowering.view(op.operand(1));
  if (promote.row)
    p.a = insertDim(p.a, 0);
  if (promote.column)
    p.b = insertDim(p.b, 1);
  std::vector<View> extras;
  for (const ir::Value *extra : op.operands().drop_front(2))
    extras.push_back(
        promoteExtra(lowering, promote, lowering.view(extra), y->shape()));

  // The shape of the kernel's result comes from a stand-in view.
  View standIn;
  standIn.shape.assign(y->shape().begin(), y->shape().end());
  standIn.strides = kernel::contiguousStrides(standIn.shape);
  ir::Shape shape(promote(standIn).shape);
  Epilogue epilogue = makeEpilogue(lowering, op, extras, shape);
  unsigned more = bytes && lowering.isCuda() ? zeroOperands : 0;
  if (epilogue.isIdentity() || canFuse(lowering, epilogue, sums, more)) {
    p.c = promote(lowering.result(y, Strides::InnerContiguous));
    launchProduct(lowering, op, p, epilogue);
    return llvm::Error::success();
  }
  // The sums on their own, then the epilogue as a loop over them.
  p.c = lowering.temporary(sums, shape);
  Epilogue none;
  none.functor = identity(sums);
  launchProduct(lowering, op, p, none);
  View result = promote(lowering.result(y, Strides::Any));
  std::vector<View> operands{p.c};
  llvm::append_range(operands, extras);
  return launchLoop(lowering, op, functorOf(*op.region()), operands, {result});
}

} // namespace

void addContractions(SelectTable &table) {
  table[unsigned(ir::OpKind::MatMul)] = selectMatMul;
}

} // namespace tenon::codegen
