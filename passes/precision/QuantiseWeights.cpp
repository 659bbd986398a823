//===- QuantiseWeights.cpp - constant matrices become codes ---------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

///
/// \file
/// The law, for --weights=int8 and int4 and a matmul by a constant W[K, N]:
///
///   x W  ->  x transpose(reshape((cast(q) - z) * s))
///
/// with codes q[N, blocks, block], a scale s for each block of consecutive rows
/// of a column (or for the whole column), and z in the middle of the codes. As
/// the importer of MatMulNBits has it, so that one set of kernels serves both.
/// Rounding is to the nearest code. 8 bits: s = max |w| / 127, codes 1 to 255.
/// 4 bits: s = w / -8 for the w of the greatest size, which is exact then,
/// codes 0 to 15; and x may be rounded to 8 bits (`eight_bit_rows`).
///
/// The output head, which is the product that gives an output of the model or
/// whose matrix is an embedding too, has 8 bits at least: its error is that of
/// the answer. What is gathered from stays as it is.
///
/// Not matched: matrices that are not constant f32 of rank 2, small ones, those
/// of one number only, and those with an infinity or NaN.

#include "ir/Builder.h"
#include "ir/support/WeightMemory.h"
#include "passes/Pass.h"
#include "passes/precision/CodesOperand.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace tenon;
using namespace tenon::ir;

namespace {

constexpr llvm::StringLiteral passName = "quantise-weights";
/// Matrices of fewer elements are left: they cost nothing.
constexpr int64_t leastElements = 4096;

/// A constant matrix as a product reads it: element (i, j) is element
/// i * rowStride + j * columnStride of `value`.
struct Matrix {
  ConstantRef value;
  int64_t k = 0, n = 0, rowStride = 0, columnStride = 0;
};

std::optional<Matrix> constantMatrix(Value *value) {
  bool transposed = false;
  if (Op *transpose = value->def(OpKind::Transpose)) {
    value = transpose->operand(0);
    transposed = true;
  }
  Op *def = value->def(OpKind::Const);
  if (!def || value->rank() != 2 || value->element() != ElementType::F32 ||
      def->attrs<ConstAttrs>().value->form() == Constant::Form::Splat)
    return std::nullopt;
  Matrix m;
  m.value = def->attrs<ConstAttrs>().value;
  int64_t rows = m.value->shape()[0], columns = m.value->shape()[1];
  if (transposed)
    return Matrix{m.value, columns, rows, 1, columns};
  return Matrix{m.value, rows, columns, columns, 1};
}

/// The tensors that stand for a matrix.
struct Codes {
  ConstantRef codes, scales; ///< [n, blocks, block], f32[n, blocks, 1]
};

/// Quantises one block: \p w[count] to \p codes; gives the scale.
float quantiseBlock(const float *w, int64_t count, unsigned bits,
                    uint8_t *codes) {
  float extreme = 0;
  for (int64_t i = 0; i < count; ++i)
    if (std::fabs(w[i]) > std::fabs(extreme))
      extreme = w[i];
  int middle = 1 << (bits - 1);
  float scale = bits == 4 ? extreme / -8 : std::fabs(extreme) / 127;
  float inverse = scale == 0 ? 0 : 1 / scale;
  if (!std::isfinite(inverse))
    scale = inverse = 0; // below the least normal number
  for (int64_t i = 0; i < count; ++i) {
    int code = int(std::nearbyintf(w[i] * inverse)) + middle;
    codes[i] = uint8_t(std::min(std::max(code, 0), 2 * middle - 1));
  }
  return scale;
}

class Quantiser {
public:
  Quantiser(unsigned bits, int64_t block) : bits(bits), block(block) {}

