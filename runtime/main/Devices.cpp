//===- Devices.cpp - the device that the command line names --------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/main/Devices.h"

#include "runtime/device/Cuda.h"

#include <cstdlib>
#include <cstring>

namespace tenon::rt {

Result<std::unique_ptr<Device>> makeDevice(const Model &model,
                                           const Options &options) {
  bool gpu = !model.deviceCode().empty();
  if (options.device == "cpu" || (options.device.empty() && !gpu))
    return createCpuDevice(model, options.threads);
  CudaOptions cuda = options.cuda;
  const char *wanted = std::getenv("TENON_DEVICE");
  if (options.device.empty() && wanted && std::strcmp(wanted, "emulated") == 0)
    cuda.emulated = true;
  return createCudaDevice(model, cuda);
}

} // namespace tenon::rt
