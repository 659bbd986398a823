//===- Shape.cpp - importers of constants and shape ops ------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/DimMath.h"
#include "frontend/Emitter.h"
#include "frontend/NodeView.h"
#include "frontend/OnnxOps.h"
#include "frontend/Weights.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace llvm;
using namespace tenon::ir;

namespace tenon::frontend {

namespace {

Dim product(ShapeRef dims) { return numElements(dims); }

/// The axes of Squeeze, Unsqueeze: an attribute to opset 12, an input since.
std::optional<SmallVector<int64_t, 4>> axesOf(NodeView &node, Emitter &emit) {
  if (node.version() < 13)
    return node.findInts("axes");
  if (Value *axes = node.input(1))
    return emit.constantInts(axes, "axes");
  return std::nullopt;
}

/// Checks axes against \p rank, and that none comes twice.
SmallVector<bool> axisMask(NodeView &node, ArrayRef<int64_t> axes,
                           int64_t rank) {
  SmallVector<bool> mask(rank, false);
  for (int64_t axis : axes) {
    int64_t checked = node.checkedAxis(axis, rank, "axes: axis");
    if (rank == 0)
      break;
    if (mask[checked])
      node.fail("axes: axis {0} is given twice", axis);
    mask[checked] = true;
  }
  return mask;
}

/// The size that -1 stands for. Sizes that both shapes have cancel first, so
/// that a size of 0 that is kept does not make it undefined.
std::optional<Dim> inferSize(ShapeRef from, ShapeRef to, size_t hole) {
  SmallVector<Dim> left(from.begin(), from.end()), right;
  for (size_t i = 0; i < to.size(); ++i) {
    if (i == hole)
      continue;
    auto same = llvm::find(left, to[i]);
    if (same != left.end())
      left.erase(same);
    else
      right.push_back(to[i]);
  }
  Dim total = product(left), known = product(right);
  if (known.isConstant(0))
    return total.isConstant(0) ? std::optional<Dim>(Dim(0)) : std::nullopt;
  if (std::optional<Dim> exact = Dim::divideExactly(total, known))
    return exact;
  if (total.constant() && known.constant())
    return std::nullopt;
  return Dim::floorDiv(total, known);
}

} // namespace

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

Value *importConstant(NodeView &node, Emitter &emit) {
  for (StringRef refused : {"value_string", "value_strings", "sparse_value"})
    if (node.hasAttr(refused))
      return node.fail("attribute '{0}': {1} are not supported", refused,
                       refused == "sparse_value" ? "sparse tensors"
                                                 : "strings");
  if (const onnx::TensorProto *tensor = node.findTensor("value"))
    return emit.constant(emit.services.loadTensor(*tensor));
  if (std::optional<int64_t> value = node.findInt("value_int")) {
    ConstantRef list = Constant::ints({*value});
    return emit.constant(Constant::copy(ElementType::I64, {}, list->bytes()));
  }
  if (std::optional<double> value = node.findFloat("value_float"))
    return emit.scalar(ElementType::F32, *value);
  if (auto values = node.findInts("value_ints"))
    return emit.constant(Constant::ints(*values));
  if (auto values = node.findFloats("value_floats"))
    return emit.constant(
        Constant::copy(ElementType::F32, {int64_t(values->size())},
                       {reinterpret_cast<const uint8_t *>(values->data()),
                        values->size() * sizeof(float)}));
  return node.fail("required attribute 'value' is missing");
}

Value *importConstantOfShape(NodeView &node, Emitter &emit) {
  Dims shape = emit.sizes(node.input(0), "input");
  ConstantRef value = Constant::scalar(ElementType::F32, 0);
  if (const onnx::TensorProto *tensor = node.findTensor("value"))
    value = emit.services.loadTensor(*tensor);
  if (emit.failed())
    return nullptr;
  if (value->numElements() != 1)
    return node.fail("attribute 'value' has {0} elements; expected 1",
                     value->numElements());
  for (Dim dim : shape)
    if (dim.constant().value_or(0) < 0)
      return node.fail("its shape holds the negative size {0}", dim);
  Value *scalar =
      emit.constant(Constant::copy(value->element(), {}, value->bytes()));
  // Also below 2^53 a double may not hold every value, so no `filled`.
  return emit.broadcast(scalar, shape);
}

Value *importEyeLike(NodeView &node, Emitter &emit) {
  Value *x = node.input(0);
  int64_t k = node.intAttr("k", 0);
  ElementType type = x->element();
  if (std::optional<int64_t> dtype = node.findInt("dtype")) {
    Expected<ElementType> given = elementTypeOf(*dtype);
    if (!given)
      return node.fail("attribute 'dtype': {0}", toString(given.takeError()));
    type = *given;
  }
  if (x->rank() != 2)
    return node.fail("its input is {0}; expected rank 2", x->type);
  Value *rows = emit.iota(x->shape()[0], 2, 0);
  Value *columns = emit.iota(x->shape()[1], 2, 1);
  Value *shifted = k == 0 ? rows : emit.addScalar(rows, k);
  return emit.cast(emit.op(OpKind::Equal, {shifted, columns}), type);
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

Value *importShape(NodeView &node, Emitter &emit) {
  Value *x = node.input(0);
  int64_t rank = x->rank();
  int64_t start = node.intAttr("start", 0), end = node.intAttr("end", rank);
  auto clamp = [&](int64_t i) {
    return std::clamp<int64_t>(i < 0 ? i + rank : i, 0, rank);
  };
  start = clamp(start);
  end = std::max(clamp(end), start);
  return emit.dims(x->shape().slice(start, end - start));
}

Value *importSize(NodeView &node, Emitter &emit) {
  return emit.dimScalar(product(node.input(0)->shape()));
}

//===----------------------------------------------------------------------===//
// Reshapes
//===----------------------------------------------------------------------===//

namespace {

/// A target shape that depends on data, with its 0 and -1 worked out by the
/// model itself.
Value *resolvedShape(Emitter &emit, Value *x, Value *shape, bool allowZero) {
  std::optional<int64_t> count =
      shape->rank() == 1 ? shape->shape()[0].constant() : std::nullopt;
  if (!count || *count > 64)
    return shape;
  shape = emit.cast(shape, ElementType::I64);
  Value *minusOne = emit.scalar(ElementType::I64, -1);
  Value *one = emit.scalar(ElementType::I64, 1);
  if (!allowZero) {
    Dims own(x->shape().begin(), x->shape().end());
    own.resize(*count, Dim(0));
    Value *zero = emit.scalar(ElementType::I64, 0);
    shape = emit.where(emit.op(OpKind::Equal, {shape, zero}), emit.dims(own),
                       shape);
  }
  Value *hole = emit.op(OpKind::Equal, {shape, minusOne});
  Value *others =
      emit.reduce(OpKind::ReduceProd, emit.where(hole, one, shape), {0}, false);
  Value *rest = emit.div(emit.dimScalar(product(x->shape())), others);
  return emit.where(hole, rest, shape);
}

} // namespace

Value *importReshape(NodeView &node, Emitter &emit) {
  Value *x = node.input(0), *shape = node.input(1);
  bool allowZero = node.flagAttr("allowzero", false);
  const auto &known = emit.shapeValues.partialOf(shape);
  if (!known || llvm::all_of(*known, [](auto &e) { return !e; }))
    shape = resolvedShape(emit, x, shape, allowZero);
  Dims target = emit.sizes(shape, "shape");
  if (emit.failed())
    return nullptr;
  std::optional<size_t> hole;
  for (size_t i = 0; i < target.size(); ++i) {
    std::optional<int64_t> size = target[i].constant();
    if (size == 0 && !allowZero) {
      if (i >= x->rank())
        return node.fail("shape[{0}] is 0, which copies a size that the input, "
                         "{1}, does not have",
                         i, x->type);
      target[i] = x->shape()[i];
    } else if (size == -1) {
      if (hole)
        return node.fail("shape has -1 at {0} and at {1}; expected at most one",
                         *hole, i);
      hole = i;
    } else if (size && *size < 0) {
      return node.fail("shape[{0}] is {1}", i, *size);
    }
  }
  if (hole) {
    std::optional<Dim> size = inferSize(x->shape(), target, *hole);
    if (!size) {
      target[*hole] = Dim(-1);
      return node.fail("cannot reshape {0} to [{1}]: the sizes do not divide",
                       x->type, formatDims(target));
    }
    target[*hole] = *size;
  }
  return emit.reshape(x, target);
}

Value *importFlatten(NodeView &node, Emitter &emit) {
  Value *x = node.input(0);
  int64_t axis = node.intAttr("axis", 1), rank = x->rank();
  if (axis < -rank || axis > rank)
    return node.fail("axis {0} is out of range; expected {1} to {2}", axis,
                     -rank, rank);
  axis = axis < 0 ? axis + rank : axis;
  return emit.reshape(x, {product(x->shape().take_front(axis)),
                          product(x->shape().drop_front(axis))});
}

namespace {

/// Axes that depend on data leave no choice when they are as many as there are
/// dimensions of size 1. Null when they do.
Value *squeezeForced(NodeView &node, Emitter &emit, Value *x) {
  Value *axes = node.version() >= 13 ? node.input(1) : nullptr;
  if (!axes || emit.knownInts(axes) || !constantShape(x->shape()))
    return nullptr;
  Shape rest;
  for (Dim size : x->shape())
    if (!size.isConstant(1))
      rest.push_back(size);
  if (numElements(axes->shape()) != Dim(int64_t(x->rank() - rest.size())))
    return nullptr;
  return emit.reshape(x, rest);
}

} // namespace

Value *importSqueeze(NodeView &node, Emitter &emit) {
  Value *x = node.input(0);
  if (Value *forced = squeezeForced(node, emit, x))
    return forced;
  auto axes = axesOf(node, emit);
  SmallVector<bool> drop = axisMask(node, axes.value_or(Ints()), x->rank());
  if (emit.failed())
    return nullptr;
  Shape shape;
  for (unsigned i = 0; i < x->rank(); ++i) {
    Dim size = x->shape()[i];
    if (axes && !drop[i]) {
      shape.push_back(size);
      continue;
    }
    if (axes) {
      if (size.constant() && !size.isConstant(1))
        return node.fail("cannot squeeze axis {0} of {1}: its size is {2}, not "
                         "1",
                         i, x->type, size);
      emit.require(size, Dim(1), "size of a squeezed axis");
      continue;
    }
    if (!size.constant())
      return node.fail("without axes, the sizes must be known; axis {0} of {1} "
                       "is not",
                       i, x->type);
    if (!size.isConstant(1))
      shape.push_back(size);
  }
  return emit.reshape(x, shape);
}

Value *importUnsqueeze(NodeView &node, Emitter &emit) {
  Value *x = node.input(0);
  auto axes = axesOf(node, emit);
  if (!axes)
    return node.fail("required attribute 'axes' is missing");
  int64_t rank = x->rank() + axes->size();
  SmallVector<bool> added = axisMask(node, *axes, rank);
  if (emit.failed())
    return nullptr;
  Shape shape;
  ShapeRef rest = x->shape();
  for (int64_t i = 0; i < rank; ++i) {
    shape.push_back(added[i] ? Dim(1) : rest.front());
    if (!added[i])
      rest = rest.drop_front();
  }
  return emit.reshape(x, shape);
}

Value *importExpand(NodeView &node, Emitter &emit) {
  Value *x = node.input(0);
  Dims target = emit.sizes(node.input(1), "shape");
  if (emit.failed())
    return nullptr;
  std::optional<Shape> shape = broadcastShapes(x->shape(), target);
  if (!shape)
    return node.fail("cannot expand {0} to [{1}]", x->type, formatDims(target));
  return emit.broadcast(x, *shape);
}

//===----------------------------------------------------------------------===//
// Range
//===----------------------------------------------------------------------===//

namespace {

/// max(0, ceil((limit - start) / delta)) for integers known when compiling.
std::optional<Dim> knownCount(NodeView &node, Emitter &emit, Value *start,
                              Value *limit, Value *delta) {
  if (isFloat(start->element())) {
    auto s = emit.constantScalar(start), l = emit.constantScalar(limit),
         d = emit.constantScalar(delta);
    if (!s || !l || !d || *d == 0)
      return std::nullopt;
    double count = std::max(0.0, std::ceil((*l - *s) / *d));
    if (!(count < 9e18)) {
      node.fail("it would have {0} elements", count);
      return std::nullopt;
    }
    return Dim(int64_t(count));
  }
  std::optional<Dim> s = emit.shapeValues.scalarOf(start),
                     l = emit.shapeValues.scalarOf(limit),
                     d = emit.shapeValues.scalarOf(delta);
  if (!s || !l || !d || !d->constant() || d->isConstant(0))
    return std::nullopt;
  int64_t step = *d->constant();
  if (step == INT64_MIN)
    return std::nullopt;
  return stepsWithin(step > 0 ? *l - *s : *s - *l, std::abs(step));
}

/// The same computed by the model: a scalar i64, negative (which no size is
/// when running) for a delta of 0.
Value *countValue(Emitter &emit, Value *start, Value *limit, Value *delta) {
  Value *isZero =
      emit.op(OpKind::Equal, {delta, emit.scalar(delta->element(), 0)});
  auto unlessZero = [&](Value *count) {
    Value *zero = emit.scalar(ElementType::I64, 0);
    return emit.op(OpKind::Where, {isZero, emit.scalar(ElementType::I64, -1),
                                   emit.op(OpKind::Max, {count, zero})});
  };
  Value *distance = emit.sub(limit, start);
  if (emit.failed())
    return nullptr;
  if (isFloat(distance->element())) {
    Value *steps = emit.op(OpKind::Ceil, {emit.div(distance, delta)});
    return unlessZero(emit.cast(steps, ElementType::I64));
  }
  Value *zero = emit.scalar(ElementType::I64, 0);
  distance = emit.cast(distance, ElementType::I64);
  delta = emit.cast(delta, ElementType::I64);
  // Division truncates, so a positive quotient that is not exact is one short.
  Value *quotient = emit.div(distance, delta);
  Value *exact = emit.op(OpKind::Equal, {emit.mul(quotient, delta), distance});
  Value *sameSign =
      emit.op(OpKind::Equal, {emit.op(OpKind::Greater, {distance, zero}),
                              emit.op(OpKind::Greater, {delta, zero})});
  Value *missing =
      emit.op(OpKind::And, {sameSign, emit.op(OpKind::Not, {exact})});
  Value *count = emit.add(quotient, emit.cast(missing, ElementType::I64));
  return unlessZero(count);
}

} // namespace

Value *importRange(NodeView &node, Emitter &emit) {
  Value *operands[3];
  for (unsigned i = 0; i < 3; ++i) {
    Value *x = node.input(i);
    if (numElements(x->shape()).constant() != 1)
      return node.fail("input {0} is {1}; expected a scalar", i, x->type);
    operands[i] = emit.reshape(x, {});
  }
  auto [start, limit, delta] = operands;
  if (emit.failed())
    return nullptr;
  ElementType type = start->element();
  if (limit->element() != type || delta->element() != type)
    return node.fail("element types differ: {0}, {1} and {2}", mnemonic(type),
                     mnemonic(limit->element()), mnemonic(delta->element()));
  // The default of 16-bit floats is to count in f32; others don't care.
  bool wide = node.intAttr("stash_type", 1) == 1 && isFloat(type) &&
              bitWidth(type) < 32;
  if (wide)
    for (Value **x : {&start, &limit, &delta})
      *x = emit.cast(*x, ElementType::F32);

  if (emit.constantScalar(delta) == 0.0)
    return node.fail("delta is 0");
  std::optional<Dim> count = knownCount(node, emit, start, limit, delta);
  if (!count && !emit.failed())
    count = emit.size(countValue(emit, start, limit, delta), "count");
  if (emit.failed())
    return nullptr;
  CountAttrs attrs;
  attrs.count = *count;
  return emit.cast(emit.op(OpKind::Range, {start, delta}, attrs), type);
}

} // namespace tenon::frontend