  /// Null if \p matrix has an element that is not finite.
  std::optional<Codes> run(const Matrix &matrix) {
    m = matrix;
    if (block == 0)
      block = llvm::alignTo(m.k, 16);
    blocks = llvm::divideCeil(m.k, block);
    uint64_t count = uint64_t(m.n) * blocks * block;
    codes = allocateWeight(count * bits / 8);
    scales = allocateWeight(uint64_t(m.n) * blocks * sizeof(float));
    llvm::ArrayRef<uint8_t> bytes = m.value->bytes();
    WeightMemory expanded;
    bool inPlace = m.value->form() == Constant::Form::Dense &&
                   uintptr_t(bytes.data()) % alignof(float) == 0;
    if (!inPlace) {
      expanded = allocateWeight(m.value->numElements() * sizeof(float));
      m.value->read(0, m.value->numElements(), expanded.bytes.data());
      bytes = expanded.bytes;
    }
    weights = reinterpret_cast<const float *>(bytes.data());
    constexpr int64_t tile = 64;
    for (int64_t column = 0; column < m.n; column += tile)
      for (int64_t b = 0; b < blocks; ++b)
        if (!quantiseTile(column, std::min(tile, m.n - column), b))
          return std::nullopt;
    return Codes{Constant::dense(bits == 4 ? ElementType::U4 : ElementType::U8,
                                 {m.n, blocks, block}, codes.bytes, codes.owner,
                                 m.value->name()),
                 Constant::dense(ElementType::F32, {m.n, blocks, 1},
                                 scales.bytes, scales.owner, m.value->name())};
  }

private:
  /// Block \p b of \p width columns: rows are read across them, so that either
  /// order in memory is read by the line.
  bool quantiseTile(int64_t column, int64_t width, int64_t b) {
    int64_t first = b * block, rows = std::min(block, m.k - first);
    piece.assign(width * block, 0);
    bool finite = true;
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < width; ++j) {
        float w =
            weights[(first + i) * m.rowStride + (column + j) * m.columnStride];
        piece[j * block + i] = w;
        finite &= std::isfinite(w);
      }
    if (!finite)
      return false;
    std::vector<uint8_t> row(block);
    auto *scale = reinterpret_cast<float *>(scales.bytes.data());
    for (int64_t j = 0; j < width; ++j) {
      int64_t at = (column + j) * blocks + b;
      scale[at] =
          quantiseBlock(piece.data() + j * block, block, bits, row.data());
      uint8_t *to = codes.bytes.data() + at * block * bits / 8;
      if (bits == 8)
        llvm::copy(row, to);
      else
        for (int64_t i = 0; i < block; i += 2)
          to[i / 2] = row[i] | row[i + 1] << 4;
    }
    return true;
  }

  unsigned bits;
  int64_t block, blocks = 0;
  Matrix m;
  const float *weights = nullptr;
  WeightMemory codes, scales;
  std::vector<float> piece;
};

/// Whether \p product gives logits: its matrix is gathered from as well, or its
/// result is an output, perhaps moved or with something added.
bool isHead(const Op &product) {
  const Value *matrix = product.operand(1);
  if (const Op *transpose = matrix->def(OpKind::Transpose))
    matrix = transpose->operand(0);
  for (const Use &use : matrix->uses())
    if (use.op->kind() == OpKind::Gather)
      return true;
  const Value *y = product.result();
  for (unsigned steps = 0; steps < 8 && y->hasOneUse(); ++steps) {
    const Op *user = y->uses().front().op;
    if (user->kind() == OpKind::Return)
      return true;
    if (user->numResults() != 1 ||
        (!is(*user, ViewLike) && !is(*user, ElementwiseOp)))
      return false;
    y = user->result();
  }
  return llvm::any_of(y->uses(), [](const Use &use) {
    return use.op->kind() == OpKind::Return;
  });
}

struct QuantiseWeights final : passes::FuncPass {
  llvm::Expected<bool> runOnFunc(Module &, Func &func,
                                 passes::PassContext &context) override {
    const passes::WeightFormat &format = context.options.weights;
    if (format.bits == 0)
      return false;
    llvm::SmallVector<Op *, 64> products;
    for (Op &op : func.body)
      if (op.kind() == OpKind::MatMul)
        products.push_back(&op);
    bool changed = false;
    known.clear();
    for (Op *product : products)
      changed |= quantise(*product, format, context);
    return changed;
  }

private:
  bool quantise(Op &product, const passes::WeightFormat &format,
                passes::PassContext &context) {
    std::optional<Matrix> matrix = constantMatrix(product.operand(1));
    if (!matrix || product.operand(0)->element() != ElementType::F32)
      return false;
    if (matrix->k * matrix->n < leastElements) {
      context.missed(passName, product.loc, "its matrix is small");
      return false;
    }
    unsigned bits = format.bits < 8 && isHead(product) ? 8 : format.bits;
    Codes *codes = codesOf(*matrix, bits, format.block);
    if (!codes) {
      context.missed(passName, product.loc,
                     "its matrix has an infinity or NaN");
      return false;
    }
    if (!context.allow(passName, product))
      return false;
    replace(product, *matrix, *codes, bits);
    context.applied(passName, product.loc, {&product});
    return true;
  }

  /// Those of a matrix that was met before are shared.
  Codes *codesOf(const Matrix &matrix, unsigned bits, int64_t block) {
    auto [entry, isNew] = known.try_emplace(
        {matrix.value.get(), bits * 2 + (matrix.rowStride == 1)});
    if (isNew)
      entry->second = Quantiser(bits, block).run(matrix);
    return entry->second ? &*entry->second : nullptr;
  }

  static void replace(Op &product, const Matrix &m, const Codes &codes,
                      unsigned bits) {
    Builder builder = Builder::before(&product);
    builder.loc = product.loc;
    passes::CodesOperand operand{
        m.k, m.n, codes.codes, codes.scales, nullptr, double(1 << (bits - 1))};
    product.setOperand(1, passes::buildCodes(builder, operand));
    product.attrs<MatMulAttrs>().eightBitRows |= bits < 8;
  }

  llvm::DenseMap<std::pair<const Constant *, unsigned>, std::optional<Codes>>
      known;
};

} // namespace

std::unique_ptr<passes::Pass> passes::createQuantiseWeights() {
  return std::make_unique<QuantiseWeights>();
}
