//===- ByteProducts.cpp - products rounded to 8 bits ---------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

/// \file
/// The law, for --precision=int8 and fp8, a matrix x and a constant w:
///
///   x w  ->  s (cx cw) t,   cx[i, :] = round(x[i, :] / s[i])
///                           cw[:, j] = round(w[:, j] / t[j])
///
/// with s[i] = max |x[i, :]| / top, t[j] = max |w[:, j]| / top, and top the
/// greatest code: 127 of int8, 448 of e4m3. Codes and scales of w are made when
/// compiling, those of x by quantise_rows; s and t are the first thing that the
/// epilogue does. Not matched: products of two computed values, and those of
/// less than 32 in k, for which making codes costs more than they save.
///
/// And the law for products of whole numbers that a model has itself (those of
/// MatMulInteger), a of u8, zero a number of u8, B a constant of i8, in s32:
///
///   (a - zero) B  ->  a B - zero b,   b[j] = sum over k of B[k, j]

#include "codegen/select/Product.h"
#include "codegen/select/Quantised.h"
#include "codegen/select/Tensor.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

namespace tenon::codegen {

using ir::ElementType;
using kernel::Access;

namespace {

constexpr int64_t leastDepth = 32;

/// A window into a constant.
struct Window {
  ir::ConstantRef constant;
  int64_t k, n, offset, row, column;
};

std::optional<Window> windowOf(const Lowering &lowering, const View &b) {
  unsigned rank = b.rank();
  ir::ConstantRef constant = lowering.constantOf(b);
  bool single = llvm::all_of(ir::ShapeRef(b.shape).drop_back(2),
                             [](Dim size) { return size.isConstant(1); });
  auto k = b.shape[rank - 2].constant(), n = b.shape[rank - 1].constant(),
       offset = b.offset.constant(), row = b.strides[rank - 2].constant(),
       column = b.strides[rank - 1].constant();
  if (!constant || !single || !k || !n || !offset || !row || !column ||
      *k < leastDepth || *n == 0)
    return std::nullopt;
  return Window{constant, *k, *n, *offset, *row, *column};
}

struct Codes {
  ElementType type;
  double top;
};

Codes codesOf(const Lowering &lowering) {
  return lowering.products() == Products::Fp8
             ? Codes{ElementType::F8E4M3FN, 448}
             : Codes{ElementType::I8, 127};
}

/// Codes [n, padded k] and scales [n] of a matrix, as constants.
std::pair<ir::ConstantRef, ir::ConstantRef> encode(const Window &w,
                                                   const Codes &kind) {
  int64_t pitch = llvm::alignTo(w.k, 16);
  ElementType element = w.constant->element();
  std::vector<uint8_t> from = w.constant->materialize(), codes(w.n * pitch, 0);
  std::vector<float> scales(w.n), column(w.k);
  for (int64_t j = 0; j < w.n; ++j) {
    float most = 0;
    for (int64_t i = 0; i < w.k; ++i) {
      column[i] = float(ir::loadElement(element, from.data(),
                                        w.offset + i * w.row + j * w.column));
      most = std::fmax(most, std::fabs(column[i]));
    }
    scales[j] = most / float(kind.top);
    double inverse = most > 0 ? kind.top / most : 0;
    for (int64_t i = 0; i < w.k; ++i) {
      double scaled = column[i] * inverse;
      ir::storeElement(kind.type, codes.data(), j * pitch + i,
                       kind.type == ElementType::I8 ? std::nearbyint(scaled)
                                                    : scaled);
    }
  }
  llvm::ArrayRef<uint8_t> bytes(reinterpret_cast<uint8_t *>(scales.data()),
                                scales.size() * sizeof(float));
  return {
      ir::Constant::copy(ElementType::I8, {w.n, pitch}, codes,
                         w.constant->name()),
      ir::Constant::copy(ElementType::F32, {w.n}, bytes, w.constant->name())};
}

/// Launches quantise_rows on the rows of \p a, which is \p value's; once for
/// all products.
Lowering::RowCodes codesOfRows(Lowering &lowering, const ir::Op &op,
                               const ir::Value *value, const View &a) {
  auto known = lowering.rowCodes.find(value);
  if (known != lowering.rowCodes.end())
    return known->second;
  unsigned rank = a.rank();
  int64_t k = *a.shape.back().constant();
  ir::Shape codes(a.shape.begin(), a.shape.end()), scales = codes;
  codes.back() = Dim(int64_t(llvm::alignTo(k, 16)));
  scales.back() = Dim(1);
  Lowering::RowCodes made{lowering.temporary(ElementType::I8, codes),
                          lowering.temporary(ElementType::F32, scales)};
  LaunchSpec spec;
  spec.kernel = "quantise_rows";
  spec.config.type("X", a.element)
      .raw("using", "Y",
           lowering.products() == Products::Fp8 ? "tn::e4m3" : "int8_t")
      .rank("rank", rank)
      .rank("axes", 1)
      .size("N", a.shape.back())
      .flag("row_per_warp", k <= 1024);
  spec.operands = {a};
  spec.results = {made.codes, made.scales};
  spec.items = ir::numElements(ir::ShapeRef(a.shape).drop_back(1));
  spec.grain = k <= 1024 ? Grain::Warp : Grain::Block;
  lowering.launch(op, std::move(spec));
  lowering.rowCodes[value] = made;
  return made;
}

/// Builds a functor node by node.
struct FunctorBuilder {
  kernel::Functor functor;

