//===- ConstantForms.h - regular constants, as formulas -----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_PASSES_ANALYSIS_CONSTANTFORMS_H
#define TENON_PASSES_ANALYSIS_CONSTANTFORMS_H

#include "ir/Constant.h"
#include <optional>

namespace tenon::passes {

/// A constant [1, ..., 1, q, k] of two values: `inside` where low <= k - q <=
/// high, `outside` elsewhere. The masks of causality and of windows that older
/// exporters keep as a buffer: of flags, integers, or what is added to scores.
struct ConstantBand {
  double inside = 0, outside = 0;
  /// Without a value where they bound nothing; one of them has one.
  std::optional<int64_t> low, high;

  /// Nothing for other constants, and for those of one value alone.
  static std::optional<ConstantBand> of(const ir::Constant &value);
};

/// The steps of a constant of integers whose elements are the first plus the
/// sum of step i times index i: aranges of any rank. Nothing for others.
std::optional<llvm::SmallVector<int64_t, 4>>
affineSteps(const ir::Constant &value);

} // namespace tenon::passes

#endif // TENON_PASSES_ANALYSIS_CONSTANTFORMS_H
