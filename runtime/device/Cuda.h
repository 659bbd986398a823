//===- Cuda.h - runs launches on a GPU ------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_DEVICE_CUDA_H
#define TENON_RUNTIME_DEVICE_CUDA_H

#include "runtime/device/CudaDriver.h"
#include "runtime/device/Device.h"

namespace tenon::rt {

/// A GPU, or the emulator's. Loads the driver and the units' code, and brings
/// the weights to the GPU's memory, once; `model` must outlive the device.
///
/// The launches of a segment are captured in a CUDA graph for each set of
/// shapes and replayed. Inputs and outputs go through pinned memory.
Result<std::unique_ptr<Device>> createCudaDevice(const Model &model,
                                                 const CudaOptions &options);

} // namespace tenon::rt

#endif // TENON_RUNTIME_DEVICE_CUDA_H
