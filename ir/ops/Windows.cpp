//===- Windows.cpp - sizes of sliding windows ----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/ops/Windows.h"

using namespace tenon;
using namespace tenon::ir;

namespace {

/// Keeps all arithmetic on window sizes far from overflow.
constexpr int64_t largestEntry = int64_t(1) << 31;

llvm::Error checkEntries(llvm::StringRef attribute,
                         llvm::ArrayRef<int64_t> entries, size_t rank,
                         int64_t low) {
  if (llvm::Error error = checkLength(attribute, entries.size(), rank))
    return error;
  for (int64_t entry : entries)
    if (entry < low || entry > largestEntry)
      return userError("{0} has an entry {1}, expected {2} to {3}", attribute,
                       entry, low, largestEntry);
  return llvm::Error::success();
}

} // namespace

llvm::Error tenon::ir::checkWindows(size_t rank,
                                    llvm::ArrayRef<int64_t> strides,
                                    llvm::ArrayRef<int64_t> dilations,
                                    llvm::ArrayRef<int64_t> padLow,
                                    llvm::ArrayRef<int64_t> padHigh) {
  if (llvm::Error error = checkEntries("strides", strides, rank, 1))
    return error;
  if (llvm::Error error = checkEntries("dilations", dilations, rank, 1))
    return error;
  if (llvm::Error error = checkEntries("pad_low", padLow, rank, 0))
    return error;
  return checkEntries("pad_high", padHigh, rank, 0);
}

llvm::Expected<Dim> tenon::ir::windowCount(const WindowAxis &axis,
                                           unsigned spatialDim) {
  Dim padded = axis.input + axis.padLow + axis.padHigh;
  Dim extent = (axis.kernel - 1) * axis.dilation + 1;
  Dim room = padded - extent;
  if (std::optional<int64_t> known = room.constant(); known && *known < 0)
    return userError("a window of {0} does not fit into the padded input of "
                     "{1} in spatial dimension {2}",
                     text(extent), text(padded), spatialDim);
  if (!axis.ceilMode)
    return Dim::floorDiv(room, axis.stride) + 1;
  return Dim::min(Dim::ceilDiv(room, axis.stride) + 1,
                  Dim::ceilDiv(axis.input + axis.padLow, axis.stride));
}
