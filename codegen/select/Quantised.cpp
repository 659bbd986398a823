//===- Quantised.cpp - constant matrices of codes ------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/select/Quantised.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include <cstring>

namespace tenon::codegen {

using ir::ConstantRef;
using ir::Dim;
using ir::ElementType;
using ir::Op;
using ir::OpKind;
using ir::Value;

namespace {

ConstantRef constantOf(const Value *value) {
  Op *op = value->def(OpKind::Const);
  return op ? op->attrs<ir::ConstAttrs>().value : nullptr;
}

bool isCode(ElementType element) {
  return element == ElementType::U2 || element == ElementType::U4 ||
         element == ElementType::U8;
}

/// Walks from the product's operand to the codes:
///   transpose [slice] reshape (cast(codes) [- zero]) [* scale]
/// or, as canonicalisation has it where nothing is sliced,
///   reshape transpose (cast(codes) [- zero]) [* scale]
class Reader {
public:
  std::optional<QuantisedMatrix> read(const Op &product) {
    Value *b = product.operand(1);
    if (product.operand(0)->element() != ElementType::F32 || b->rank() != 2)
      return std::nullopt;
    at = b;
    std::optional<int64_t> k = b->shape()[0].constant(),
                           n = b->shape()[1].constant();
    if (!n || !k || *n < 1 || *k < 1)
      return std::nullopt;
    matrix.n = *n;
    matrix.k = *k;
    if (!readMovement() || !readProduct() || !readCodes())
      return std::nullopt;
    return std::move(matrix);
  }

private:
  QuantisedMatrix matrix;
  Value *at = nullptr;

  /// Goes to the first operand of an op of kind \p kind that only we use.
  bool step(OpKind kind, unsigned operand = 0) {
    Op *op = at->def(kind);
    if (!op || !at->hasOneUse() || op->region())
      return false;
    matrix.steps.push_back(op);
    at = op->operand(operand);
    return true;
  }

  /// From [k, n] to [n, blocks, block].
  bool readMovement() {
    if (step(OpKind::Transpose)) {
      if (isFrontSlice())
        step(OpKind::Slice);
      return step(OpKind::Reshape);
    }
    Op *reshape = at->def(OpKind::Reshape);
    Op *transpose =
        reshape ? reshape->operand(0)->def(OpKind::Transpose) : nullptr;
    return transpose &&
           transpose->attrs<ir::TransposeAttrs>().perm == ir::Ints{1, 2, 0} &&
           step(OpKind::Reshape) && step(OpKind::Transpose);
  }

  bool isFrontSlice() const {
    Op *slice = at->def(OpKind::Slice);
    if (!slice)
      return false;
    const auto &attrs = slice->attrs<ir::SliceAttrs>();
    return attrs.starts[0].isConstant(0) && attrs.starts[1].isConstant(0) &&
           attrs.steps[0] == 1 && attrs.steps[1] == 1 &&
           slice->operand(0)->shape()[0].isConstant(matrix.n);
  }

  /// One value for each block, as [n, blocks, 1].
  bool isPerBlock(const ConstantRef &value) const {
    return value && value->element() == ElementType::F32 &&
           value->shape().size() == 3 && value->shape()[0] == matrix.n &&
           value->shape()[2] == 1;
  }

  bool readProduct() {
    Op *mul = at->def(OpKind::Mul);
    if (!mul) // one scale for all is applied elsewhere
      return readZeros();
    unsigned scale = constantOf(mul->operand(0)) ? 0 : 1;
    matrix.scales = constantOf(mul->operand(scale));
    if (!isPerBlock(matrix.scales) || !step(OpKind::Mul, 1 - scale))
      return false;
    return readZeros();
  }

  /// Minus one zero for each block, or plus one number (which is how
  /// canonicalisation subtracts one), or neither.
  bool readZeros() {
    if (Op *sub = at->def(OpKind::Sub)) {
      ConstantRef zeros = constantOf(sub->operand(1));
      if (!zeros || zeros->element() != ElementType::F32)
        return false;
      if (std::optional<double> zero = zeros->splatValue())
        matrix.zero = *zero;
      else if (isPerBlock(zeros))
        matrix.zeros = zeros;
      else
        return false;
      return step(OpKind::Sub);
    }
    Op *add = at->def(OpKind::Add);
    if (!add)
      return true;
    unsigned number = constantOf(add->operand(0)) ? 0 : 1;
    ConstantRef value = constantOf(add->operand(number));
    std::optional<double> added = value ? value->splatValue() : std::nullopt;
    if (!added)
      return false;
    matrix.zero = -*added;
    return step(OpKind::Add, 1 - number);
  }

