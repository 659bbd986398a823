//===- ShapeValues.cpp - integer tensors known as symbolic expressions ---===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/ShapeValues.h"
#include "ir/OpDef.h"
#include "ir/eval/Evaluator.h"
#include "ir/eval/Loops.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace tenon::ir {

namespace {

using MaybeNumber = std::optional<Number>;

constexpr uint64_t maxElements = 4096;

/// The shape of a tensor that is small enough to follow.
std::optional<Extents> smallShape(const Value *value) {
  Extents shape;
  uint64_t count = 1;
  for (Dim dim : value->shape()) {
    std::optional<int64_t> extent = dim.constant();
    if (!extent || *extent < 0 || *extent > int64_t(maxElements))
      return std::nullopt;
    shape.push_back(*extent);
    count *= uint64_t(*extent);
    if (count > maxElements)
      return std::nullopt;
  }
  return shape;
}

uint64_t countOf(ArrayRef<int64_t> shape) {
  uint64_t count = 1;
  for (int64_t extent : shape)
    count *= uint64_t(extent);
  return count;
}

/// Of an op that only moves elements: whether operand number \p i is one that
/// elements come from, as opposed to indices. nullopt for other ops.
std::optional<bool> bringsElements(const Op &op, unsigned i) {
  switch (op.kind()) {
  case OpKind::Reshape:
  case OpKind::Transpose:
  case OpKind::Broadcast:
  case OpKind::Slice:
  case OpKind::Concat:
  case OpKind::Pad:
  case OpKind::Trilu:
    return true;
  case OpKind::Gather:
  case OpKind::GatherElements:
  case OpKind::GatherNd:
    return i == 0;
  case OpKind::ScatterNd:
    if (op.attrs<ScatterNdAttrs>().reduction != ScatterReduction::None)
      return std::nullopt;
    return i != 1;
  case OpKind::ScatterElements:
    if (op.attrs<ScatterElementsAttrs>().reduction != ScatterReduction::None)
      return std::nullopt;
    return i != 1;
  case OpKind::OneHot:
    return i == 1;
  default:
    return std::nullopt;
  }
}

bool canFollow(const Op &op) {
  switch (op.kind()) {
  case OpKind::Const:
  case OpKind::Dims:
  case OpKind::Range:
  case OpKind::CumSum:
  case OpKind::TopK:
  case OpKind::ArgMax:
  case OpKind::ArgMin:
    return true;
  default:
    return is(op, ElementwiseOp) || is(op, ReductionOp) ||
           bringsElements(op, 0).has_value();
  }
}

/// One element of a tensor; nullopt for what a Number cannot be.
MaybeNumber numberAt(const Tensor &tensor, uint64_t i) {
  if (tensor.isFloatTensor())
    return Number::fromFloat(tensor.at(i));
  int64_t value = tensor.intAt(i);
  if (tensor.element == ElementType::U64 && value < 0)
    return std::nullopt;
  return Number{Dim(value), 1};
}

/// The tensor whose elements are \p numbers, if they are all constant.
std::optional<Tensor> toTensor(const Value *value,
                               ArrayRef<MaybeNumber> numbers) {
  std::optional<Extents> shape = smallShape(value);
  if (!shape || numbers.size() != countOf(*shape))
    return std::nullopt;
  Tensor tensor(value->element(), *shape);
  for (auto [i, number] : enumerate(numbers)) {
    std::optional<double> constant = number ? number->constant() : std::nullopt;
    if (!constant)
      return std::nullopt;
    if (tensor.isFloatTensor())
      tensor.set(i, *constant);
    else
      tensor.setInt(i, *number->numerator.constant());
  }
  return tensor;
}

} // namespace

//===----------------------------------------------------------------------===//
// Asking
//===----------------------------------------------------------------------===//

std::optional<SmallVector<Dim, 4>> ShapeValues::valuesOf(Value *value) {
  const std::optional<Partial> &partial = partialOf(value);
  if (!partial)
    return std::nullopt;
  SmallVector<Dim, 4> values;
  for (const std::optional<Dim> &element : *partial) {
    if (!element)
      return std::nullopt;
    values.push_back(*element);
  }
  return values;
}

std::optional<Dim> ShapeValues::scalarOf(Value *value) {
  const std::optional<Partial> &partial = partialOf(value);
  return partial && partial->size() == 1 ? partial->front() : std::nullopt;
}

