//===- FoldOp.cpp - computing an op on constants
//-----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/canonical/FoldOp.h"
#include "ir/Builder.h"
#include "ir/eval/Evaluator.h"
#include "ir/support/WeightMemory.h"
#include "passes/analysis/ByteProducts.h"
#include "passes/analysis/PackedWeights.h"
#include "llvm/ADT/STLExtras.h"
#include <cstring>
#include <memory>

using namespace tenon;
using namespace tenon::ir;
using llvm::ArrayRef;

namespace {

constexpr uint64_t maxEvaluatedBytes = 1 << 20;

/// The bytes of element 0.
llvm::SmallVector<uint8_t, 8> firstElement(const Constant &constant) {
  llvm::SmallVector<uint8_t, 8> bytes(*byteSize(constant.element(), 1));
  constant.read(0, 1, bytes.data());
  return bytes;
}

const ConstantRef &constantOf(Value *value) {
  return value->def()->attrs<ConstAttrs>().value;
}

bool isDense(const Constant &constant) {
  return constant.form() == Constant::Form::Dense &&
         bitWidth(constant.element()) % 8 == 0;
}

/// Copies the box `starts + i * steps` (permuted by strides already) of \p from
/// to the row-major \p to.
void copyStrided(const uint8_t *from, uint8_t *to, ArrayRef<int64_t> shape,
                 ArrayRef<int64_t> strides, size_t width) {
  if (llvm::is_contained(shape, 0))
    return;
  // The innermost run is copied at once where it is contiguous.
  size_t rank = shape.size();
  int64_t run = rank && strides[rank - 1] == 1 ? shape[rank - 1] : 1;
  size_t outer = run > 1 ? rank - 1 : rank;
  llvm::SmallVector<int64_t, 4> index(outer, 0);
  int64_t offset = 0;
  while (true) {
    std::memcpy(to, from + offset * static_cast<int64_t>(width), run * width);
    to += run * width;
    size_t d = outer;
    for (; d > 0; --d) {
      offset += strides[d - 1];
      if (++index[d - 1] != shape[d - 1])
        break;
      offset -= strides[d - 1] * shape[d - 1];
      index[d - 1] = 0;
    }
    if (d == 0)
      return;
  }
}

/// Copies a matrix of \p rows x \p columns transposed, tile by tile, so that
/// both sides stay in the cache.
template <class T>
void transposeMatrix(const uint8_t *from, uint8_t *to, int64_t rows,
                     int64_t columns) {
  constexpr int64_t tile = 32;
  for (int64_t r = 0; r < rows; r += tile)
    for (int64_t c = 0; c < columns; c += tile)
      for (int64_t j = c; j < std::min(c + tile, columns); ++j)
        for (int64_t i = r; i < std::min(r + tile, rows); ++i)
          std::memcpy(to + (j * rows + i) * sizeof(T),
                      from + (i * columns + j) * sizeof(T), sizeof(T));
}

bool transposeMatrix(const Constant &x, llvm::ArrayRef<int64_t> perm,
                     uint8_t *to) {
  if (perm.size() != 2 || perm[0] != 1)
    return false;
  const uint8_t *from = x.bytes().data();
  int64_t rows = x.shape()[0], columns = x.shape()[1];
  switch (bitWidth(x.element())) {
  case 16:
    transposeMatrix<uint16_t>(from, to, rows, columns);
    return true;
  case 32:
    transposeMatrix<uint32_t>(from, to, rows, columns);
    return true;
  default:
    return false;
  }
}

ConstantRef foldTranspose(const Op &op, ArrayRef<int64_t> shape,
                          passes::FoldBudget &budget) {
  const ConstantRef &x = constantOf(op.operand(0));
  if (!isDense(*x) || !budget.take(x->bytes().size(), 0))
    return nullptr;
  size_t width = bitWidth(x->element()) / 8;
  llvm::SmallVector<int64_t, 4> strides = rowMajorStrides(x->shape()), mine;
  for (int64_t axis : op.attrs<TransposeAttrs>().perm)
    mine.push_back(strides[axis]);
  WeightMemory buffer = allocateWeight(x->bytes().size());
  if (!transposeMatrix(*x, op.attrs<TransposeAttrs>().perm,
                       buffer.bytes.data()))
    copyStrided(x->bytes().data(), buffer.bytes.data(), shape, mine, width);
  return Constant::dense(x->element(), shape, buffer.bytes, buffer.owner,
                         x->name());
}

ConstantRef foldSlice(const Op &op, ArrayRef<int64_t> shape,
                      passes::FoldBudget &budget) {
  const ConstantRef &x = constantOf(op.operand(0));
  if (!isDense(*x))
    return nullptr;
  if (llvm::is_contained(shape, 0))
    return Constant::copy(x->element(), shape, {}, x->name());
  const auto &attrs = op.attrs<SliceAttrs>();
  size_t width = bitWidth(x->element()) / 8;
  llvm::SmallVector<int64_t, 4> strides = rowMajorStrides(x->shape());
  int64_t first = 0, count = 1;
  for (size_t i = 0; i != shape.size(); ++i) {
    std::optional<int64_t> start = attrs.starts[i].constant();
    if (!start)
      return nullptr;
    first += *start * strides[i];
    // With one element there is no next one; its step may be any number.
    strides[i] = shape[i] == 1 ? 0 : strides[i] * attrs.steps[i];
    count *= shape[i];
  }
  if (!budget.take(count * width, 0))
    return nullptr;
  WeightMemory buffer = allocateWeight(count * width);
  copyStrided(x->bytes().data() + first * width, buffer.bytes.data(), shape,
              strides, width);
  return Constant::dense(x->element(), shape, buffer.bytes, buffer.owner,
                         x->name());
}

ConstantRef foldConcat(const Op &op, ArrayRef<int64_t> shape,
                       passes::FoldBudget &budget) {
  if (!llvm::all_of(op.operands(),
                    [](Value *v) { return isDense(*constantOf(v)); }))
    return nullptr;
  ElementType element = op.operand(0)->element();
  size_t axis = op.attrs<AxisAttrs>().axis, width = bitWidth(element) / 8;
  uint64_t outer = 1, inner = width, total = width;
  for (size_t i = 0; i != shape.size(); ++i) {
    (i < axis ? outer : inner) *= i == axis ? 1 : shape[i];
    total *= shape[i];
  }
  if (!budget.take(total, 0))
    return nullptr;
  WeightMemory buffer = allocateWeight(total);
  uint8_t *to = buffer.bytes.data();
  for (uint64_t row = 0; row != outer; ++row)
    for (Value *operand : op.operands()) {
      const Constant &x = *constantOf(operand);
      uint64_t run = x.shape()[axis] * inner;
      std::memcpy(to, x.bytes().data() + row * run, run);
      to += run;
    }
  return Constant::dense(element, shape, buffer.bytes, buffer.owner);
}

/// A weight between floating-point types stays in its file's pages and is
/// converted when it is read. Casts to 8 bits may saturate: not here.
ConstantRef foldCast(const Op &op) {
  const ConstantRef &x = constantOf(op.operand(0));
  ElementType to = op.result()->element();
  auto converts = [](ElementType t) { return isFloat(t) && bitWidth(t) >= 16; };
  return converts(x->element()) && converts(to) ? Constant::converted(x, to)
                                                : nullptr;
}

/// An elementwise op whose operands are splats, computed once.
ConstantRef foldSplats(const Op &op, ArrayRef<int64_t> shape) {
  Block scratch;
  Builder builder(&scratch);
  llvm::SmallVector<Value *, 3> scalars;
  std::vector<Tensor> tensors;
  for (Value *operand : op.operands()) {
    const Constant &x = *constantOf(operand);
    if (x.form() != Constant::Form::Splat && x.numElements() != 1)
      return nullptr;
    ConstantRef scalar = passes::reshapeConstant(constantOf(operand), {});
    scalars.push_back(builder.constant(scalar));
    tensors.push_back(Tensor::fromConstant(*scalar));
  }
  llvm::Expected<Op *> copy = builder.clone(op, scalars);
  if (!copy) {
    llvm::consumeError(copy.takeError());
    return nullptr;
  }
  llvm::SmallVector<const Tensor *, 3> operands;
  for (const Tensor &tensor : tensors)
    operands.push_back(&tensor);
  DimEnv env;
  llvm::Expected<std::vector<Tensor>> results =
      evaluateOp(**copy, operands, env);
  if (!results) {
    llvm::consumeError(results.takeError());
    return nullptr;
  }
  const Tensor &value = results->front();
  return Constant::splatBytes(value.element, shape, value.bytes);
}

/// About how many steps an element of \p op's result takes.
uint64_t stepsPerElement(const Op &op) {
  auto product = [](ArrayRef<int64_t> sizes) {
    uint64_t steps = 1;
    for (int64_t size : sizes)
      steps = llvm::SaturatingMultiply(steps, uint64_t(size));
    return steps;
  };
  if (op.kind() == OpKind::MatMul)
    return constantOf(op.operand(0))->shape().back();
  if (op.kind() == OpKind::Conv)
    return product(constantOf(op.operand(1))->shape().drop_front());
  if (op.kind() == OpKind::AveragePool)
    return product(op.attrs<PoolAttrs>().kernel);
  return 1;
}

ConstantRef evaluateFold(const Op &op, ArrayRef<int64_t> shape,
                         passes::FoldBudget &budget) {
  const TensorType &type = op.result()->type;
  uint64_t count = 1;
  for (int64_t size : shape)
    if (__builtin_mul_overflow(count, size, &count) ||
        count > maxEvaluatedBytes)
      return nullptr;
  std::optional<uint64_t> bytes = byteSize(type.element, count);
  if (!bytes || *bytes > maxEvaluatedBytes)
    return nullptr;
  uint64_t steps = llvm::SaturatingMultiply(count, stepsPerElement(op));
  for (Value *operand : op.operands()) {
    uint64_t elements = operand ? constantOf(operand)->numElements() : 0;
    if (elements > 4 * maxEvaluatedBytes)
      return nullptr;
    steps = llvm::SaturatingAdd(steps, elements);
  }
  if (!budget.take(*bytes, steps))
    return nullptr;
  std::vector<Tensor> tensors(op.numOperands());
  llvm::SmallVector<const Tensor *, 4> operands;
  for (unsigned i = 0; i != op.numOperands(); ++i) {
    if (op.operand(i))
      tensors[i] = Tensor::fromConstant(*constantOf(op.operand(i)));
    operands.push_back(op.operand(i) ? &tensors[i] : nullptr);
  }
  DimEnv env;
  llvm::Expected<std::vector<Tensor>> results = evaluateOp(op, operands, env);
  if (!results) {
    llvm::consumeError(results.takeError());
    return nullptr;
  }
  const Tensor &value = results->front();
  return Constant::copy(value.element, value.shape, value.bytes);
}

} // namespace

