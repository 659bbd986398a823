//===- Windows.h - sizes of sliding windows ------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_IR_OPS_WINDOWS_H
#define TENON_IR_OPS_WINDOWS_H

#include "ir/ops/Infer.h"

namespace tenon::ir {

/// A window sliding along one spatial dimension.
struct WindowAxis {
  Dim input, kernel;
  int64_t stride = 1, dilation = 1, padLow = 0, padHigh = 0;
  bool ceilMode = false;
};

/// Strides and dilations are positive, pads not negative, and each has one entry
/// for each of \p rank spatial dimensions.
llvm::Error checkWindows(size_t rank, llvm::ArrayRef<int64_t> strides,
                         llvm::ArrayRef<int64_t> dilations,
                         llvm::ArrayRef<int64_t> padLow,
                         llvm::ArrayRef<int64_t> padHigh);

/// How many places a window has:
/// (input + pads - extent) / stride + 1 with extent = (kernel - 1) * dilation +
/// 1, rounded down, or up in ceil mode, where windows that would start in the
/// high padding are left out. An error when not even one fits.
llvm::Expected<Dim> windowCount(const WindowAxis &axis, unsigned spatialDim);

} // namespace tenon::ir

#endif // TENON_IR_OPS_WINDOWS_H
