//===- Compare.cpp - comparing tensors -----------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/eval/Compare.h"

#include "ir/eval/Loops.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <limits>

using namespace tenon::ir;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// By how much a pair is out of tolerance; 0 or less when it is within.
double excess(double found, double expected, Tolerance tolerance) {
  if (std::isnan(expected) && std::isnan(found))
    return 0;
  if (found == expected)
    return 0;
  if (!std::isfinite(found) || !std::isfinite(expected))
    return infinity;
  return std::fabs(found - expected) -
         (tolerance.atol + tolerance.rtol * std::fabs(expected));
}

std::string indexText(uint64_t flat, llvm::ArrayRef<int64_t> shape) {
  Extents index(shape.size(), 0);
  for (size_t d = shape.size(); d-- > 0;) {
    index[d] = static_cast<int64_t>(flat % shape[d]);
    flat /= shape[d];
  }
  return extentsText(index);
}

void printElement(llvm::raw_ostream &os, const Tensor &tensor, uint64_t i) {
  if (tensor.isFloatTensor())
    os << llvm::format("%.9g", tensor.at(i));
  else if (tensor.element == ElementType::U64)
    os << static_cast<uint64_t>(tensor.intAt(i));
  else
    os << tensor.intAt(i);
}

void compareElements(const Tensor &found, const Tensor &expected,
                     Tolerance tolerance, Comparison &result) {
  double worstExcess = 0, squares = 0, errorSquares = 0;
  for (uint64_t i = 0, n = expected.numElements(); i != n; ++i) {
    double f = found.at(i), e = expected.at(i);
    double over = expected.isFloatTensor()
                      ? excess(f, e, tolerance)
                      : double(found.intAt(i) != expected.intAt(i));
    if (over > 0) {
      ++result.mismatches;
      if (over > worstExcess) {
        worstExcess = over;
        result.worst = i;
      }
    }
    if (!std::isfinite(f) || !std::isfinite(e))
      continue;
    result.maxAbsolute = std::max(result.maxAbsolute, std::fabs(f - e));
    errorSquares += (f - e) * (f - e);
    squares += e * e;
  }
  if (errorSquares != 0)
    result.relativeRms =
        squares == 0 ? infinity : std::sqrt(errorSquares / squares);
}

} // namespace

Comparison tenon::ir::compare(const Tensor &found, const Tensor &expected,
                              Tolerance tolerance) {
  Comparison result;
  llvm::raw_string_ostream message(result.message);
  if (found.element != expected.element || found.shape != expected.shape) {
    result.equal = false;
    message << "found " << mnemonic(found.element) << extentsText(found.shape)
            << ", expected " << mnemonic(expected.element)
            << extentsText(expected.shape);
    return result;
  }
  compareElements(found, expected, tolerance, result);
  if (result.mismatches == 0)
    return result;
  result.equal = false;
  message << result.mismatches << " of " << expected.numElements()
          << " elements differ, the worst at "
          << indexText(result.worst, expected.shape) << ": found ";
  printElement(message, found, result.worst);
  message << ", expected ";
  printElement(message, expected, result.worst);
  message << llvm::format(" (relative rms %.2g)", result.relativeRms);
  return result;
}