  bool readCodes() {
    if (!step(OpKind::Cast))
      return false;
    matrix.codes = constantOf(at);
    if (!matrix.codes || !isCode(matrix.codes->element()) ||
        matrix.codes->shape().size() != 3)
      return false;
    llvm::ArrayRef<int64_t> shape = matrix.codes->shape();
    matrix.block = shape[2];
    matrix.columnStride = shape[1] * shape[2];
    if (!matrix.scales)
      matrix.scales =
          ir::Constant::splat(ElementType::F32, {shape[0], shape[1], 1}, 1.0);
    return shape[0] == matrix.n && matrix.scales->shape()[1] == shape[1] &&
           matrix.block >= 16 && matrix.block % 16 == 0 &&
           matrix.columnStride >= matrix.k &&
           matrix.columnStride - matrix.k < matrix.block;
  }
};

} // namespace

kernel::Weight::Matrix QuantisedMatrix::codeMatrix() const {
  kernel::Weight::Matrix m;
  m.k = k;
  m.n = n;
  m.rowStride = 1;
  m.columnStride = columnStride;
  return m;
}

kernel::Weight::Matrix QuantisedMatrix::blockMatrix() const {
  kernel::Weight::Matrix m;
  m.k = scales->shape()[1];
  m.n = n;
  m.rowStride = 1;
  m.columnStride = m.k;
  return m;
}

ConstantRef packedZeros(const QuantisedMatrix &matrix) {
  if (!matrix.zeros)
    return nullptr;
  int64_t blocks = matrix.zeros->shape()[1], pairs = (blocks + 1) / 2;
  std::vector<uint8_t> bytes = matrix.zeros->materialize();
  std::vector<uint8_t> packed(matrix.n * pairs);
  for (int64_t i = 0; i < matrix.n * blocks; ++i) {
    float zero;
    std::memcpy(&zero, bytes.data() + i * sizeof(zero), sizeof(zero));
    if (!(zero >= 0 && zero <= 15 && zero == float(int(zero))))
      return matrix.zeros;
    packed[i / blocks * pairs + i % blocks / 2] |= unsigned(zero)
                                                   << (i % blocks % 2 * 4);
  }
  return ir::Constant::copy(ElementType::U8, {matrix.n, pairs}, packed,
                            matrix.zeros->name());
}

std::optional<QuantisedMatrix> quantisedMatrix(const Op &product) {
  if (product.kind() != OpKind::MatMul)
    return std::nullopt;
  return Reader().read(product);
}

namespace {

/// b's cast, if \p product multiplies by a constant of bytes.
const Op *castOfBytes(const Op &product) {
  if (product.kind() != OpKind::MatMul)
    return nullptr;
  const Op *cast = product.operand(1)->def(OpKind::Cast);
  if (!cast || cast->result()->element() != ElementType::F32 ||
      cast->operand(0)->element() != ElementType::I8 ||
      cast->result()->rank() != 2 || !constantOf(cast->operand(0)))
    return nullptr;
  for (const ir::Use &use : cast->result()->uses())
    if (use.op->kind() != OpKind::MatMul || use.index != 1)
      return nullptr;
  return cast;
}

bool onlyMultiplies(const Value &value) {
  return llvm::all_of(value.uses(), [](const ir::Use &use) {
    return use.index == 0 && castOfBytes(*use.op);
  });
}

} // namespace

std::optional<ByteProduct> byteProduct(const Op &product) {
  constexpr int64_t mostRows = (1 << 15) - 1; // the kernel's limit
  const Op *cast = castOfBytes(product);
  if (!cast || !onlyMultiplies(*product.operand(0)))
    return std::nullopt;
  ByteProduct p;
  p.b = constantOf(cast->operand(0));
  if (p.b->shape()[0] < 1 || p.b->shape()[0] > mostRows || p.b->shape()[1] < 1)
    return std::nullopt;
  p.steps.push_back(cast);
  const Value *a = product.operand(0);
  if (const Op *sub = a->def(OpKind::Sub)) {
    p.zero = sub->operand(1);
    p.steps.push_back(sub);
    a = sub->operand(0);
    // A zero point that is no whole number of u8 is none of a byte's.
    const Op *zero = p.zero->def(OpKind::Cast);
    if (!zero || zero->operand(0)->element() != ElementType::U8 ||
        !ir::numElements(p.zero->shape()).isConstant(1) ||
        !llvm::all_of(a->uses(), [](const ir::Use &use) {
          return use.op->kind() == OpKind::Sub && use.index == 0 &&
                 onlyMultiplies(*use.op->result());
        }))
      return std::nullopt;
  }
  const Op *widening = a->def(OpKind::Cast);
  if (!widening || widening->operand(0)->element() != ElementType::U8 ||
      widening->operand(0)->shape() != product.operand(0)->shape())
    return std::nullopt;
  p.steps.push_back(widening);
  p.a = widening->operand(0);
  return p;
}

llvm::SmallVector<const Op *, 16> byteProductSteps(const ir::Func &func,
                                                   bool zeros) {
  llvm::SmallSetVector<const Op *, 16> steps, casts;
  for (const Op &op : func.body)
    if (std::optional<ByteProduct> product = byteProduct(op)) {
      steps.insert(product->steps.begin(), product->steps.end());
      if (zeros && product->zero)
        casts.insert(product->zero->def());
    }
  for (const Op *cast : casts)
    if (llvm::all_of(cast->result()->uses(), [&](const ir::Use &use) {
          return steps.contains(use.op);
        }))
      steps.insert(cast);
  return llvm::SmallVector<const Op *, 16>(steps.begin(), steps.end());
}

kernel::Weight::Matrix ByteProduct::matrix() const {
  kernel::Weight::Matrix m;
  m.k = b->shape()[0];
  m.n = b->shape()[1];
  m.rowStride = m.n;
  m.columnStride = 1;
  return m;
}

ConstantRef ByteProduct::bytes() const {
  if (b->form() == ir::Constant::Form::Dense)
    return ir::Constant::dense(ElementType::U8, b->shape(), b->bytes(), b,
                               b->name());
  return ir::Constant::copy(ElementType::U8, b->shape(), b->materialize(),
                            b->name());
}

ConstantRef ByteProduct::columnSums() const {
  std::vector<uint8_t> all = b->materialize();
  int64_t n = b->shape()[1];
  std::vector<float> sums(n);
  for (size_t i = 0; i < all.size(); ++i)
    sums[i % n] += float(int8_t(all[i]));
  return ir::Constant::copy(
      ElementType::F32, {1, n},
      {reinterpret_cast<const uint8_t *>(sums.data()), sums.size() * 4},
      b->name());
}

std::optional<HalfMatrix> halfMatrix(const Op &product) {
  if (product.kind() != OpKind::MatMul)
    return std::nullopt;
  HalfMatrix half;
  half.cast = product.operand(1)->def(OpKind::Cast);
  if (!half.cast || half.cast->result()->element() != ElementType::F32 ||
      half.cast->block() != product.block())
    return std::nullopt;
  for (const ir::Use &use : half.cast->result()->uses())
    if (use.op->kind() != OpKind::MatMul || use.index != 1)
      return std::nullopt;
  const Value *from = half.cast->operand(0);
  const Op *transpose = from->def(OpKind::Transpose);
  half.value = constantOf(transpose ? transpose->operand(0) : from);
  ElementType element = from->element();
  if (!half.value || half.value->shape().size() != 2 ||
      (element != ElementType::F16 && element != ElementType::BF16))
    return std::nullopt;
  kernel::Weight::Matrix &m = half.matrix;
  m.k = half.value->shape()[0];
  m.n = half.value->shape()[1];
  m.rowStride = m.n;
  m.columnStride = 1;
  if (transpose) {
    std::swap(m.k, m.n);
    std::swap(m.rowStride, m.columnStride);
  }
  return half;
}

} // namespace tenon::codegen