const std::optional<ShapeValues::Partial> &
ShapeValues::partialOf(Value *value) {
  return entryOf(value).partial;
}

ArrayRef<MaybeNumber> ShapeValues::known(Value *value) {
  auto it = memo.find(value);
  return it == memo.end() ? ArrayRef<MaybeNumber>() : it->second.numbers;
}

ShapeValues::Entry &ShapeValues::entryOf(Value *root) {
  SmallVector<Value *, 16> stack{root};
  while (!stack.empty()) {
    Value *value = stack.back();
    if (memo.contains(value)) {
      stack.pop_back();
      continue;
    }
    bool follow = value->def() && canFollow(*value->def()) && smallShape(value);
    size_t before = stack.size();
    if (follow)
      for (Value *operand : value->def()->operands())
        if (operand && !memo.contains(operand))
          stack.push_back(operand);
    if (stack.size() != before)
      continue;
    stack.pop_back();
    Entry entry;
    if (follow)
      entry.numbers = compute(value);
    bool isEmptyTensor = follow && countOf(*smallShape(value)) == 0;
    if (!isFloat(value->element()) &&
        (isEmptyTensor || any_of(entry.numbers, [](const MaybeNumber &number) {
           return number.has_value();
         }))) {
      entry.partial.emplace();
      for (const MaybeNumber &number : entry.numbers)
        entry.partial->push_back(number ? std::optional(number->numerator)
                                        : std::nullopt);
    }
    memo[value] = std::move(entry);
  }
  return memo.find(root)->second;
}

//===----------------------------------------------------------------------===//
// Computing
//===----------------------------------------------------------------------===//

ShapeValues::Numbers ShapeValues::compute(Value *value) {
  const Op &op = *value->def();
  Numbers numbers;
  if (op.kind() == OpKind::Dims) {
    for (Dim dim : op.attrs<DimsAttrs>().values)
      numbers.push_back(Number{dim, 1});
    return numbers;
  }
  if (op.kind() == OpKind::Const) {
    Tensor tensor = Tensor::fromConstant(*op.attrs<ConstAttrs>().value);
    for (uint64_t i = 0, n = tensor.numElements(); i < n; ++i)
      numbers.push_back(numberAt(tensor, i));
    return numbers;
  }
  numbers = evaluateConstant(value);
  if (!numbers.empty())
    return numbers;
  if (is(op, ElementwiseOp))
    return evaluateElementwise(value);
  if (is(op, ReductionOp))
    return evaluateReduction(value);
  if (op.kind() == OpKind::Range)
    return evaluateRange(value);
  return evaluateMovement(value);
}

/// Runs the op's reference semantics, if all operands are constants.
ShapeValues::Numbers ShapeValues::evaluateConstant(Value *value) {
  const Op &op = *value->def();
  std::vector<Tensor> tensors;
  tensors.reserve(op.numOperands());
  SmallVector<const Tensor *, 4> operands;
  for (Value *operand : op.operands()) {
    operands.push_back(nullptr);
    if (!operand)
      continue;
    std::optional<Tensor> tensor = toTensor(operand, known(operand));
    if (!tensor)
      return {};
    tensors.push_back(std::move(*tensor));
    operands.back() = &tensors.back();
  }
  DimEnv env;
  Expected<std::vector<Tensor>> results = evaluateOp(op, operands, env);
  if (!results) {
    // Attributes with symbols, or indices out of range: an error for whoever
    // runs the op.
    consumeError(results.takeError());
    return {};
  }
  const Tensor &result = (*results)[value->index()];
  Numbers numbers;
  for (uint64_t i = 0, n = result.numElements(); i < n; ++i)
    numbers.push_back(numberAt(result, i));
  return numbers;
}

ShapeValues::Numbers ShapeValues::evaluateElementwise(Value *value) {
  const Op &op = *value->def();
  Extents shape = *smallShape(value);
  std::array<Extents, 3> strides;
  strides.fill(Extents(shape.size(), 0));
  SmallVector<ArrayRef<MaybeNumber>, 3> operands;
  for (auto [k, operand] : enumerate(op.operands())) {
    operands.push_back(known(operand));
    if (!operands.back().empty())
      strides[k] = broadcastStrides(*smallShape(operand), shape);
  }
  Numbers numbers;
  forEachOffset(shape, strides, [&](const std::array<int64_t, 3> &at) {
    SmallVector<MaybeNumber, 3> x;
    for (auto [k, operand] : enumerate(operands))
      x.push_back(operand.empty() ? std::nullopt : operand[at[k]]);
    ElementType from = op.operand(0)->element(), to = value->element();
    if (op.kind() != OpKind::Cast)
      numbers.push_back(applyElementwise(op.kind(), x, from, to));
    else
      numbers.push_back(x[0] ? applyCast(*x[0], from, to) : std::nullopt);
  });
  return numbers;
}

