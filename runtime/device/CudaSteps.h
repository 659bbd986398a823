//===- CudaSteps.h - a segment's launches as the driver wants them --------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_DEVICE_CUDASTEPS_H
#define TENON_RUNTIME_DEVICE_CUDASTEPS_H

#include "runtime/Frame.h"
#include "runtime/Model.h"
#include "runtime/device/CudaContext.h"
#include "runtime/device/CudaWeights.h"

namespace tenon::rt {

/// One launch as the driver wants it; `parameters` is an offset in Steps::blob,
/// as is `maps`, of so many tensor maps one after another.
struct Step {
  uint32_t launch, unit;
  unsigned grid[3], threads, sharedBytes;
  size_t parameters, maps;
  unsigned numMaps;

  bool operator==(const Step &) const = default;
};

/// A segment's launches, ready to be issued or captured.
struct Steps {
  std::vector<Step> list;
  std::vector<int64_t> blob;

  bool operator==(const Steps &) const = default;
};

/// Makes steps of launches, with the variants that fit the sizes and the GPU.
class StepMaker {
public:
  /// All must outlive it. `faults` has a tn_fault for each launch.
  StepMaker(const Model &model, const CudaContext &context,
            const CudaWeights &weights, const CUdeviceptr &faults,
            const CUdeviceptr &counters)
      : model(model), plan(model.plan()), context(context), weights(weights),
        faults(faults), counters(counters) {}

  /// The launches of `segment` that have something to do.
  Result<Steps> make(const Frame &frame, uint32_t segment) const;
  /// "kernel 'gemm_f16' of node 'dense/MatMul'".
  std::string describe(const Step &step) const;

private:
  tn_view viewOf(const Frame &frame, size_t launch, size_t v) const;
  void pack(const Frame &frame, size_t index, Steps &steps) const;
  const Variant *variantOf(const Frame &frame, const Launch &launch) const;
  Status packMaps(const Frame &frame, const Variant &variant, Step &step,
                  Steps &steps) const;
  Status prepareOne(const Frame &frame, uint32_t index, Steps &steps) const;

  const Model &model;
  const Plan &plan;
  const CudaContext &context;
  const CudaWeights &weights;
  const CUdeviceptr &faults, &counters;
};

} // namespace tenon::rt

#endif // TENON_RUNTIME_DEVICE_CUDASTEPS_H
