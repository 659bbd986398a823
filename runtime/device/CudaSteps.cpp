//===- CudaSteps.cpp - a segment's launches as the driver wants them ------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/device/CudaSteps.h"

#include "runtime/device/TensorMaps.h"

#include <algorithm>

namespace tenon::rt {

/// A launch's view with its address on the GPU: the frame knows weights by
/// where they are on the host.
tn_view StepMaker::viewOf(const Frame &frame, size_t launch, size_t v) const {
  tn_view view = frame.viewsOf(launch)[v];
  uint32_t id =
      plan.views()[plan.run(plan.launches()[launch].views, v + 1)[v]].buffer;
  const Buffer &buffer = plan.buffers()[id];
  if (buffer.kind != BufferKind::Weight)
    return view;
  uint64_t onHost = reinterpret_cast<uint64_t>(model.weights().data());
  uint64_t within =
      reinterpret_cast<uint64_t>(view.data) - onHost - buffer.offset;
  view.data =
      reinterpret_cast<char *>(weights.address(id, uint32_t(launch)) + within);
  return view;
}

/// Appends the kernel parameter of a launch: `tn::Launch` of
/// codegen/kernels/cuda/common.cuh.
void StepMaker::pack(const Frame &frame, size_t index, Steps &steps) const {
  const Launch &launch = plan.launches()[index];
  auto described = plan.run(launch.views, launch.numViews);
  size_t rank = 1;
  for (uint32_t view : described)
    rank = std::max<size_t>(rank, plan.views()[view].rank);
  std::vector<int64_t> &out = steps.blob;
  for (size_t v = 0; v < described.size(); ++v) {
    tn_view view = viewOf(frame, index, v);
    size_t own = plan.views()[described[v]].rank;
    out.push_back(reinterpret_cast<int64_t>(view.data));
    for (const int64_t *sizes : {view.shape, view.stride})
      for (size_t d = 0; d < rank; ++d)
        out.push_back(d < own ? sizes[d] : 0);
  }
  out.push_back(reinterpret_cast<int64_t>(frame.scratchOf(index)));
  const int64_t *params = frame.paramsOf(index);
  out.insert(out.end(), params, params + launch.numParams);
  if (launch.numParams == 0)
    out.push_back(0);
  out.push_back(int64_t(faults + index * sizeof(tn_fault)));
  out.push_back(int64_t(counters));
}

/// The way to do a launch at these sizes; null: its own.
const Variant *StepMaker::variantOf(const Frame &frame,
                                    const Launch &launch) const {
  for (const Variant &variant : plan.variantsOf(launch))
    if (frame.values()[variant.when] != 0 &&
        (variant.arch == 0 ||
         variant.arch == context.exactArchOf(variant.unit)))
      return &variant;
  return nullptr;
}

Status StepMaker::packMaps(const Frame &frame, const Variant &variant,
                           Step &step, Steps &steps) const {
  const Launch &launch = plan.launches()[step.launch];
  auto views = plan.run(launch.views, launch.numViews);
  step.maps = steps.blob.size();
  for (const TensorMap &map : plan.mapsOf(variant)) {
    const View &view = plan.views()[views[map.view]];
    Status status = context.api().check(
        encodeTensorMap(context.api(), map,
                        viewOf(frame, step.launch, map.view), view.rank,
                        view.dtype, steps.blob),
        describe(step) + ": a tensor map");
    if (!status.ok())
      return status;
    ++step.numMaps;
  }
  return {};
}

Status StepMaker::prepareOne(const Frame &frame, uint32_t index,
                             Steps &steps) const {
  static constexpr int64_t limits[] = {INT32_MAX, 65535, 65535};
  const Launch &launch = plan.launches()[index];
  const Variant *variant = variantOf(frame, launch);
  Step step = {index, launch.unit,       {}, launch.threads,
               0,     steps.blob.size(), 0,  0};
  if (variant) {
    step.unit = variant->unit;
    step.threads = variant->threads;
  }
  bool empty = false;
  for (unsigned d = 0; d < 3; ++d) {
    int64_t blocks =
        frame.values()[variant ? variant->grid[d] : launch.grid[d]];
    empty |= blocks <= 0;
    if (blocks > limits[d])
      return TN_ERROR("%s: %lld blocks are too many for a GPU",
                      describe(step).c_str(), static_cast<long long>(blocks));
    step.grid[d] = unsigned(blocks);
  }
  int64_t shared =
      frame.values()[variant ? variant->sharedBytes : launch.sharedBytes];
  if (shared < 0 || shared > INT32_MAX)
    return TN_ERROR("%s: its shared memory is out of range",
                    describe(step).c_str());
  step.sharedBytes = unsigned(shared);
  if (empty)
    return {};
  pack(frame, index, steps);
  if (variant)
    if (Status status = packMaps(frame, *variant, step, steps); !status.ok())
      return status;
  steps.list.push_back(step);
  return {};
}

Result<Steps> StepMaker::make(const Frame &frame, uint32_t segment) const {
  const Segment &run = plan.segments()[segment];
  Steps steps;
  for (uint32_t l = 0; l < run.numLaunches; ++l) {
    uint32_t index = run.firstLaunch + l;
    const Launch &launch = plan.launches()[index];
    if (launch.kind == LaunchKind::BindSymbols)
      continue;
    if (launch.kind != LaunchKind::Kernel || launch.threads == 0)
      return TN_ERROR("damaged plan: launch %u is not for a GPU", index);
    if (Status status = prepareOne(frame, index, steps); !status.ok())
      return status;
  }
  return steps;
}

std::string StepMaker::describe(const Step &step) const {
  const Launch &launch = plan.launches()[step.launch];
  StringId kernel = launch.kernel;
  for (const Variant &variant : plan.variantsOf(launch))
    if (variant.unit == step.unit)
      kernel = variant.kernel;
  return format("kernel '%s' of node '%s'", plan.string(kernel),
                printable(std::string(plan.string(launch.location))).c_str());
}

} // namespace tenon::rt
