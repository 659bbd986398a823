//===- Compare.h - comparing tensors -------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_IR_EVAL_COMPARE_H
#define TENON_IR_EVAL_COMPARE_H

#include "ir/eval/Tensor.h"
#include <string>

namespace tenon::ir {

/// |found - expected| <= atol + rtol * |expected|. NaN equals NaN, infinities
/// equal those of their sign; integers and bools must be equal.
struct Tolerance {
  double rtol = 0, atol = 0;
};

struct Comparison {
  bool equal = true;
  /// Elements out of tolerance.
  uint64_t mismatches = 0;
  /// The row-major index of the element furthest out of tolerance.
  uint64_t worst = 0;
  /// The largest |found - expected| over all finite pairs.
  double maxAbsolute = 0;
  /// sqrt(sum (found - expected)^2 / sum expected^2) over all finite pairs; 0
  /// for equal tensors, infinite when only the expected ones are all 0.
  double relativeRms = 0;
  /// What differs, for a person; empty when equal:
  /// `3 of 12 elements differ, the worst at [1, 2]: found 1.5, expected 1.25
  /// (relative rms 2.1e-02)`.
  std::string message;
};

/// Compares type, shape and elements.
Comparison compare(const Tensor &found, const Tensor &expected,
                   Tolerance tolerance);

} // namespace tenon::ir

#endif // TENON_IR_EVAL_COMPARE_H
