//===- Emitter.cpp - building ops from a model's nodes -------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/Emitter.h"
#include "frontend/Weights.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include <cmath>

using namespace llvm;
using namespace tenon::ir;

namespace tenon::frontend {

//===----------------------------------------------------------------------===//
// Any op
//===----------------------------------------------------------------------===//

Op *Emitter::create(OpKind kind, ArrayRef<Value *> operands,
                    std::unique_ptr<Attrs> attrs) {
  if (failed())
    return nullptr;
  if (!attrs)
    attrs = opDef(kind).makeAttrs();
  Expected<Op *> made = builder.create(kind, operands, std::move(attrs));
  if (!made) {
    errors.fail(made.takeError());
    return nullptr;
  }
  // What has a constant size must be possible at all, whoever computes it.
  for (Value *result : (*made)->results()) {
    if (result->rank() > maxRank) {
      fail("its result has {0} dimensions; at most {1} are supported",
           result->rank(), maxRank);
      return nullptr;
    }
    std::optional<SmallVector<int64_t>> shape = constantShape(result->shape());
    if (!shape)
      continue;
    uint64_t count = 1;
    for (int64_t dim : *shape) {
      if (dim < 0 || (dim > 0 && count > uint64_t(INT64_MAX) / dim)) {
        fail("its result would be {0}, which is too large", result->type);
        return nullptr;
      }
      count *= dim;
    }
    std::optional<uint64_t> bytes = byteSize(result->element(), count);
    if (!bytes || *bytes > uint64_t(INT64_MAX)) {
      fail("its result would be {0}, which is too large", result->type);
      return nullptr;
    }
  }
  return *made;
}

Value *Emitter::op(OpKind kind, ArrayRef<Value *> operands) {
  Op *made = create(kind, operands);
  return made ? made->result() : nullptr;
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

Value *Emitter::constant(ConstantRef value) {
  if (failed() || !value)
    return nullptr;
  return builder.constant(std::move(value));
}

Value *Emitter::scalar(ElementType element, double value) {
  if (!isFloat(element) && value != std::floor(value))
    return fail("a factor of {0} does not fit elements of type {1}", value,
                mnemonic(element));
  return constant(Constant::scalar(element, value));
}

Value *Emitter::table(ElementType element, ArrayRef<int64_t> shape,
                      ArrayRef<double> values) {
  std::vector<uint8_t> bytes((values.size() * bitWidth(element) + 7) / 8);
  for (auto [i, value] : llvm::enumerate(values))
    storeElement(element, bytes.data(), i, value);
  return constant(Constant::copy(element, shape, bytes));
}

Value *Emitter::dims(ArrayRef<Dim> values) {
  DimsAttrs attrs;
  attrs.values.assign(values.begin(), values.end());
  return op(OpKind::Dims, {}, attrs);
}

Value *Emitter::dimScalar(Dim value) {
  DimsAttrs attrs;
  attrs.values = {value};
  attrs.scalar = true;
  return op(OpKind::Dims, {}, attrs);
}

Value *Emitter::filled(ElementType element, double value, ShapeRef shape) {
  std::optional<SmallVector<int64_t>> fixed = constantShape(shape);
  if (!fixed)
    return broadcast(scalar(element, value), shape);
  uint64_t count = 1;
  for (int64_t dim : *fixed) {
    if (dim < 0 || (dim > 0 && count > uint64_t(INT64_MAX) / 16 / dim))
      return fail("its result would be {0}, which is too large",
                  TensorType{element, Shape(shape)});
    count *= dim;
  }
  return constant(Constant::splat(element, *fixed, value));
}

//===----------------------------------------------------------------------===//
// Shorthands
//===----------------------------------------------------------------------===//

Value *Emitter::add(Value *a, Value *b) { return op(OpKind::Add, {a, b}); }
Value *Emitter::sub(Value *a, Value *b) { return op(OpKind::Sub, {a, b}); }
Value *Emitter::mul(Value *a, Value *b) { return op(OpKind::Mul, {a, b}); }
Value *Emitter::div(Value *a, Value *b) { return op(OpKind::Div, {a, b}); }

Value *Emitter::addScalar(Value *a, double b) {
  return failed() ? nullptr : add(a, scalar(a->element(), b));
}

Value *Emitter::mulScalar(Value *a, double b) {
  if (failed())
    return nullptr;
  return b == 1.0 ? a : mul(a, scalar(a->element(), b));
}

Value *Emitter::where(Value *condition, Value *a, Value *b) {
  return op(OpKind::Where, {condition, a, b});
}

Value *Emitter::cast(Value *x, ElementType to) {
  if (failed() || x->element() == to)
    return failed() ? nullptr : x;
  CastAttrs attrs;
  attrs.to = to;
  return op(OpKind::Cast, {x}, attrs);
}

Value *Emitter::reshape(Value *x, ShapeRef shape) {
  if (failed() || x->shape() == shape)
    return failed() ? nullptr : x;
  ShapeAttrs attrs;
  attrs.shape.assign(shape.begin(), shape.end());
  return op(OpKind::Reshape, {x}, attrs);
}

Value *Emitter::broadcast(Value *x, ShapeRef shape) {
  if (failed() || x->shape() == shape)
    return failed() ? nullptr : x;
  ShapeAttrs attrs;
  attrs.shape.assign(shape.begin(), shape.end());
  return op(OpKind::Broadcast, {x}, attrs);
}

Value *Emitter::transpose(Value *x, ArrayRef<int64_t> perm) {
  if (failed() || llvm::equal(perm, llvm::seq<int64_t>(0, perm.size())))
    return failed() ? nullptr : x;
  TransposeAttrs attrs;
  attrs.perm.assign(perm.begin(), perm.end());
  return op(OpKind::Transpose, {x}, attrs);
}

Value *Emitter::element(Value *x, int64_t axis, Dim index) {
  Value *one = slice(x, axis, index, Dim(1));
  if (failed())
    return nullptr;
  Shape shape(one->shape());
  shape.erase(shape.begin() + axis);
  return reshape(one, shape);
}

Value *Emitter::stack(ArrayRef<Value *> values, int64_t axis) {
  if (failed())
    return nullptr;
  Values parts;
  for (Value *value : values) {
    Shape shape(value->shape());
    shape.insert(shape.begin() + axis, Dim(1));
    parts.push_back(reshape(value, shape));
  }
  return concat(parts, axis);
}

Value *Emitter::transposeLast(Value *x) {
  if (failed() || x->rank() < 2)
    return failed() ? nullptr : x;
  auto perm = llvm::to_vector(llvm::seq<int64_t>(0, x->rank()));
  std::swap(perm[x->rank() - 1], perm[x->rank() - 2]);
  return transpose(x, perm);
}

Value *Emitter::matmul(Value *a, Value *b) {
  return op(OpKind::MatMul, {a, b});
}

Value *Emitter::reduce(OpKind kind, Value *x, ArrayRef<int64_t> axes,
                       bool keepdims) {
  ReduceAttrs attrs;
  attrs.axes.assign(axes.begin(), axes.end());
  attrs.keepdims = keepdims;
  return op(kind, {x}, attrs);
}

Value *Emitter::softmax(Value *x, int64_t axis, OpKind kind) {
  AxisAttrs attrs;
  attrs.axis = axis;
  if (failed() || x->element() != ElementType::F64)
    return op(kind, {x}, attrs);
  Value *shifted = sub(x, reduce(OpKind::ReduceMax, x, {axis}, true));
  Value *powers = op(OpKind::Exp, {shifted});
  Value *sum = reduce(OpKind::ReduceSum, powers, {axis}, true);
  return kind == OpKind::Softmax ? op(OpKind::Div, {powers, sum})
                                 : sub(shifted, op(OpKind::Log, {sum}));
}

Value *Emitter::gather(Value *x, Value *indices, int64_t axis) {
  AxisAttrs attrs;
  attrs.axis = axis;
  return op(OpKind::Gather, {x, indices}, attrs);
}

Value *Emitter::concat(ArrayRef<Value *> values, int64_t axis) {
  if (failed() || values.size() == 1)
    return failed() ? nullptr : values.front();
  AxisAttrs attrs;
  attrs.axis = axis;
  return op(OpKind::Concat, values, attrs);
}

Value *Emitter::slice(Value *x, int64_t axis, Dim start, Dim size) {
  if (failed() || (start.isConstant(0) && x->shape()[axis] == size))
    return failed() ? nullptr : x;
  SliceAttrs attrs;
  attrs.starts.assign(x->rank(), Dim(0));
  attrs.sizes.assign(x->shape().begin(), x->shape().end());
  attrs.steps.assign(x->rank(), 1);
  attrs.starts[axis] = start;
  attrs.sizes[axis] = size;
  return op(OpKind::Slice, {x}, attrs);
}

Value *Emitter::iota(Dim count, unsigned rank, unsigned axis) {
  CountAttrs attrs;
  attrs.count = count;
  Value *numbers =
      op(OpKind::Range,
         {scalar(ElementType::I64, 0), scalar(ElementType::I64, 1)}, attrs);
  Shape shape(rank, Dim(1));
  shape[axis] = count;
  return reshape(numbers, shape);
}

//===----------------------------------------------------------------------===//
// Values known when importing
//===----------------------------------------------------------------------===//

Dims Emitter::sizes(Value *x, StringRef what) {
  if (failed())
    return {};
  if (!isInteger(x->element()) || x->rank() > 1) {
    fail("'{0}' is {1}; expected a list of integers", what, x->type);
    return {};
  }
  std::optional<int64_t> count =
      x->rank() == 0 ? 1 : x->shape().front().constant();
  if (!count || *count > 4096) {
    fail("'{0}' is {1}; the number of its elements must be known and small",
         what, x->type);
    return {};
  }
  const std::optional<ShapeValues::Partial> &partial = shapeValues.partialOf(x);
  bool complete = partial && partial->size() == size_t(*count) &&
                  llvm::all_of(*partial, [](auto &e) { return e.has_value(); });
  Dims result;
  if (complete) {
    for (const std::optional<Dim> &element : *partial)
      result.push_back(*element);
    return result;
  }
  std::optional<ShapeValues::Partial> known = partial;
  BindDimsAttrs attrs;
  for (int64_t i = 0; i < *count; ++i)
    attrs.symbols.push_back(
        freshSymbol((location().name() + "." + what + Twine(i)).str()));
  create(OpKind::BindDims, {x}, std::make_unique<BindDimsAttrs>(attrs));
  for (int64_t i = 0; i < *count; ++i) {
    bool isKnown = known && known->size() == size_t(*count) && (*known)[i];
    result.push_back(isKnown ? *(*known)[i] : attrs.symbols[i]);
  }
  return result;
}

Dim Emitter::size(Value *x, StringRef what) {
  Dims values = sizes(x, what);
  if (!failed() && values.size() != 1)
    fail("'{0}' has {1} elements; expected 1", what, values.size());
  return failed() ? Dim(0) : values.front();
}

SmallVector<int64_t, 4> Emitter::constantInts(Value *x, StringRef what) {
  SmallVector<int64_t, 4> result;
  if (failed())
    return result;
  std::optional<Dims> known = knownInts(x);
  if (!known) {
    fail("'{0}' depends on data; it must be known when compiling", what);
    return result;
  }
  for (Dim dim : *known) {
    std::optional<int64_t> value = dim.constant();
    if (!value) {
      fail("'{0}' depends on an input's size; it must be a constant", what);
      return {};
    }
    result.push_back(*value);
  }
  return result;
}

std::optional<double> Emitter::constantScalar(Value *x) {
  if (failed())
    return std::nullopt;
  if (Op *def = x->def(OpKind::Const)) {
    const Constant &c = *def->attrs<ConstAttrs>().value;
    if (c.numElements() == 1)
      return c.floatAt(0);
    return std::nullopt;
  }
  if (isFloat(x->element()))
    return std::nullopt;
  if (std::optional<Dim> dim = shapeValues.scalarOf(x))
    if (std::optional<int64_t> value = dim->constant())
      return double(*value);
  return std::nullopt;
}

void Emitter::require(Dim a, Dim b, StringRef what) {
  if (failed() || a == b)
    return;
  if (a.constant() && b.constant()) {
    fail("{0}: {1} and {2} differ", what, a, b);
    return;
  }
  DimConstraint constraint{a, b, location()};
  if (!llvm::is_contained(func.constraints, constraint))
    func.constraints.push_back(constraint);
}

} // namespace tenon::frontend