/// Moves numbers as the reference semantics move elements: by running them on
/// tensors of tickets. Ticket 0 is the zero that trilu and pad put in.
ShapeValues::Numbers ShapeValues::evaluateMovement(Value *value) {
  const Op &op = *value->def();
  Numbers tickets{Number{Dim(0), 1}};
  std::vector<Tensor> tensors;
  tensors.reserve(op.numOperands());
  SmallVector<const Tensor *, 4> operands;
  for (auto [k, operand] : enumerate(op.operands())) {
    operands.push_back(nullptr);
    if (!operand)
      continue;
    std::optional<bool> isSource = bringsElements(op, k);
    std::optional<Extents> shape = smallShape(operand);
    if (!isSource || !shape)
      return {};
    std::optional<Tensor> tensor;
    ArrayRef<MaybeNumber> numbers = known(operand);
    if (*isSource) {
      tensor.emplace(ElementType::I64, *shape);
      for (uint64_t i = 0, n = countOf(*shape); i < n; ++i) {
        tensor->setInt(i, tickets.size());
        tickets.push_back(numbers.empty() ? std::nullopt : numbers[i]);
      }
    } else {
      tensor = toTensor(operand, numbers);
    }
    if (!tensor)
      return {};
    tensors.push_back(std::move(*tensor));
    operands.back() = &tensors.back();
  }
  Tensor result(ElementType::I64, *smallShape(value));
  DimEnv env;
  EvalContext context{op, operands, result, env};
  if (Error error = opDef(op).eval(context)) {
    consumeError(std::move(error));
    return {};
  }
  Numbers numbers;
  for (uint64_t i = 0, n = result.numElements(); i < n; ++i)
    numbers.push_back(tickets[result.intAt(i)]);
  return numbers;
}

ShapeValues::Numbers ShapeValues::evaluateRange(Value *value) {
  const Op &op = *value->def();
  ArrayRef<MaybeNumber> start = known(op.operand(0)),
                        delta = known(op.operand(1));
  if (start.size() != 1 || delta.size() != 1)
    return {};
  Numbers numbers;
  ElementType type = value->element();
  for (int64_t i = 0, n = (*smallShape(value))[0]; i < n; ++i) {
    MaybeNumber offset = applyElementwise(
        OpKind::Mul, {delta[0], Number{Dim(i), 1}}, type, type);
    numbers.push_back(
        applyElementwise(OpKind::Add, {start[0], offset}, type, type));
  }
  return numbers;
}

ShapeValues::Numbers ShapeValues::evaluateReduction(Value *value) {
  const Op &op = *value->def();
  OpKind step;
  switch (op.kind()) {
  case OpKind::ReduceSum:
    step = OpKind::Add;
    break;
  case OpKind::ReduceProd:
    step = OpKind::Mul;
    break;
  case OpKind::ReduceMin:
    step = OpKind::Min;
    break;
  case OpKind::ReduceMax:
    step = OpKind::Max;
    break;
  default:
    return {};
  }
  ArrayRef<MaybeNumber> x = known(op.operand(0));
  if (x.empty())
    return {};
  Extents shape = *smallShape(op.operand(0)), kept = shape;
  for (int64_t axis : op.attrs<ReduceAttrs>().axes)
    kept[axis] = 1;
  Extents strides = broadcastStrides(kept, shape);
  Numbers numbers(countOf(kept));
  BitVector started(numbers.size());
  uint64_t i = 0;
  ElementType type = value->element();
  forEachOffset<1>(shape, {strides}, [&](const std::array<int64_t, 1> &at) {
    MaybeNumber &result = numbers[at[0]];
    result = started.test(at[0])
                 ? applyElementwise(step, {result, x[i]}, type, type)
                 : x[i];
    started.set(at[0]);
    ++i;
  });
  return numbers;
}

} // namespace tenon::ir
