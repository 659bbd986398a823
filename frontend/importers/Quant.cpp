//===- Quant.cpp - importers of quantised ops ----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

/// \file
/// Quantised ops, spelled out: integers are computed in i32, scales in f32,
/// rounding is half to even and storing saturates.

#include "frontend/Emitter.h"
#include "frontend/NodeView.h"
#include "frontend/OnnxOps.h"
#include "frontend/Weights.h"
#include "frontend/importers/QuantMath.h"
#include "frontend/importers/Window.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace llvm;
using namespace tenon::ir;

namespace tenon::frontend {

namespace {

/// The smallest and largest number of an integer type of up to 32 bits.
std::pair<double, double> rangeOf(ElementType type) {
  unsigned bits = bitWidth(type);
  if (category(type) == TypeCategory::Unsigned)
    return {0.0, std::ldexp(1.0, bits) - 1};
  return {-std::ldexp(1.0, bits - 1), std::ldexp(1.0, bits - 1) - 1};
}

/// Rounds \p x (f32), adds \p zero (any integer type, or null) and stores it
/// as \p type.
Value *store(Emitter &emit, Value *x, Value *zero, ElementType type) {
  x = emit.op(OpKind::Round, {x});
  if (zero)
    x = emit.add(x, emit.cast(zero, ElementType::F32));
  auto [low, high] = rangeOf(type);
  x = emit.op(OpKind::Max, {x, emit.scalar(ElementType::F32, low)});
  x = emit.op(OpKind::Min, {x, emit.scalar(ElementType::F32, high)});
  return emit.cast(x, type);
}

/// How scale and zero point lie along the tensor.
struct Layout {
  int64_t axis = 1, block = 0;
};

Layout layoutOf(NodeView &node, Value *x) {
  Layout layout;
  if (node.version() >= 13)
    layout.axis = node.intAttr("axis", 1);
  if (node.version() >= 21)
    layout.block = node.intAttr("block_size", 0);
  if (layout.block < 0)
    node.fail("attribute 'block_size' is {0}", layout.block);
  return layout;
}

/// Makes a scale or zero point broadcast against \p x: one for all, one for
/// each index of the axis, or one for each block of it.
Value *spread(NodeView &node, Emitter &emit, Value *value, Value *x,
              const Layout &layout, StringRef what) {
  if (!value || emit.failed())
    return nullptr;
  if (layout.block == 0 && numElements(value->shape()).constant() == 1 &&
      value->rank() <= 1)
    return emit.reshape(value, {});
  int64_t axis = node.checkedAxis(layout.axis, x->rank());
  if (emit.failed())
    return nullptr;
  if (layout.block == 0) {
    if (value->rank() != 1)
      return node.fail(
          "'{0}' is {1}; expected a scalar or one element for each "
          "index of axis {2}",
          what, value->type, axis);
    Shape shape(x->rank(), Dim(1));
    shape[axis] = value->shape()[0];
    return emit.reshape(value, shape);
  }
  if (value->rank() != x->rank())
    return node.fail("'{0}' is {1}; with blocks, expected the rank of {2}",
                     what, value->type, x->type);
  Shape split(value->shape()), repeated, merged(value->shape());
  split.insert(split.begin() + axis + 1, Dim(1));
  repeated = split;
  repeated[axis + 1] = Dim(layout.block);
  merged[axis] = merged[axis] * Dim(layout.block);
  Value *all = emit.reshape(
      emit.broadcast(emit.reshape(value, split), repeated), merged);
  // The last block may be cut short.
  return emit.slice(all, axis, Dim(0), x->shape()[axis]);
}

std::optional<ElementType> typeAttr(NodeView &node, StringRef name) {
  int64_t number = node.intAttr(name, 0);
  if (number == 0)
    return std::nullopt;
  Expected<ElementType> type = elementTypeOf(number);
  if (type)
    return *type;
  node.fail("attribute '{0}': {1}", name, toString(type.takeError()));
  return std::nullopt;
}

/// x - zero in i32.
Value *centred(Emitter &emit, Value *x, Value *zero) {
  x = emit.cast(x, ElementType::I32);
  return zero ? emit.sub(x, emit.cast(zero, ElementType::I32)) : x;
}

} // namespace

Value *importDequantizeLinear(NodeView &node, Emitter &emit) {
  Value *x = node.input(0), *scale = node.input(1), *zero = node.input(2);
  Layout layout = layoutOf(node, x);
  ElementType type = scale->element();
  if (node.version() >= 23)
    type = typeAttr(node, "output_dtype").value_or(type);
  scale = spread(node, emit, scale, x, layout, "x_scale");
  zero = spread(node, emit, zero, x, layout, "x_zero_point");
  // A zero point of a float type is 0 by definition.
  Value *number = isFloat(x->element())
                      ? emit.cast(x, ElementType::F32)
                      : emit.cast(centred(emit, x, zero), ElementType::F32);
  return emit.cast(emit.mul(number, emit.cast(scale, ElementType::F32)), type);
}

Value *importQuantizeLinear(NodeView &node, Emitter &emit) {
  Value *x = node.input(0), *scale = node.input(1), *zero = node.input(2);
  Layout layout = layoutOf(node, x);
  CastAttrs cast;
  cast.to = zero ? zero->element() : ElementType::U8;
  if (node.version() >= 21) {
    std::optional<ElementType> given = typeAttr(node, "output_dtype");
    if (given && zero && *given != cast.to)
      return node.fail("attribute 'output_dtype' is {0}, but 'y_zero_point' is "
                       "{1}",
                       mnemonic(*given), zero->type);
    cast.to = given.value_or(cast.to);
  }
  if (node.version() >= 19)
    cast.saturate = node.flagAttr("saturate", true);
  if (node.version() >= 23) // Tenon divides in f32, which is as precise as any.
    node.ignoreAttr("precision");
  scale = spread(node, emit, scale, x, layout, "y_scale");
  zero = spread(node, emit, zero, x, layout, "y_zero_point");
  if (emit.failed())
    return nullptr;
  Value *y = emit.div(emit.cast(x, ElementType::F32),
                      emit.cast(scale, ElementType::F32));
  if (isFloat(cast.to))
    return emit.op(OpKind::Cast, {y}, cast);
  if (!isInteger(cast.to) || bitWidth(cast.to) > 16)
    return node.fail("quantising to {0} is not supported", mnemonic(cast.to));
  return store(emit, y, zero, cast.to);
}

/// To u8 with a range that holds 0; of zeros only, the scale is 1.
Value *importDynamicQuantizeLinear(NodeView &node, Emitter &emit) {
  Value *x = node.input(0);
  SmallVector<int64_t> axes;
  for (unsigned i = 0; i < x->rank(); ++i)
    axes.push_back(i);
  Value *none = emit.scalar(ElementType::F32, 0);
  Value *high = emit.op(OpKind::Max,
                        {emit.reduce(OpKind::ReduceMax, x, axes, false), none});
  Value *low = emit.op(OpKind::Min,
                       {emit.reduce(OpKind::ReduceMin, x, axes, false), none});
  Value *width =
      emit.div(emit.sub(high, low), emit.scalar(ElementType::F32, 255));
  Value *scale = emit.where(emit.op(OpKind::Equal, {high, low}),
                            emit.scalar(ElementType::F32, 1), width);
  Value *zero = store(emit, emit.div(emit.op(OpKind::Neg, {low}), scale),
                      nullptr, ElementType::U8);
  if (node.numOutputs() > 1)
    node.setOutput(1, scale);
  if (node.numOutputs() > 2)
    node.setOutput(2, zero);
  return store(emit, emit.div(x, scale), zero, ElementType::U8);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

namespace {

/// A zero point or scale of a: a scalar, or one for each row.
Value *perRow(Emitter &emit, Value *value) {
  if (!value || emit.failed() || value->rank() != 1)
    return value;
  if (numElements(value->shape()).constant() == 1)
    return emit.reshape(value, {});
  return emit.reshape(value, {value->shape()[0], Dim(1)});
}

/// The same of b, where one for each column broadcasts as it is.
Value *perColumn(Emitter &emit, Value *value) {
  if (value && !emit.failed() && numElements(value->shape()).constant() == 1)
    return emit.reshape(value, {});
  return value;
}

Value *productOfCentred(Emitter &emit, Value *a, Value *b, Value *aZero,
                        Value *bZero) {
  return emit.matmul(centred(emit, a, perRow(emit, aZero)),
                     centred(emit, b, perColumn(emit, bZero)));
}

} // namespace

Value *importMatMulInteger(NodeView &node, Emitter &emit) {
  return productOfCentred(emit, node.input(0), node.input(1), node.input(2),
                          node.input(3));
}

Value *importQLinearMatMul(NodeView &node, Emitter &emit) {
  Value *a = node.input(0), *aScale = node.input(1), *aZero = node.input(2),
        *b = node.input(3), *bScale = node.input(4), *bZero = node.input(5),
        *yScale = node.input(6), *yZero = node.input(7);
  Value *product = productOfCentred(emit, a, b, aZero, bZero);
  auto f32 = [&](Value *x) { return emit.cast(x, ElementType::F32); };
  Value *scale = emit.div(
      emit.mul(f32(perRow(emit, aScale)), f32(perColumn(emit, bScale))),
      f32(perRow(emit, yScale)));
  return store(emit, emit.mul(f32(product), scale), perRow(emit, yZero),
               yZero->element());
}

namespace {

/// One value for all channels, or one for each of dimension \p axis.
Value *perChannel(Emitter &emit, Value *value, unsigned rank, unsigned axis) {
  if (!value || emit.failed() || value->rank() == 0)
    return value;
  if (numElements(value->shape()).constant() == 1)
    return emit.reshape(value, {});
  if (rank == 0)
    return emit.fail("a scale or zero point is {0}; expected one number",
                     value->type);
  Shape shape(rank, Dim(1));
  shape[axis] = numElements(value->shape());
  return emit.reshape(value, shape);
}

} // namespace

namespace {

/// A convolution of integers, in f64, which holds all sums exactly; as i32.
Value *integerConv(NodeView &node, Emitter &emit, Value *x, Value *w) {
  Value *sum = convolution(node, emit, emit.cast(x, ElementType::F64),
                           emit.cast(w, ElementType::F64));
  return emit.cast(sum, ElementType::I32);
}

} // namespace

Value *importConvInteger(NodeView &node, Emitter &emit) {
  Value *x = node.input(0), *w = node.input(1);
  return integerConv(
      node, emit, centred(emit, x, perChannel(emit, node.input(2), 0, 0)),
      centred(emit, w, perChannel(emit, node.input(3), w->rank(), 0)));
}

Value *importQLinearConv(NodeView &node, Emitter &emit) {
  Value *x = node.input(0), *w = node.input(3), *yZero = node.input(7);
  auto single = [&](unsigned i) {
    return perChannel(emit, node.input(i), 0, 0);
  };
  Value *wZero = perChannel(emit, node.input(5), w->rank(), 0),
        *wScale = perChannel(emit, node.input(4), x->rank(), 1);
  Value *sum = integerConv(node, emit, centred(emit, x, single(2)),
                           centred(emit, w, wZero));
  sum = addChannelBias(node, emit, sum, node.input(8));
  Value *scale = emit.div(emit.mul(single(1), wScale), single(6));
  return store(emit, emit.mul(emit.cast(sum, ElementType::F32), scale),
               single(7), yZero->element());
}

Value *unpackBits(Emitter &emit, Value *bytes, int64_t bits) {
  if (emit.failed() || bits == 8)
    return bytes;
  Shape single(bytes->shape()), flat(bytes->shape());
  single.push_back(Dim(1));
  flat.back() = flat.back() * Dim(8 / bits);
  Value *mask = emit.scalar(ElementType::U8, double((1 << bits) - 1));
  Values parts;
  for (int64_t shift = 0; shift < 8; shift += bits) {
    Value *moved =
        emit.op(OpKind::ShiftRight,
                {bytes, emit.scalar(ElementType::U8, double(shift))});
    parts.push_back(
        emit.reshape(emit.op(OpKind::BitwiseAnd, {moved, mask}), single));
  }
  return emit.reshape(emit.concat(parts, int64_t(single.size()) - 1), flat);
}

namespace {

/// A constant of bytes as the codes that it holds; null for others.
Value *asCodes(Emitter &emit, Value *bytes, ArrayRef<int64_t> shape,
               int64_t bits) {
  Op *op = bytes->def(OpKind::Const);
  if (!op || emit.failed())
    return nullptr;
  ConstantRef value = op->attrs<ConstAttrs>().value;
  if (value->form() != Constant::Form::Dense)
    return nullptr;
  ElementType element = bits == 2   ? ElementType::U2
                        : bits == 4 ? ElementType::U4
                                    : ElementType::U8;
  return emit.constant(
      Constant::dense(element, shape, value->bytes(), value, value->name()));
}

} // namespace

/// y = a (scale * (q - zero))^T with q[N, blocks, bytes], one scale and zero
/// point for each block of a row.
Value *importMatMulNBits(NodeView &node, Emitter &emit) {
  Value *a = node.input(0), *q = node.input(1), *scales = node.input(2),
        *zeros = node.input(3), *bias = node.input(5);
  int64_t k = node.requireInt("K"), n = node.requireInt("N");
  int64_t bits = node.intAttr("bits", 4), block = node.requireInt("block_size");
  MatMulAttrs attrs;
  attrs.eightBitRows = node.intAttr("accuracy_level", 0) == 4;
  if (int64_t packed = node.intAttr("weight_prepacked", 0))
    return node.fail("attribute 'weight_prepacked' is {0}: weights in a "
                     "device's own layout are not supported",
                     packed);
  if (node.hasInput(4))
    return node.fail("the input 'g_idx' is not supported: weights must be "
                     "quantised in blocks of consecutive rows");
  if (emit.failed())
    return nullptr;
  if ((bits != 2 && bits != 4 && bits != 8) || block < 8 || block > 4096 ||
      k < 1 || n < 1)
    return node.fail(
        "K = {0}, N = {1}, bits = {2} and block_size = {3} are not "
        "supported",
        k, n, bits, block);
  int64_t blocks = (k + block - 1) / block, bytes = block * bits / 8;
  if (q->element() != ElementType::U8 ||
      numElements(q->shape()).constant() != n * blocks * bytes)
    return node.fail("'B' is {0}; expected u8[{1}, {2}, {3}]", q->type, n,
                     blocks, bytes);
  ElementType type = a->element();
  Value *codes = asCodes(emit, q, {n, blocks, block}, bits);
  if (!codes)
    codes = unpackBits(emit, emit.reshape(q, {n, blocks, bytes}), bits);
  Value *weights = emit.cast(codes, type);
  Shape perBlock{n, blocks, Dim(1)};
  Value *zero = emit.scalar(type, double(int64_t(1) << (bits - 1)));
  if (zeros && isFloat(zeros->element())) {
    zero = emit.reshape(emit.cast(zeros, type), perBlock);
  } else if (zeros) {
    int64_t perRow = (blocks * bits + 7) / 8;
    Value *all = unpackBits(emit, emit.reshape(zeros, {n, perRow}), bits);
    zero =
        emit.reshape(emit.cast(emit.slice(all, 1, 0, blocks), type), perBlock);
  }
  weights = emit.mul(emit.sub(weights, zero),
                     emit.reshape(emit.cast(scales, type), perBlock));
  weights = emit.reshape(weights, {n, blocks * block});
  weights = emit.transposeLast(emit.slice(weights, 1, 0, k));
  Value *y = emit.op(OpKind::MatMul, {a, weights}, attrs);
  return bias ? emit.add(y, bias) : y;
}

namespace {

/// One value for each block of the last dimension, as one for each of \p size
/// elements.
Value *repeatBlocks(Emitter &emit, Value *x, int64_t block, Dim size) {
  if (emit.failed())
    return nullptr;
  Shape split(x->shape()), repeated, merged(x->shape());
  split.push_back(Dim(1));
  repeated = split;
  repeated.back() = Dim(block);
  merged.back() = merged.back() * Dim(block);
  Value *all =
      emit.reshape(emit.broadcast(emit.reshape(x, split), repeated), merged);
  return emit.slice(all, int64_t(merged.size()) - 1, Dim(0), size);
}

} // namespace

/// Rows of codes are gathered first, then dequantised: an embedding.
Value *importGatherBlockQuantized(NodeView &node, Emitter &emit) {
  Value *data = node.input(0), *indices = node.input(1),
        *scales = node.input(2), *zeros = node.input(3);
  int64_t rank = data->rank(), block = node.intAttr("block_size", 128);
  int64_t bits = node.intAttr("bits", 4);
  int64_t gatherAxis = node.checkedAxis(node.intAttr("gather_axis", 0), rank);
  int64_t axis = node.checkedAxis(node.intAttr("quantize_axis", 1), rank);
  if (emit.failed())
    return nullptr;
  if (gatherAxis != 0 || axis != rank - 1 || rank < 2)
    return node.fail("'data' is {0}, gathered along {1} and quantised along "
                     "{2}; only the first and the last axis are supported",
                     data->type, gatherAxis, axis);
  if (data->element() != ElementType::U8 ||
      (bits != 2 && bits != 4 && bits != 8) || block < 16 ||
      (block & (block - 1)) != 0)
    return node.fail("'data' is {0} with bits = {1} and block_size = {2}; only "
                     "u8 that holds 2, 4 or 8 bits an element in blocks of a "
                     "power of 2 from 16 is supported",
                     data->type, bits, block);
  ElementType type = scales->element();
  auto rows = [&](Value *x) { return emit.gather(x, indices, 0); };
  Value *codes = unpackBits(emit, rows(data), bits);
  if (emit.failed())
    return nullptr;
  Dim size = codes->shape().back();
  Value *zero = emit.scalar(ElementType::F32, double(int64_t(1) << (bits - 1)));
  auto spreadOut = [&](Value *x) {
    return repeatBlocks(emit, emit.cast(x, ElementType::F32), block, size);
  };
  if (zeros) {
    Value *all = unpackBits(emit, rows(zeros), bits);
    if (emit.failed())
      return nullptr;
    zero = spreadOut(emit.slice(all, int64_t(all->rank()) - 1, Dim(0),
                                scales->shape().back()));
  }
  Value *y = emit.mul(emit.sub(emit.cast(codes, ElementType::F32), zero),
                      spreadOut(rows(scales)));
  return emit.cast(y, type);
}

} // namespace tenon::frontend
