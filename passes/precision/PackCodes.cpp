//===- PackCodes.cpp - integer matrices of a model stay packed -----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

///
/// \file
/// The laws, for a constant W[k, n] of 4 or 8 bits, with a scale and a zero
/// point for all of it, for each column, or for blocks of rows of a column:
///
///   x ((W - z) * s)                ->  x B         as DequantizeLinear has it
///   cast(x (W - z) : i32) : f32    ->  cast(x) B   MatMulInteger, s = 1
///   x (W - z) : i32                ->  x W'        W' = W - z in i8
///
/// where B is the same numbers in the form that --weights makes, codes that the
/// kernels unpack as they multiply (precision/CodesOperand). W may be
/// transposed. The second sums in f32 what was exact in i32 up to then: as
/// exact below 2^24, and within f32's rounding beyond. The third, where all
/// differences fit and x is of bytes, comes first: that is multiplied as bytes
/// (fusion/FuseByteProducts).
///
/// Not matched: matrices of fewer than 4096 elements, which are folded; scales
/// by row; blocks that are no multiple of 16; a product in i32 of which more
/// than one float is made.

#include "ir/support/WeightMemory.h"
#include "passes/Pass.h"
#include "passes/analysis/ByteProducts.h"
#include "passes/canonical/FoldOp.h"
#include "passes/precision/CodesOperand.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace tenon;
using namespace tenon::ir;
using passes::CodesOperand;

namespace {

constexpr llvm::StringLiteral passName = "pack-codes";
constexpr int64_t leastElements = 4096;

/// A constant [rows, columns] of which each element stands for some of a
/// matrix: rowStep by columnStep of them, or all there are (0).
struct Grid {
  ConstantRef value;
  int64_t rowStep = 0, columnStep = 0;
  int64_t rowStride = 1, columnStride = 1; ///< in `value`

  double at(int64_t i, int64_t j) const {
    return value->floatAt((rowStep ? i / rowStep * rowStride : 0) +
                          (columnStep ? j / columnStep * columnStride : 0));
  }
  void transpose() {
    std::swap(rowStep, columnStep);
    std::swap(rowStride, columnStride);
  }
};

ConstantRef constantOf(const Value *value) {
  Op *op = value->def(OpKind::Const);
  return op ? op->attrs<ConstAttrs>().value : nullptr;
}

std::optional<llvm::SmallVector<int64_t, 4>> fixed(ShapeRef shape) {
  llvm::SmallVector<int64_t, 4> sizes;
  for (Dim dim : shape) {
    std::optional<int64_t> size = dim.constant();
    if (!size)
      return std::nullopt;
    sizes.push_back(*size);
  }
  return sizes;
}

/// Walks from a scale or zero point, as it is broadcast, to its constant:
/// [slice] reshape broadcast reshape, of one for each block, or a reshape.
class GridReader {
public:
  std::optional<Grid> read(const Value *value) {
    auto shape = fixed(value->shape());
    if (!shape)
      return std::nullopt;
    llvm::SmallVector<int64_t, 2> steps;
    while (Op *op = value->def()) {
      if (op->kind() == OpKind::Const)
        return finish(op->attrs<ConstAttrs>().value, *shape, steps);
      if (op->numOperands() != 1)
        return std::nullopt;
      const Value *from = op->operand(0);
      if (op->kind() == OpKind::Reshape && steps.empty()) {
        if (Op *spread = from->def(OpKind::Broadcast)) {
          auto found = blockSteps(*spread);
          if (!found)
            return std::nullopt;
          steps = *found;
          from = spread->operand(0);
        }
      } else if (op->kind() == OpKind::Slice) {
        if (!startsAtZero(op->attrs<SliceAttrs>()))
          return std::nullopt;
      } else if (op->kind() != OpKind::Cast && op->kind() != OpKind::Reshape) {
        return std::nullopt;
      }
      value = from;
    }
    return std::nullopt;
  }

private:
  static bool startsAtZero(const SliceAttrs &attrs) {
    return llvm::all_of(attrs.starts,
                        [](Dim dim) { return dim.isConstant(0); }) &&
           llvm::all_of(attrs.steps, [](int64_t step) { return step == 1; });
  }

