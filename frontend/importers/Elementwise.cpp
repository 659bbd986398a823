//===- Elementwise.cpp - importers of elementwise ops --------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/Emitter.h"
#include "frontend/NodeView.h"
#include "frontend/OnnxOps.h"
#include "frontend/Weights.h"
#include <cmath>

using namespace llvm;
using namespace tenon::ir;

namespace tenon::frontend {

namespace {

/// Combines all inputs from the left.
Value *fold(NodeView &node, Emitter &emit, OpKind kind) {
  ArrayRef<Value *> inputs = node.allInputs();
  Value *result = inputs.front();
  for (Value *input : inputs.drop_front())
    result = emit.op(kind, {result, input});
  return result;
}

/// A bound of Clip as a scalar that does not raise x's rank.
Value *bound(NodeView &node, Emitter &emit, unsigned i, StringRef what) {
  Value *value = node.input(i);
  if (!value || value->rank() == 0)
    return value;
  if (numElements(value->shape()).constant() != 1)
    return node.fail("'{0}' is {1}; expected a scalar", what, value->type);
  return emit.reshape(value, {});
}

Value *clip(Emitter &emit, Value *x, Value *low, Value *high) {
  if (low)
    x = emit.op(OpKind::Max, {x, low});
  if (high)
    x = emit.op(OpKind::Min, {x, high});
  return x;
}

/// When running, Dropout passes its input through and keeps everything.
Value *dropout(NodeView &node, Emitter &emit, ElementType maskType) {
  Value *x = node.input(0);
  if (node.wantsOutput(1))
    node.setOutput(1, emit.filled(maskType, 1, x->shape()));
  return x;
}

/// The power of two that \p x rounds to, so that a cast to f8e8m0 is exact: by
/// the bits of an f32, whose low 23 are the fraction.
Value *roundToPower(NodeView &node, Emitter &emit, Value *x) {
  StringRef rounding = node.strAttr("round_mode", "up");
  double added = rounding == "up"        ? 0x7fffff
                 : rounding == "nearest" ? 0x400000
                                         : 0;
  if (rounding != "up" && rounding != "nearest" && rounding != "down")
    return node.fail("attribute 'round_mode' is '{0}'; expected up, down or "
                     "nearest",
                     rounding);
  CastAttrs toBits, back;
  toBits.to = ElementType::U32;
  Value *f32 = emit.cast(x, ElementType::F32);
  Value *bits = emit.op(OpKind::BitCast, {f32}, toBits);
  bits = emit.op(OpKind::BitwiseAnd,
                 {emit.addScalar(bits, added),
                  emit.scalar(ElementType::U32, double(0xff800000))});
  Value *power = emit.op(OpKind::BitCast, {bits}, back);
  // What is no number stays so.
  Value *finite =
      emit.op(OpKind::Less, {emit.op(OpKind::Abs, {f32}),
                             emit.scalar(ElementType::F32, HUGE_VAL)});
  return emit.where(finite, power, f32);
}

Value *castTo(NodeView &node, Emitter &emit, ElementType to) {
  CastAttrs attrs;
  attrs.to = to;
  attrs.saturate = node.flagAttr("saturate", true);
  Value *x = node.input(0);
  if (to == ElementType::F8E8M0 && isFloat(x->element()) && x->element() != to)
    x = roundToPower(node, emit, x);
  else
    node.ignoreAttr("round_mode"); // Only of casts to f8e8m0.
  if (emit.failed())
    return nullptr;
  return x->element() == to ? x : emit.op(OpKind::Cast, {x}, attrs);
}

ElementType unsignedOf(ElementType type) {
  switch (bitWidth(type)) {
  case 8:
    return ElementType::U8;
  case 16:
    return ElementType::U16;
  case 32:
    return ElementType::U32;
  default:
    return ElementType::U64;
  }
}

} // namespace

Value *importIdentity(NodeView &node, Emitter &emit) { return node.input(0); }

Value *importSum(NodeView &node, Emitter &emit) {
  return fold(node, emit, OpKind::Add);
}

Value *importMax(NodeView &node, Emitter &emit) {
  return fold(node, emit, OpKind::Max);
}

Value *importMin(NodeView &node, Emitter &emit) {
  return fold(node, emit, OpKind::Min);
}

Value *importMean(NodeView &node, Emitter &emit) {
  Value *sum = fold(node, emit, OpKind::Add);
  if (emit.failed() || node.numInputs() == 1)
    return sum;
  return emit.div(sum, emit.scalar(sum->element(), node.numInputs()));
}

Value *importClip6(NodeView &node, Emitter &emit) {
  Value *x = node.input(0);
  std::optional<double> low = node.findFloat("min"),
                        high = node.findFloat("max");
  return clip(emit, x, low ? emit.scalar(x->element(), *low) : nullptr,
              high ? emit.scalar(x->element(), *high) : nullptr);
}

Value *importClip(NodeView &node, Emitter &emit) {
  Value *low = bound(node, emit, 1, "min"), *high = bound(node, emit, 2, "max");
  return clip(emit, node.input(0), low, high);
}

Value *importDropout7(NodeView &node, Emitter &emit) {
  node.ignoreAttr("ratio"); // Only for training.
  return dropout(node, emit, node.input(0)->element());
}

Value *importDropout10(NodeView &node, Emitter &emit) {
  node.ignoreAttr("ratio"); // Only for training.
  return dropout(node, emit, ElementType::Bool);
}

Value *importDropout12(NodeView &node, Emitter &emit) {
  // Only for training, or where nothing is dropped.
  node.ignoreAttr("seed");
  Value *ratio = node.input(1), *training = node.input(2);
  bool trains = training && emit.constantScalar(training) != 0.0;
  if (trains && !(ratio && emit.constantScalar(ratio) == 0.0))
    return node.fail(
        "'training_mode' is not constantly false and 'ratio' is not "
        "0; only inference is supported");
  return dropout(node, emit, ElementType::Bool);
}

Value *importGelu(NodeView &node, Emitter &emit) {
  StringRef form = node.strAttr("approximate", "none");
  if (form != "none" && form != "tanh")
    return node.fail("attribute 'approximate' is '{0}'; expected 'none' or "
                     "'tanh'",
                     form);
  return emit.op(form == "tanh" ? OpKind::GeluTanh : OpKind::GeluErf,
                 {node.input(0)});
}

Value *importIsInf(NodeView &node, Emitter &emit) {
  IsInfAttrs attrs;
  attrs.positive = node.flagAttr("detect_positive", true);
  attrs.negative = node.flagAttr("detect_negative", true);
  return emit.op(OpKind::IsInf, {node.input(0)}, attrs);
}

Value *importMod28(NodeView &node, Emitter &emit) {
  bool fmod = node.flagAttr("fmod", false);
  return emit.op(fmod ? OpKind::Fmod : OpKind::Mod,
                 {node.input(0), node.input(1)});
}

/// Before opset 28, floats had C's remainder only.
Value *importMod(NodeView &node, Emitter &emit) {
  if (ElementType element = node.input(0)->element();
      isFloat(element) && !node.flagAttr("fmod", false))
    return node.fail("elements of type {0} need attribute 'fmod' = 1 before "
                     "opset 28",
                     mnemonic(element));
  return importMod28(node, emit);
}

Value *importBitShift(NodeView &node, Emitter &emit) {
  StringRef direction = node.strAttr("direction", "");
  Value *x = node.input(0), *y = node.input(1);
  if (direction != "LEFT" && direction != "RIGHT")
    return node.fail("attribute 'direction' is '{0}'; expected 'LEFT' or "
                     "'RIGHT'",
                     direction);
  if (!isInteger(x->element()))
    return node.fail("elements of type {0} are not supported; integers are",
                     mnemonic(x->element()));
  OpKind shift = direction == "LEFT" ? OpKind::ShiftLeft : OpKind::ShiftRight;
  if (category(x->element()) == TypeCategory::Unsigned)
    return emit.op(shift, {x, y});
  // Shifting to the left, and positive numbers to the right, ignores the sign.
  // A negative x shifts as ~(~x >> y), which fills with ones.
  ElementType type = x->element(), bits = unsignedOf(type);
  Value *negative = emit.op(OpKind::Less, {x, emit.scalar(type, 0)});
  bool right = shift == OpKind::ShiftRight;
  Value *magnitude =
      right ? emit.where(negative, emit.op(OpKind::BitwiseNot, {x}), x) : x;
  Value *shifted = emit.cast(
      emit.op(shift, {emit.cast(magnitude, bits), emit.cast(y, bits)}), type);
  if (!right)
    return shifted;
  return emit.where(negative, emit.op(OpKind::BitwiseNot, {shifted}), shifted);
}

Value *importCast(NodeView &node, Emitter &emit) {
  int64_t to = node.requireInt("to");
  if (emit.failed())
    return nullptr;
  Expected<ElementType> element = elementTypeOf(to);
  if (!element)
    return node.fail("attribute 'to': {0}", toString(element.takeError()));
  return castTo(node, emit, *element);
}

Value *importBitCast(NodeView &node, Emitter &emit) {
  Expected<ElementType> type = elementTypeOf(node.requireInt("to"));
  if (!type)
    return node.fail("attribute 'to': {0}", toString(type.takeError()));
  CastAttrs attrs;
  attrs.to = *type;
  return emit.op(OpKind::BitCast, {node.input(0)}, attrs);
}

Value *importCastLike(NodeView &node, Emitter &emit) {
  return castTo(node, emit, node.input(1)->element());
}

Value *importPRelu(NodeView &node, Emitter &emit) {
  Value *x = node.input(0), *slope = node.input(1);
  Value *negative = emit.op(OpKind::Less, {x, emit.scalar(x->element(), 0)});
  Value *y = emit.where(negative, emit.mul(x, slope), x);
  if (!emit.failed() && y->rank() != x->rank())
    return node.fail("slope is {0}, which does not broadcast to {1}",
                     slope->type, x->type);
  return y;
}

Value *importShrink(NodeView &node, Emitter &emit) {
  double lambda = node.floatAttr("lambd", 0.5);
  double bias = node.floatAttr("bias", 0.0);
  Value *x = node.input(0);
  Value *zero = emit.scalar(x->element(), 0);
  Value *below = emit.op(OpKind::Less, {x, emit.scalar(x->element(), -lambda)});
  Value *above =
      emit.op(OpKind::Greater, {x, emit.scalar(x->element(), lambda)});
  return emit.where(below, emit.addScalar(x, bias),
                    emit.where(above, emit.addScalar(x, -bias), zero));
}

Value *importSwiGlu(NodeView &node, Emitter &emit) {
  AlphaAttrs attrs;
  attrs.alpha = node.floatAttr("alpha", 1.0);
  Value *gate = node.input(0), *x = node.input(1);
  return emit.mul(emit.op(OpKind::QuickGelu, {gate}, attrs), x);
}

Value *importBiasGelu(NodeView &node, Emitter &emit) {
  Value *x = node.input(0), *bias = node.input(1);
  return emit.op(OpKind::GeluErf, {emit.add(x, bias)});
}

Value *importFastGelu(NodeView &node, Emitter &emit) {
  Value *x = node.input(0);
  if (Value *bias = node.input(1))
    x = emit.add(x, bias);
  return emit.op(OpKind::GeluTanh, {x});
}

} // namespace tenon::frontend
