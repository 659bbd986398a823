//===- ConstantForms.cpp - regular constants, as formulas ---------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/ConstantForms.h"
#include "passes/canonical/LawUtil.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace tenon;
using namespace tenon::ir;
using passes::ConstantBand;

namespace {

/// Larger constants are not looked at: masks for 8192 positions are.
constexpr uint64_t maxElements = 1 << 26;
/// Integers below are exact as doubles.
constexpr double maxExact = 9007199254740992.0;

/// The least and greatest k - q with \p inside, if that is where it is and
/// everything else is \p outside.
std::optional<std::pair<int64_t, int64_t>>
diagonals(const Constant &value, int64_t rows, int64_t columns, double inside,
          double outside) {
  int64_t low = INT64_MAX, high = INT64_MIN;
  uint64_t i = 0;
  for (int64_t q = 0; q != rows; ++q)
    for (int64_t k = 0; k != columns; ++k) {
      double x = value.floatAt(i++);
      if (x != inside && x != outside)
        return std::nullopt;
      if (x == inside) {
        low = std::min(low, k - q);
        high = std::max(high, k - q);
      }
    }
  i = 0;
  for (int64_t q = 0; q != rows; ++q)
    for (int64_t k = 0; k != columns; ++k)
      if ((value.floatAt(i++) == inside) != (low <= k - q && k - q <= high))
        return std::nullopt;
  return std::pair(low, high);
}

} // namespace

std::optional<ConstantBand> ConstantBand::of(const Constant &value) {
  llvm::ArrayRef<int64_t> sizes = value.shape();
  uint64_t count = value.numElements();
  if (sizes.size() < 2 || count < 2 || count > maxElements ||
      !llvm::all_of(sizes.drop_back(2), [](int64_t d) { return d == 1; }))
    return std::nullopt;
  int64_t rows = sizes[sizes.size() - 2], columns = sizes.back();
  double first = value.floatAt(0), other = first;
  for (uint64_t i = 1; i != count && other == first; ++i)
    other = value.floatAt(i);
  bool exact = isFloat(value.element()) ||
               (std::fabs(first) < maxExact && std::fabs(other) < maxExact);
  if (other == first || !exact)
    return std::nullopt;
  for (auto [inside, outside] : {std::pair(first, other), {other, first}}) {
    auto found = diagonals(value, rows, columns, inside, outside);
    if (!found)
      continue;
    ConstantBand band{inside, outside, {}, {}};
    if (found->first != 1 - rows)
      band.low = found->first;
    if (found->second != columns - 1)
      band.high = found->second;
    return band;
  }
  return std::nullopt;
}

std::optional<llvm::SmallVector<int64_t, 4>>
passes::affineSteps(const Constant &value) {
  llvm::ArrayRef<int64_t> sizes = value.shape();
  llvm::SmallVector<int64_t, 4> strides = rowMajorStrides(sizes), steps;
  if (value.numElements() == 0)
    return std::nullopt;
  __int128 first = value.intAt(0);
  for (size_t i = 0; i != sizes.size(); ++i) {
    int64_t next = sizes[i] > 1 ? value.intAt(strides[i]) : value.intAt(0);
    if (__builtin_sub_overflow(next, value.intAt(0), &steps.emplace_back()))
      return std::nullopt;
  }
  bool isAffine = true;
  uint64_t flat = 0;
  forEachIndex(sizes, [&](llvm::ArrayRef<int64_t> at) {
    __int128 expected = first;
    for (size_t i = 0; i != at.size(); ++i)
      expected += static_cast<__int128>(steps[i]) * at[i];
    isAffine &= expected == value.intAt(flat++);
  });
  if (!isAffine)
    return std::nullopt;
  return steps;
}