  /// [a, 1, b] to [a, block, b] or [a, b, 1] to [a, b, block].
  static std::optional<llvm::SmallVector<int64_t, 2>>
  blockSteps(const Op &spread) {
    auto from = fixed(spread.operand(0)->shape()),
         to = fixed(spread.result()->shape());
    if (!from || !to || from->size() != 3 || to->size() != 3)
      return std::nullopt;
    if ((*from)[1] == 1 && (*from)[0] == (*to)[0] && (*from)[2] == (*to)[2])
      return llvm::SmallVector<int64_t, 2>{(*to)[1], 1};
    if ((*from)[2] == 1 && (*from)[0] == (*to)[0] && (*from)[1] == (*to)[1])
      return llvm::SmallVector<int64_t, 2>{1, (*to)[2]};
    return std::nullopt;
  }

  /// Of a constant for a tensor of \p shape, at most of rank 2.
  static std::optional<Grid> finish(ConstantRef value,
                                    llvm::ArrayRef<int64_t> shape,
                                    llvm::ArrayRef<int64_t> steps) {
    Grid grid;
    grid.value = value;
    if (!steps.empty()) {
      if (value->shape().size() != 2)
        return std::nullopt;
      grid.rowStride = value->shape()[1];
      grid.rowStep = steps[0];
      grid.columnStep = steps[1];
      return grid;
    }
    if (shape.size() > 2 ||
        value->numElements() != elementCount(shape).value_or(0))
      return std::nullopt;
    int64_t rows = shape.size() == 2 ? shape[0] : 1;
    grid.rowStride = shape.empty() ? 1 : shape.back();
    grid.rowStep = rows != 1;
    grid.columnStep = grid.rowStride != 1;
    return grid;
  }
};

/// What a product multiplies by: element (i, j) of [k, n] is element
/// i * rowStride + j * columnStride of `codes`, minus `zero`, times `scale`.
struct Source {
  ConstantRef codes;
  int64_t k = 0, n = 0, rowStride = 0, columnStride = 0;
  std::optional<Grid> scale, zero;
};

bool isCode(ElementType element) {
  return element == ElementType::I8 || element == ElementType::U8 ||
         element == ElementType::I4 || element == ElementType::U4;
}

/// Reads cast(W : i32) [- z], as f32 times s if \p scaled.
std::optional<Source> readSource(const Value *value, bool scaled) {
  Source source;
  bool transposed = value->def(OpKind::Transpose) != nullptr;
  if (transposed)
    value = value->def()->operand(0);
  if (scaled) {
    Op *mul = value->def(OpKind::Mul);
    Op *cast = mul ? mul->operand(0)->def(OpKind::Cast) : nullptr;
    if (!cast || value->element() != ElementType::F32)
      return std::nullopt;
    source.scale = GridReader().read(mul->operand(1));
    if (!source.scale || source.scale->value->element() != ElementType::F32)
      return std::nullopt;
    value = cast->operand(0);
  }
  if (Op *sub = value->def(OpKind::Sub)) {
    source.zero = GridReader().read(sub->operand(1));
    if (!source.zero || !isInteger(source.zero->value->element()))
      return std::nullopt;
    value = sub->operand(0);
  }
  Op *cast = value->def(OpKind::Cast);
  source.codes = cast ? constantOf(cast->operand(0)) : nullptr;
  if (!source.codes || value->element() != ElementType::I32 ||
      !isCode(source.codes->element()) || source.codes->shape().size() != 2)
    return std::nullopt;
  source.k = source.codes->shape()[0];
  source.n = source.codes->shape()[1];
  source.rowStride = source.n;
  source.columnStride = 1;
  if (transposed) {
    std::swap(source.k, source.n);
    std::swap(source.rowStride, source.columnStride);
    for (std::optional<Grid> *grid : {&source.scale, &source.zero})
      if (*grid)
        (*grid)->transpose();
  }
  return source;
}

/// Makes the kernels' form of a matrix.
bool isUniform(const Constant &value) {
  if (value.numElements() == 0)
    return true;
  int64_t first = value.intAt(0);
  for (uint64_t i = 1; i < value.numElements(); ++i)
    if (value.intAt(i) != first)
      return false;
  return true;
}

class Packer {
public:
  explicit Packer(const Source &source) : s(source) {}