  unsigned add(ir::OpKind kind, ElementType element,
               llvm::SmallVector<unsigned, 3> operands) {
    std::unique_ptr<ir::Attrs> attrs = ir::opDef(kind).makeAttrs();
    if (kind == ir::OpKind::Cast)
      static_cast<ir::CastAttrs &>(*attrs).to = element;
    functor.nodes.push_back(
        {kind, element, operands,
         std::shared_ptr<const ir::Attrs>(std::move(attrs))});
    return unsigned(functor.arguments.size() + functor.nodes.size() - 1);
  }
};

/// x0 * x1 * x2 in f32.
kernel::Functor scaling(ElementType sums) {
  constexpr ElementType f32 = ElementType::F32;
  FunctorBuilder b;
  b.functor.arguments = {
      {sums, Access::Value}, {f32, Access::Column}, {f32, Access::Row}};
  unsigned sum = sums == f32 ? 0 : b.add(ir::OpKind::Cast, f32, {0});
  b.functor.results = {
      b.add(ir::OpKind::Mul, f32, {b.add(ir::OpKind::Mul, f32, {sum, 1}), 2})};
  return std::move(b.functor);
}

/// x0 - x1 * x2 in s32, in f32; without a zero point x0.
kernel::Functor centring(bool hasZero) {
  constexpr ElementType i32 = ElementType::I32;
  FunctorBuilder b;
  b.functor.arguments = {{i32, Access::Value}};
  unsigned sum = 0;
  if (hasZero) {
    b.functor.arguments.push_back({ElementType::U8, Access::Scalar});
    b.functor.arguments.push_back({i32, Access::Row});
    unsigned zero = b.add(ir::OpKind::Cast, i32, {1});
    sum = b.add(ir::OpKind::Sub, i32,
                {0, b.add(ir::OpKind::Mul, i32, {zero, 2})});
  }
  b.functor.results = {b.add(ir::OpKind::Cast, ElementType::F32, {sum})};
  return std::move(b.functor);
}

/// \p epilogue behind \p first, whose operands are \p views.
Epilogue behind(const kernel::Functor &first, std::vector<View> views,
                const Epilogue &epilogue) {
  Epilogue both;
  both.functor = compose(first, epilogue.functor);
  unsigned count = views.size();
  both.operands = std::move(views);
  for (const View &view : both.operands)
    both.elements.push_back(view.element);
  llvm::append_range(both.operands, epilogue.operands);
  llvm::append_range(both.elements, epilogue.elements);
  for (unsigned i : epilogue.overlays)
    both.overlays.push_back(i + count);
  return both;
}

/// \p view, a matrix, for each of c's batches.
View batched(const Lowering &lowering, const View &view, const View &c) {
  ir::Shape shape(c.shape.begin(), c.shape.end() - 2);
  shape.append(view.shape.end() - 2, view.shape.end());
  return lowering.broadcast(view, shape);
}

/// The sums of the columns of B[k, n], of i8.
ir::ConstantRef columnSums(const ir::Constant &matrix) {
  std::vector<uint8_t> all = matrix.materialize();
  int64_t n = matrix.shape()[1];
  std::vector<int32_t> sums(n);
  for (size_t i = 0; i < all.size(); ++i)
    sums[i % n] += int8_t(all[i]);
  return ir::Constant::copy(
      ElementType::I32, {n},
      {reinterpret_cast<const uint8_t *>(sums.data()), sums.size() * 4},
      matrix.name());
}

} // namespace

bool launchInBytes(Lowering &lowering, const ir::Op &op, const View &a,
                   const View &b, const View &c, const Epilogue &epilogue) {
  constexpr unsigned maxOperands = 8;
  if (lowering.products() == Products::Stored ||
      op.operand(0)->element() != ElementType::F32 ||
      epilogue.operands.size() + 2 > maxOperands ||
      !c.strides.back().isConstant(1))
    return false;
  std::optional<Window> window = windowOf(lowering, b);
  if (!window)
    return false;
  Lowering::RowCodes rows = codesOfRows(lowering, op, op.operand(0), a);
  auto [codes, scales] = encode(*window, codesOf(lowering));
  View x = batched(lowering, rows.codes, c),
       w = batched(lowering, transposeView(lowering.weight(codes), {1, 0}), c);
  View columns = lowering.broadcast(lowering.weight(scales), c.shape);
  bool isFp8 = lowering.products() == Products::Fp8;
  Epilogue whole =
      behind(scaling(isFp8 ? ElementType::F32 : ElementType::I32),
             {lowering.broadcast(rows.scales, c.shape), columns}, epilogue);
  std::optional<LaunchSpec> spec = byteProduct(
      lowering, isFp8 ? Bytes::E4m3 : Bytes::SignedBySigned, x, w, c, whole);
  if (!spec)
    return false;
  unsigned first = spec->operands.size();
  llvm::append_range(spec->operands, whole.operands);
  for (unsigned i : whole.overlays)
    spec->overlays.push_back(first + i);
  spec->functors.push_back(whole.functor);
  spec->flops = ir::numElements(c.shape) * Dim(window->k) * Dim(2);
  spec->results = {c};
  lowering.launch(op, std::move(*spec));
  return true;
}

void launchIntegers(Lowering &lowering, const ir::Op &op, Product &p,
                    const ByteProduct &bytes, const Epilogue &epilogue) {
  View a = lowering.fit(op, p.a, Strides::InnerContiguous);
  std::vector<View> zeros;
  if (bytes.zero) {
    const ir::Value *zero = bytes.zero->def()->operand(0);
    zeros = {
        lowering.broadcast(lowering.view(zero), p.c.shape),
        lowering.broadcast(lowering.weight(columnSums(*bytes.b)), p.c.shape)};
  }
  Epilogue whole = behind(centring(bytes.zero), std::move(zeros), epilogue);
  View weight = lowering.weight(bytes.b);
  std::optional<View> b = lowering.columns(weight);
  if (!b) // one number stands for all
    b = transposeView(lowering.fit(op, transposeView(weight, {1, 0}),
                                   Strides::InnerContiguous),
                      {1, 0});
  LaunchSpec spec =
      *byteProduct(lowering, Bytes::UnsignedBySigned, batched(lowering, a, p.c),
                   batched(lowering, *b, p.c), p.c, whole);
  addEpilogue(spec, p, whole);
  lowering.launch(op, std::move(spec));
}

} // namespace tenon::codegen
