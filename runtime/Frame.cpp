//===- Frame.cpp - a plan's sizes and pointers for the current shapes ---===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/Frame.h"

#include "runtime/Binding.h"
#include "runtime/device/Device.h"
#include "runtime/format/DType.h"

#include <algorithm>

namespace tenon::rt {
namespace {

/// What pointers to nothing point to.
alignas(bufferAlignment) char nowhere[bufferAlignment];

} // namespace

Frame::Frame(const Plan &plan, Device &device)
    : plan(plan), device(device), symbolValues(plan.symbols().size()),
      exprValues(plan.exprs().size()), sizes(plan.buffers().size()), bases(plan.buffers().size(), nowhere) {
  size_t views = 0, numParams = 0;
  for (const Launch &launch : plan.launches()) {
    firstView.push_back(views);
    firstParam.push_back(numParams);
    views += launch.numViews;
    numParams += launch.numParams;
    for (uint32_t view : plan.run(launch.views, launch.numViews)) {
      firstDim.push_back(dims.size());
      dims.resize(dims.size() + 2 * size_t(plan.views()[view].rank));
    }
  }
  launchViews.resize(views);
  viewOffsets.resize(views);
  params.resize(numParams);
}

void Frame::setSymbols(std::span<const int64_t> symbols, uint32_t segment) {
  if (std::equal(symbols.begin(), symbols.end(), symbolValues.begin()))
    return;
  std::copy(symbols.begin(), symbols.end(), symbolValues.begin());
  prepared = std::min(prepared, segment);
}

Status Frame::prepareSizes(uint32_t segment) {
  if (segment < prepared)
    return {};
  prepared = segment; // stays so if anything below fails
  ++sizesVersion;
  if (Status status = evaluate(plan, segment, symbolValues, exprValues);
      !status.ok())
    return TN_ERROR("%s (%s)", status.message().c_str(),
                    describeSymbols(plan, symbolValues).c_str());
  if (Status status = checkConstraints(segment); !status.ok())
    return status;
  for (size_t i = 0; i < sizes.size(); ++i) {
    ExprId bytes = plan.buffers()[i].bytes;
    if (plan.segmentOf(bytes) != segment)
      continue;
    if (exprValues[bytes] < 0)
      return TN_ERROR("size %s is negative (%s)", plan.text(bytes).c_str(),
                      describeSymbols(plan, symbolValues).c_str());
    sizes[i] = uint64_t(exprValues[bytes]);
  }
  if (segment < plan.segments().size())
    if (Status status = placeArena(segment); !status.ok())
      return status;
  prepared = segment + 1;
  return {};
}

uint32_t Frame::lastSegmentOf(const Check &check) const {
  return std::max(plan.segmentOf(check.a), plan.segmentOf(check.b));
}

Status Frame::checkConstraints(uint32_t segment) const {
  for (const Check &check : plan.checks())
    if (lastSegmentOf(check) == segment &&
        exprValues[check.a] != exprValues[check.b])
      return TN_ERROR("%s: sizes differ: %s is %lld, %s is %lld (%s)",
                      printable(std::string(plan.string(check.why))).c_str(),
                      plan.text(check.a).c_str(),
                      static_cast<long long>(exprValues[check.a]),
                      plan.text(check.b).c_str(),
                      static_cast<long long>(exprValues[check.b]),
                      describeSymbols(plan, symbolValues).c_str());
  return {};
}

Status Frame::placeArena(uint32_t segment) {
  const Segment &run = plan.segments()[segment];
  int64_t arenaBytes = exprValues[run.arenaBytes];
  if (arenaBytes < 0)
    return TN_ERROR("damaged plan: negative arena");
  Result<char *> arena = device.reserveArena(segment, uint64_t(arenaBytes));
  if (!arena.ok())
    return arena.status();
  for (size_t i = 0; i < bases.size(); ++i) {
    const Buffer &buffer = plan.buffers()[i];
    if (buffer.kind != BufferKind::Arena || buffer.segment != segment)
      continue;
    int64_t offset = exprValues[buffer.offset];
    if (offset < 0 || offset % int64_t(bufferAlignment) != 0 ||
        !inRange(uint64_t(offset), sizes[i], uint64_t(arenaBytes)))
      return TN_ERROR("damaged plan: buffer %zu lies outside its arena", i);
    bases[i] = *arena + offset;
  }
  for (size_t l = 0; l < run.numLaunches; ++l) {
    size_t index = run.firstLaunch + l;
    const Launch &launch = plan.launches()[index];
    auto views = plan.run(launch.views, launch.numViews);
    for (size_t v = 0; v < views.size(); ++v) {
      size_t slot = firstView[index] + v;
      int64_t *shape = dims.data() + firstDim[slot];
      const View &view = plan.views()[views[v]];
      if (Status status = measure(view, shape, viewOffsets[slot]); !status.ok())
        return status;
      launchViews[slot] = {nullptr, shape, shape + view.rank};
    }
    if (launch.scratchBuffer != none &&
        exprValues[launch.scratchBytes] > int64_t(sizes[launch.scratchBuffer]))
      return TN_ERROR("damaged plan: scratch of launch %zu is too small",
                      index);
    if (launch.kind == LaunchKind::BindSymbols)
      continue; // its params are symbols
    auto ids = plan.run(launch.params, launch.numParams);
    for (size_t p = 0; p < ids.size(); ++p)
      params[firstParam[index] + p] = exprValues[ids[p]];
  }
  return {};
}

Status Frame::measure(const View &view, int64_t *out, uint64_t &offset) const {
  auto shape = plan.run(view.shape, view.rank);
  auto strides = plan.run(view.strides, view.rank);
  int64_t first = exprValues[view.offset];
  int64_t low = first, high = first;
  bool empty = false, overflow = false;
  for (size_t d = 0; d < view.rank; ++d) {
    int64_t size = exprValues[shape[d]], stride = exprValues[strides[d]];
    out[d] = size;
    out[view.rank + d] = stride;
    if (size < 0)
      return TN_ERROR("size %s is negative (%s)", plan.text(shape[d]).c_str(),
                      describeSymbols(plan, symbolValues).c_str());
    empty |= size == 0;
    int64_t reach;
    overflow |= __builtin_mul_overflow(size - 1, stride, &reach);
    overflow |= __builtin_add_overflow(stride < 0 ? low : high, reach,
                                       stride < 0 ? &low : &high);
  }
  offset = 0;
  if (empty)
    return {};
  // In bits, for the types below a byte.
  int64_t width = dtypeInfo(view.dtype).bits, endBit, firstBit;
  overflow |=
      high == INT64_MAX || __builtin_mul_overflow(high + 1, width, &endBit);
  overflow |= __builtin_mul_overflow(first, width, &firstBit);
  if (overflow || low < 0 || firstBit % 8 != 0 ||
      uint64_t(endBit - 1) / 8 >= sizes[view.buffer])
    return TN_ERROR("the model cannot be run with %s: it looks at elements "
                    "that tensors of these sizes do not have",
                    describeSymbols(plan, symbolValues).c_str());
  offset = uint64_t(firstBit) / 8;
  return {};
}

void Frame::setBase(uint32_t buffer, char *base) {
  bases[buffer] = base ? base : nowhere;
}

void Frame::preparePointers(uint32_t segment) {
  const Segment &run = plan.segments()[segment];
  for (size_t l = 0; l < run.numLaunches; ++l) {
    size_t index = run.firstLaunch + l;
    const Launch &launch = plan.launches()[index];
    auto views = plan.run(launch.views, launch.numViews);
    for (size_t v = 0; v < views.size(); ++v) {
      size_t slot = firstView[index] + v;
      launchViews[slot].data =
          bases[plan.views()[views[v]].buffer] + viewOffsets[slot];
    }
  }
}

Result<tn_view> Frame::resolve(uint32_t view,
                               std::vector<int64_t> &storage) const {
  const View &described = plan.views()[view];
  storage.resize(2 * size_t(described.rank));
  uint64_t offset;
  if (Status status = measure(described, storage.data(), offset); !status.ok())
    return status;
  return tn_view{bases[described.buffer] + offset, storage.data(),
                 storage.data() + described.rank};
}

} // namespace tenon::rt