  std::optional<CodesOperand> run(std::string &why) {
    block = llvm::alignTo(s.k, 16);
    for (const std::optional<Grid> *grid : {&s.scale, &s.zero})
      if (*grid && !takeBlock(**grid)) {
        why = "its scales or zero points are not for columns, nor for blocks "
              "of a multiple of 16 rows";
        return std::nullopt;
      }
    blocks = llvm::divideCeil(s.k, block);
    CodesOperand made{s.k, s.n, nullptr, nullptr, nullptr, 0};
    made.scales = perBlock([&](int64_t i, int64_t j) {
      return s.scale ? s.scale->at(i, j) : 1.0;
    });
    auto zeroAt = [&](int64_t i, int64_t j) {
      return offset() + (s.zero ? s.zero->at(i, j) : 0.0);
    };
    if (!s.zero || isUniform(*s.zero->value))
      made.zero = zeroAt(0, 0);
    else
      made.zeros = perBlock(zeroAt);
    made.codes = packCodes();
    return made;
  }

private:
  const Source &s;
  int64_t block = 0, blocks = 0;

  bool isSmall() const { return bitWidth(s.codes->element()) == 4; }
  /// What makes a code of the least number 0.
  int64_t offset() const {
    bool isSigned = category(s.codes->element()) != TypeCategory::Unsigned;
    return !isSigned ? 0 : isSmall() ? 8 : 128;
  }

  /// Blocks are the largest of which each has one scale and one zero point.
  bool takeBlock(const Grid &grid) {
    if (grid.rowStep == 0 || grid.rowStep >= s.k)
      return true;
    if (grid.rowStep % 16 != 0 || (blocks && block != grid.rowStep))
      return false;
    block = grid.rowStep;
    blocks = 1; // two grids of blocks must agree
    return true;
  }

  ConstantRef perBlock(llvm::function_ref<double(int64_t, int64_t)> at) const {
    WeightMemory memory = allocateWeight(uint64_t(s.n) * blocks * 4);
    auto *out = reinterpret_cast<float *>(memory.bytes.data());
    for (int64_t j = 0; j != s.n; ++j)
      for (int64_t b = 0; b != blocks; ++b)
        *out++ = float(at(b * block, j));
    return Constant::dense(ElementType::F32, {s.n, blocks, 1}, memory.bytes,
                           memory.owner, s.codes->name());
  }

  /// Rows that pad the last block are cut off again and may be anything.
  ConstantRef packCodes() const {
    uint64_t perColumn = uint64_t(blocks) * block;
    WeightMemory memory =
        allocateWeight(uint64_t(s.n) * perColumn / (isSmall() ? 2 : 1));
    // Rows are read across 64 columns, so that either order in memory is read
    // by the line.
    constexpr int64_t tile = 64;
    for (int64_t first = 0; first < s.n; first += tile)
      for (int64_t i = 0; i != s.k; ++i)
        for (int64_t j = first; j != std::min(s.n, first + tile); ++j) {
          int64_t x =
              s.codes->intAt(i * s.rowStride + j * s.columnStride) + offset();
          uint64_t at = uint64_t(j) * perColumn + i;
          if (isSmall())
            memory.bytes[at / 2] |= uint8_t(x << (at % 2 * 4));
          else
            memory.bytes[at] = uint8_t(x);
        }
    return Constant::dense(isSmall() ? ElementType::U4 : ElementType::U8,
                           {s.n, blocks, block}, memory.bytes, memory.owner,
                           s.codes->name());
  }
};

/// W - z in i8, [k, n], if all of it fits.
ConstantRef inBytes(const Source &s) {
  if (s.codes->element() == ElementType::I8 && s.columnStride == 1 && !s.zero)
    return s.codes;
  WeightMemory memory = allocateWeight(uint64_t(s.k) * s.n);
  for (int64_t i = 0; i != s.k; ++i)
    for (int64_t j = 0; j != s.n; ++j) {
      int64_t x = s.codes->intAt(i * s.rowStride + j * s.columnStride) -
                  (s.zero ? int64_t(s.zero->at(i, j)) : 0);
      if (x < -128 || x > 127)
        return nullptr;
      memory.bytes[i * s.n + j] = uint8_t(x);
    }
  return Constant::dense(ElementType::I8, {s.k, s.n}, memory.bytes,
                         memory.owner, s.codes->name());
}

struct PackCodes final : passes::FuncPass {
  llvm::Expected<bool> runOnFunc(Module &, Func &func,
                                 passes::PassContext &context) override {
    llvm::SmallVector<Op *, 64> products;
    for (Op &op : func.body)
      if (op.kind() == OpKind::MatMul && op.operand(1)->rank() == 2)
        products.push_back(&op);
    known.clear();
    knownBytes.clear();
    bool changed = false;
    for (Op *product : products)
      changed |= product->operand(1)->element() == ElementType::I32
                     ? packIntegers(*product, context)
                     : packFloats(*product, context);
    return changed;
  }

private:
  /// Those of a matrix that was met before are shared.
  const CodesOperand *codesOf(const Op &product, bool scaled,
                              passes::PassContext &context) {
    Value *matrix = product.operand(1);
    auto [entry, isNew] = known.try_emplace(matrix);
    if (!isNew)
      return entry->second ? &*entry->second : nullptr;
    std::optional<Source> source = readSource(matrix, scaled);
    if (!source)
      return nullptr;
    std::string why = "its matrix is small";
    if (source->k * source->n >= leastElements)
      entry->second = Packer(*source).run(why);
    if (!entry->second)
      context.missed(passName, product.loc, why);
    return entry->second ? &*entry->second : nullptr;
  }

