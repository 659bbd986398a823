//===- DimMath.h - arithmetic of slices over symbolic sizes --------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_FRONTEND_DIMMATH_H
#define TENON_FRONTEND_DIMMATH_H

#include "ir/Type.h"
#include <string>

namespace tenon::frontend {

/// max(0, ceil(distance / step)): how many steps fit. \p step > 0.
ir::Dim stepsWithin(ir::Dim distance, int64_t step);
/// An index that counts from the end when it is negative.
ir::Dim fromEnd(ir::Dim index, ir::Dim size);
/// min(max(x, low), high) without the parts that are provably not needed.
ir::Dim clampDim(ir::Dim x, ir::Dim low, ir::Dim high);
/// "batch, 12, 64"
std::string formatDims(ir::ShapeRef dims);

} // namespace tenon::frontend

#endif // TENON_FRONTEND_DIMMATH_H
