//===- Interpolate.h - values between elements -----------------*- C++ -*-===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_FRONTEND_IMPORTERS_INTERPOLATE_H
#define TENON_FRONTEND_IMPORTERS_INTERPOLATE_H

#include "frontend/Emitter.h"

namespace tenon::frontend {

enum class NearestRounding { PreferFloor, PreferCeil, Floor, Ceil, HalfToEven };

/// How a value between elements comes from those around it.
struct Interpolation {
  enum class Mode { Nearest, Linear, Cubic } mode = Mode::Nearest;
  NearestRounding rounding = NearestRounding::PreferFloor;
  double cubicA = -0.75;
  /// Weights of elements outside become 0, and the others' sum 1.
  bool excludeOutside = false;
  /// The filter gets wider by 1 / shrink where that is below 1.
  bool antialias = false;
  double shrink = 1;
};

/// Element offset + floor and its weight, for one coordinate or many: f64s of
/// one shape.
struct Tap {
  ir::Value *index = nullptr;  ///< f64, may be outside
  ir::Value *weight = nullptr; ///< f64; null: 1
};

/// The elements that a value at coordinates \p at (f64, any shape) comes from,
/// in a list of elements 0, 1, ... \p size is the list's, for excludeOutside.
llvm::SmallVector<Tap, 4> tapsAt(Emitter &emit, ir::Value *at, ir::Dim size,
                                 const Interpolation &form);

/// min(max(index, 0), size - 1) of f64s, as i64.
ir::Value *clampedElement(Emitter &emit, ir::Value *index, ir::Dim size);

/// \p x (f32 or f64 unless the mode is nearest) at coordinates \p at (f64[n])
/// along \p axis, the elements at the ends repeated beyond them.
ir::Value *interpolate(Emitter &emit, ir::Value *x, int64_t axis, ir::Value *at,
                       const Interpolation &form);

} // namespace tenon::frontend

#endif // TENON_FRONTEND_IMPORTERS_INTERPOLATE_H
