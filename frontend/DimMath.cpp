//===- DimMath.cpp - arithmetic of slices over symbolic sizes ------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/DimMath.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace tenon::ir;

namespace tenon::frontend {

Dim stepsWithin(Dim distance, int64_t step) {
  Dim steps = step == 1 ? distance : Dim::ceilDiv(distance, Dim(step));
  // ceil(distance / step) is not negative when distance is not.
  return distance.isAtLeast(0) ? steps : Dim::max(steps, Dim(0));
}

Dim fromEnd(Dim index, Dim size) {
  if (index.isAtLeast(0))
    return index;
  if ((Dim(0) - index).isAtLeast(1))
    return index + size;
  // The sign depends on sizes: min(1, max(0, index + 1)) is 1 for index >= 0.
  Dim isNotNegative = Dim::min(Dim(1), Dim::max(Dim(0), index + Dim(1)));
  return index + size * (Dim(1) - isNotNegative);
}

Dim clampDim(Dim x, Dim low, Dim high) {
  if ((x - high).isAtLeast(0))
    return high;
  if ((low - x).isAtLeast(0))
    return low;
  if (!(x - low).isAtLeast(0))
    x = Dim::max(x, low);
  return (high - x).isAtLeast(0) ? x : Dim::min(x, high);
}

std::string formatDims(ShapeRef dims) {
  std::string text;
  raw_string_ostream os(text);
  llvm::interleaveComma(dims, os);
  return text;
}

} // namespace tenon::frontend
