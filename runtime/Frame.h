//===- Frame.h - a plan's sizes and pointers for the current shapes -----===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_FRAME_H
#define TENON_RUNTIME_FRAME_H

#include "runtime/Plan.h"
#include "runtime/format/abi.h"

namespace tenon::rt {

class Device;

/// Everything about a call that depends on its shapes: the expressions' values,
/// the buffers' places, the arrays that units are called with. Sizes are kept
/// from call to call while the symbols stay the same; pointers are refreshed.
class Frame {
public:
  /// Temporaries are `device`'s, which must outlive the frame.
  Frame(const Plan &plan, Device &device);

  std::span<const int64_t> values() const { return exprValues; }
  std::span<const int64_t> symbols() const { return symbolValues; }
  /// Changes whenever sizes do.
  uint64_t version() const { return sizesVersion; }

  /// Takes the symbols' values when segment `segment` is about to be prepared;
  /// sizes that may depend on what changed are forgotten.
  void setSymbols(std::span<const int64_t> symbols, uint32_t segment);

  /// Computes the sizes of `segment`, unless they are known; those before it
  /// must be. Checks that arenas hold their buffers and buffers their views.
  Status prepareSizes(uint32_t segment);

  /// Sets the base address of a buffer that is not in an arena. At least
  /// bufferBytes() must lie there; null stands for an empty buffer.
  void setBase(uint32_t buffer, char *base);

  /// Puts the buffers' addresses into the views of the launches of `segment`.
  void preparePointers(uint32_t segment);

  uint64_t bufferBytes(uint32_t buffer) const { return sizes[buffer]; }
  const tn_view *viewsOf(size_t launch) const {
    return launchViews.data() + firstView[launch];
  }
  const int64_t *paramsOf(size_t launch) const {
    return params.data() + firstParam[launch];
  }
  char *scratchOf(size_t launch) const {
    uint32_t buffer = plan.launches()[launch].scratchBuffer;
    return buffer == none ? nullptr : bases[buffer];
  }
  /// A view outside launches (an output's): its shape, strides and address.
  Result<tn_view> resolve(uint32_t view, std::vector<int64_t> &dims) const;

private:
  Status placeArena(uint32_t segment);
  Status checkConstraints(uint32_t segment) const;
  /// Writes shape and strides to `dims` and gives the view's byte offset.
  Status measure(const View &view, int64_t *dims, uint64_t &offset) const;
  uint32_t lastSegmentOf(const Check &check) const;

  const Plan &plan;
  Device &device;
  uint32_t prepared = 0; ///< segments whose sizes are known
  uint64_t sizesVersion = 0;
  std::vector<int64_t> symbolValues, exprValues;
  std::vector<uint64_t> sizes; ///< of buffers
  std::vector<char *> bases;   ///< of buffers
  std::vector<size_t> firstView, firstParam, firstDim;
  std::vector<tn_view> launchViews;
  std::vector<uint64_t> viewOffsets; ///< parallel to launchViews, bytes
  std::vector<int64_t> dims, params;
};

} // namespace tenon::rt

#endif // TENON_RUNTIME_FRAME_H
