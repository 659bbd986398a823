//===- CudaContext.cpp - a GPU with its memory and code -------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/device/CudaContext.h"

#include "runtime/support/Sizes.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tenon::rt {
namespace {

std::string describe(uint64_t bytes) { return describeBytes(double(bytes)); }

} // namespace

Result<std::unique_ptr<CudaContext>>
CudaContext::create(const CudaOptions &options) {
  std::unique_ptr<CudaContext> made(new CudaContext);
  if (Status status = made->open(options); !status.ok())
    return status;
  return made;
}

Status CudaContext::open(const CudaOptions &options) {
  auto opened = CudaDriver::open(options);
  if (!opened.ok())
    return opened.status();
  driver = *opened;
  ptxOnly = options.emulated;
  limit = options.memoryLimit;
  int count = 0;
  if (Status status = driver->check(driver->cuDeviceGetCount(&count),
                                    "cannot count the GPUs");
      !status.ok())
    return status;
  if (options.ordinal < 0 || options.ordinal >= count)
    return TN_ERROR("there is no GPU number %d: the driver knows %d",
                    options.ordinal, count);
  char text[256] = {};
  int major = 0, minor = 0;
  driver->cuDeviceGet(&device, options.ordinal);
  driver->cuDeviceGetName(text, sizeof(text) - 1, device);
  driver->cuDeviceGetAttribute(
      &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  driver->cuDeviceGetAttribute(
      &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  gpuName = text;
  capability = unsigned(major * 10 + minor);
  if (Status status =
          driver->check(driver->cuDevicePrimaryCtxRetain(&context, device),
                        gpuName + ": cannot be used");
      !status.ok())
    return status;
  if (Status status = driver->check(driver->cuCtxSetCurrent(context),
                                    gpuName + ": cannot be used");
      !status.ok())
    return status;
  return driver->check(
      driver->cuStreamCreate(&itsStream, CU_STREAM_NON_BLOCKING),
      gpuName + ": cannot make a stream");
}

CudaContext::~CudaContext() {
  if (!driver || !context)
    return;
  driver->cuCtxSetCurrent(context);
  for (CUmodule module : modules)
    driver->cuModuleUnload(module);
  if (itsStream)
    driver->cuStreamDestroy(itsStream);
  driver->cuDevicePrimaryCtxRelease(device);
}

Status CudaContext::loadModule(const DeviceCode &code, uint32_t module) {
  auto images = code.choose(module, capability, ptxOnly);
  Status failed = TN_ERROR(
      "%s is an sm_%u and this artifact has code for %s: compile it with "
      "--arch=sm_%u",
      gpuName.c_str(), capability, code.archNames().c_str(), capability);
  for (const DeviceImage *image : images) {
    auto contents = code.contents(*image);
    if (!contents.ok())
      return contents.status();
    char log[4096] = {};
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER,
                              CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, reinterpret_cast<void *>(sizeof(log) - 1)};
    CUmodule loaded = nullptr;
    CUresult result = driver->cuModuleLoadDataEx(&loaded, contents->data(), 2,
                                                 options, values);
    if (result == CUDA_SUCCESS) {
      modules.push_back(loaded);
      exactArchOfModule.push_back(image->exact ? image->arch : 0);
      return {};
    }
    std::string why = log[0] ? ": " + std::string(log) : std::string();
    failed =
        driver->check(result, format("%s: module %u for %s cannot be loaded%s",
                                     gpuName.c_str(), module,
                                     archName(*image).c_str(), why.c_str()));
  }
  return failed;
}

Status CudaContext::loadCode(const DeviceCode &code) {
  for (uint32_t module = 0; module < code.numModules(); ++module)
    if (Status status = loadModule(code, module); !status.ok())
      return status;
  functions.resize(code.numUnits());
  for (uint32_t unit = 0; unit < code.numUnits(); ++unit)
    exactArchs.push_back(exactArchOfModule[code.moduleOf(unit)]);
  for (uint32_t unit = 0; unit < code.numUnits(); ++unit) {
    std::string entry = format("tn_unit_%u", unit);
    Status status = driver->check(
        driver->cuModuleGetFunction(
            &functions[unit], modules[code.moduleOf(unit)], entry.c_str()),
        "damaged GPU code: no kernel " + entry);
    if (!status.ok())
      return status;
  }
  return {};
}

Result<CUdeviceptr> CudaContext::allocate(uint64_t bytes,
                                          const std::string &what) {
  bytes = std::max<uint64_t>(bytes, 256);
  if (limit != 0 && (bytes > limit || used > limit - bytes))
    return TN_ERROR("%s: %s are needed and %s of the %s that --device-memory "
                    "allows are in use",
                    what.c_str(), describe(bytes).c_str(),
                    describe(used).c_str(), describe(limit).c_str());
  CUdeviceptr pointer = 0;
  CUresult result = driver->cuMemAlloc(&pointer, bytes);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    size_t free = 0, total = 0;
    driver->cuMemGetInfo(&free, &total);
    return TN_ERROR("%s: %s are needed on %s, which has %s of its %s free",
                    what.c_str(), describe(bytes).c_str(), gpuName.c_str(),
                    describe(free).c_str(), describe(total).c_str());
  }
  if (Status status = driver->check(result, what); !status.ok())
    return status;
  used += bytes;
  return pointer;
}

void CudaContext::release(CUdeviceptr pointer, uint64_t bytes) {
  if (pointer == 0)
    return;
  driver->cuMemFree(pointer);
  used -= std::min(used, std::max<uint64_t>(bytes, 256));
}

uint64_t CudaContext::freeBytes() const {
  size_t free = 0, total = 0;
  driver->cuMemGetInfo(&free, &total);
  // The driver needs some for itself, and allocations have gaps.
  uint64_t most = uint64_t(free) - free / 32;
  return limit == 0 ? most : std::min(most, limit - std::min(limit, used));
}

Status CudaContext::synchronize(const std::string &what) {
  return driver->check(driver->cuStreamSynchronize(itsStream), what);
}

PinnedBuffer::PinnedBuffer(PinnedBuffer &&other) noexcept
    : driver(other.driver), memory(std::exchange(other.memory, nullptr)),
      capacity(std::exchange(other.capacity, 0)) {}

PinnedBuffer::~PinnedBuffer() {
  if (memory)
    driver.cuMemFreeHost(memory);
}

Status PinnedBuffer::reserve(uint64_t bytes) {
  if (bytes <= capacity)
    return {};
  if (memory)
    driver.cuMemFreeHost(std::exchange(memory, nullptr));
  capacity = 0;
  Status status =
      driver.check(driver.cuMemHostAlloc(&memory, bytes, 0),
                   format("no pinned memory for %s", describe(bytes).c_str()));
  if (status.ok())
    capacity = bytes;
  return status;
}

} // namespace tenon::rt
