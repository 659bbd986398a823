//===- Interpolate.cpp - values between elements --------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/importers/Interpolate.h"
#include <cmath>

using namespace llvm;
using namespace tenon::ir;

namespace tenon::frontend {

namespace {

Value *rounded(Emitter &emit, Value *at, NearestRounding rounding) {
  switch (rounding) {
  case NearestRounding::PreferFloor:
    return emit.op(OpKind::Ceil, {emit.addScalar(at, -0.5)});
  case NearestRounding::PreferCeil:
    return emit.op(OpKind::Floor, {emit.addScalar(at, 0.5)});
  case NearestRounding::Floor:
    return emit.op(OpKind::Floor, {at});
  case NearestRounding::Ceil:
    return emit.op(OpKind::Ceil, {at});
  case NearestRounding::HalfToEven:
    return emit.op(OpKind::Round, {at});
  }
  llvm_unreachable("all roundings are handled");
}

/// ((a x + b) x + c) x + d
Value *cubic(Emitter &emit, Value *x, double a, double b, double c, double d) {
  Value *sum = emit.addScalar(emit.mulScalar(x, a), b);
  sum = emit.addScalar(emit.mul(sum, x), c);
  return emit.addScalar(emit.mul(sum, x), d);
}

/// The filter's weight of an element at \p distance. Linear: 1 - |d|, not below
/// 0. Cubic (Keys, 1981): pieces for |d| <= 1 and |d| < 2, 0 beyond.
Value *weightAt(Emitter &emit, Value *distance, const Interpolation &form) {
  Value *d = emit.op(OpKind::Abs, {distance});
  Value *zero = emit.scalar(ElementType::F64, 0);
  if (form.mode == Interpolation::Mode::Linear)
    return emit.op(OpKind::Max,
                   {emit.sub(emit.scalar(ElementType::F64, 1), d), zero});
  double a = form.cubicA;
  Value *near = cubic(emit, d, a + 2, -(a + 3), 0, 1);
  Value *far = cubic(emit, d, a, -5 * a, 8 * a, -4 * a);
  auto upTo = [&](OpKind kind, double end) {
    return emit.op(kind, {d, emit.scalar(ElementType::F64, end)});
  };
  return emit.where(upTo(OpKind::LessEqual, 1), near,
                    emit.where(upTo(OpKind::Less, 2), far, zero));
}

} // namespace

Value *clampedElement(Emitter &emit, Value *index, Dim size) {
  Value *i = emit.cast(index, ElementType::I64);
  i = emit.op(OpKind::Max, {i, emit.scalar(ElementType::I64, 0)});
  return emit.op(OpKind::Min, {i, emit.dimScalar(size - Dim(1))});
}

SmallVector<Tap, 4> tapsAt(Emitter &emit, Value *at, Dim size,
                           const Interpolation &form) {
  if (form.mode == Interpolation::Mode::Nearest)
    return {{rounded(emit, at, form.rounding), nullptr}};
  // The element before the coordinate, and those around.
  double radius = form.mode == Interpolation::Mode::Linear ? 1 : 2;
  int64_t first = int64_t(std::floor(-radius / form.shrink)) + 1,
          count = 2 - 2 * first;
  Value *before = emit.addScalar(emit.op(OpKind::Ceil, {at}), -1);
  Value *sum = nullptr, *zero = emit.scalar(ElementType::F64, 0);
  Value *end = emit.cast(emit.dimScalar(size), ElementType::F64);
  SmallVector<Tap, 4> taps;
  for (int64_t i = first; i < first + count && !emit.failed(); ++i) {
    Value *index = emit.addScalar(before, double(i));
    Value *distance = emit.mulScalar(emit.sub(index, at), form.shrink);
    Value *weight = weightAt(emit, distance, form);
    if (form.excludeOutside) {
      Value *inside =
          emit.op(OpKind::And, {emit.op(OpKind::GreaterEqual, {index, zero}),
                                emit.op(OpKind::Less, {index, end})});
      weight = emit.where(inside, weight, zero);
    }
    sum = sum ? emit.add(sum, weight) : weight;
    taps.push_back({index, weight});
  }
  if (form.antialias || form.excludeOutside)
    for (Tap &tap : taps)
      tap.weight = emit.div(tap.weight, sum);
  return taps;
}

Value *interpolate(Emitter &emit, Value *x, int64_t axis, Value *at,
                   const Interpolation &form) {
  if (emit.failed())
    return nullptr;
  Dim size = x->shape()[axis];
  Value *sum = nullptr;
  for (const Tap &tap : tapsAt(emit, at, size, form)) {
    Value *part = emit.gather(x, clampedElement(emit, tap.index, size), axis);
    if (emit.failed())
      return nullptr;
    if (!tap.weight)
      return part;
    Shape shape(x->rank(), Dim(1));
    shape[axis] = at->shape()[0];
    part = emit.mul(part,
                    emit.reshape(emit.cast(tap.weight, x->element()), shape));
    sum = sum ? emit.add(sum, part) : part;
  }
  return sum;
}

} // namespace tenon::frontend