  bool packFloats(Op &product, passes::PassContext &context) {
    if (product.operand(0)->element() != ElementType::F32)
      return false;
    const CodesOperand *codes = codesOf(product, true, context);
    if (!codes || !context.allow(passName, product))
      return false;
    Builder builder = Builder::before(&product);
    builder.loc = product.loc;
    product.setOperand(1, passes::buildCodes(builder, *codes));
    context.applied(passName, product.loc, {&product});
    return true;
  }

  bool packIntegers(Op &product, passes::PassContext &context) {
    if (!product.result()->hasOneUse())
      return false;
    Op *cast = product.result()->uses().front().op;
    if (cast->kind() != OpKind::Cast ||
        cast->result()->element() != ElementType::F32)
      return false;
    if (passes::sumsBytes(product))
      if (ConstantRef bytes = bytesOf(product))
        return packBytes(product, bytes, context);
    const CodesOperand *codes = codesOf(product, false, context);
    if (!codes || !context.allow(passName, product))
      return false;
    context.applied(passName, product.loc, {&product});
    Builder builder = Builder::before(&product);
    builder.loc = product.loc;
    CastAttrs toFloat;
    toFloat.to = ElementType::F32;
    Value *rows = builder.buildCast({product.operand(0)}, toFloat);
    Value *y = builder.buildMatMul({rows, passes::buildCodes(builder, *codes)});
    cast->result()->replaceAllUsesWith(y);
    cast->erase();
    product.erase();
    return true;
  }

  ConstantRef bytesOf(const Op &product) {
    auto [entry, isNew] = knownBytes.try_emplace(product.operand(1));
    if (isNew)
      if (std::optional<Source> source = readSource(product.operand(1), false))
        entry->second = inBytes(*source);
    return entry->second;
  }

  bool packBytes(Op &product, ConstantRef bytes, passes::PassContext &context) {
    Op *cast = product.operand(1)->def(OpKind::Cast);
    if ((cast && constantOf(cast->operand(0)) == bytes) ||
        !context.allow(passName, product))
      return false;
    Builder builder = Builder::before(&product);
    builder.loc = product.loc;
    CastAttrs widen;
    widen.to = ElementType::I32;
    product.setOperand(1, builder.buildCast({builder.constant(bytes)}, widen));
    context.applied(passName, product.loc, {&product});
    return true;
  }

  llvm::DenseMap<const Value *, std::optional<CodesOperand>> known;
  llvm::DenseMap<const Value *, ConstantRef> knownBytes;
};

} // namespace

std::unique_ptr<passes::Pass> passes::createPackCodes() {
  return std::make_unique<PackCodes>();
}