ConstantRef passes::reshapeConstant(const ConstantRef &constant,
                                    ArrayRef<int64_t> shape) {
  switch (constant->form()) {
  case Constant::Form::Dense:
    return Constant::dense(constant->element(), shape, constant->bytes(),
                           constant, constant->name());
  case Constant::Form::Splat:
    return Constant::splatBytes(constant->element(), shape, constant->bytes());
  case Constant::Form::Iota:
  case Constant::Form::Random:
    return Constant::generated(constant->form(), constant->element(), shape,
                               constant->seed());
  case Constant::Form::Concat:
  case Constant::Form::Converted: {
    uint64_t count = constant->numElements();
    WeightMemory buffer = allocateWeight(*byteSize(constant->element(), count));
    constant->read(0, count, buffer.bytes.data());
    return Constant::dense(constant->element(), shape, buffer.bytes,
                           buffer.owner, constant->name());
  }
  }
  llvm_unreachable("not a form");
}

bool passes::FoldBudget::take(uint64_t moreBytes, uint64_t moreSteps) {
  if (moreBytes > bytes || moreSteps > steps)
    return false;
  bytes -= moreBytes;
  steps -= moreSteps;
  return true;
}

ConstantRef passes::foldOp(const Op &op, passes::FoldBudget &budget) {
  if (op.kind() == OpKind::Const || op.numResults() != 1 || op.region() ||
      is(op, SideEffect) || !op.numOperands() || unpacksWeight(op) ||
      widensByteMatrix(op))
    return nullptr;
  for (Value *operand : op.operands())
    if (operand && !operand->def(OpKind::Const))
      return nullptr;
  std::optional<llvm::SmallVector<int64_t>> shape =
      constantShape(op.result()->shape());
  if (!shape)
    return nullptr;
  ConstantRef value;
  if (op.kind() == OpKind::Reshape)
    value = reshapeConstant(constantOf(op.operand(0)), *shape);
  else if (op.kind() == OpKind::Transpose)
    value = foldTranspose(op, *shape, budget);
  else if (op.kind() == OpKind::Slice)
    value = foldSlice(op, *shape, budget);
  else if (op.kind() == OpKind::Concat)
    value = foldConcat(op, *shape, budget);
  else if (op.kind() == OpKind::Cast)
    value = foldCast(op);
  else if (is(op, ElementwiseOp))
    value = foldSplats(op, *shape);
  else if (op.kind() == OpKind::Broadcast &&
           constantOf(op.operand(0))->numElements() == 1)
    value = Constant::splatBytes(op.result()->element(), *shape,
                                 firstElement(*constantOf(op.operand(0))));
  return value ? value : evaluateFold(op, *shape, budget);
}
