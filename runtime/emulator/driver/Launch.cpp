//===- Launch.cpp - kernels ----------------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/emulator/check/Counters.h"
#include "runtime/emulator/driver/Driver.h"
#include "runtime/support/Status.h"

#include <cstdlib>
#include <cstring>

using namespace tenon;
using namespace tenon::emu;

namespace {

/// What the warps of one block or cluster may execute before it counts as
/// hanging: a minute and more.
constexpr uint64_t mostInstructions = 4'000'000'000;

CUresult errorFor(Fault fault) {
  switch (fault) {
  case Fault::None:
    return CUDA_SUCCESS;
  case Fault::OutOfBounds:
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  case Fault::Misaligned:
    return CUDA_ERROR_MISALIGNED_ADDRESS;
  case Fault::AssertFailed:
    return CUDA_ERROR_ASSERT;
  case Fault::Deadlock:
    return CUDA_ERROR_LAUNCH_TIMEOUT;
  case Fault::CallStack:
    return CUDA_ERROR_HARDWARE_STACK_ERROR;
  case Fault::BadInstruction:
    return CUDA_ERROR_ILLEGAL_INSTRUCTION;
  default:
    return CUDA_ERROR_LAUNCH_FAILED;
  }
}

CUresult refuse(const LaunchRequest &request, const std::string &why) {
  say("cannot launch " + request.function->code->name + ": " + why);
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult checkShape(const LaunchRequest &r) {
  const ptx::Function &source = *r.function->code->source;
  const Extent &grid = r.grid, &block = r.block, &cluster = r.cluster;
  if (grid.count() == 0 || block.count() == 0 || cluster.count() == 0)
    return refuse(r, "a dimension is 0");
  if (grid.x > 0x7fffffff || grid.y > 65535 || grid.z > 65535)
    return refuse(r, "the grid is too large");
  unsigned most = source.maxThreads ? source.maxThreads : 1024;
  if (block.x > 1024 || block.y > 1024 || block.z > 64 || block.count() > most)
    return refuse(r, rt::format("%llu threads a block, at most %u are allowed",
                                static_cast<unsigned long long>(block.count()),
                                most));
  const uint32_t *required = source.reqThreads;
  if (required[0] != 0 && (block.x != required[0] || block.y != required[1] ||
                           block.z != required[2]))
    return refuse(r, rt::format("blocks must be %u x %u x %u", required[0],
                                required[1], required[2]));
  if (cluster.count() > 16 || grid.x % cluster.x || grid.y % cluster.y ||
      grid.z % cluster.z)
    return refuse(r, "the grid is no multiple of the cluster");
  if (cluster.count() > 1 && Driver::get().device().arch < 90)
    return refuse(r, "clusters need sm_90");
  uint64_t shared =
      r.function->code->staticShared - sharedStart + r.sharedBytes;
  if (static_cast<int64_t>(r.sharedBytes) > r.function->maxDynamicShared ||
      shared > Driver::get().device().sharedPerBlock)
    return refuse(
        r, rt::format("%u bytes of dynamic shared memory, at most %d allowed "
                      "by its attribute",
                      r.sharedBytes, r.function->maxDynamicShared));
  return CUDA_SUCCESS;
}

/// Copies the arguments into one block, as the kernel's parameters lie.
CUresult takeParameters(LaunchRequest &request, void **parameters,
                        void **extra) {
  const ptx::Function &source = *request.function->code->source;
  request.parameters.resize(source.paramBytes);
  if (parameters) {
    for (uint32_t index : source.params) {
      const ptx::Variable &variable = source.variables[index];
      if (!*parameters)
        return refuse(request, "an argument is missing");
      std::memcpy(request.parameters.data() + variable.offset, *parameters++,
                  variable.bytes);
    }
    return CUDA_SUCCESS;
  }
  const void *buffer = nullptr;
  size_t bytes = 0;
  for (; extra && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
      buffer = extra[1];
    else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
      bytes = *static_cast<const size_t *>(extra[1]);
  }
  if (bytes < source.paramBytes || (!buffer && source.paramBytes != 0))
    return refuse(request, "arguments are missing");
  if (source.paramBytes != 0)
    std::memcpy(request.parameters.data(), buffer, source.paramBytes);
  return CUDA_SUCCESS;
}

/// Puts the parameters where kernels can take their address, if this one does.
bool placeParameters(Launch &launch) {
  unsigned bytes;
  int place = specialPlace(paramBaseName, bytes);
  if (launch.parameters.empty() || !launch.image->usedSpecials[place])
    return true;
  launch.parameterAddress = DeviceMemory::get().allocate(
      launch.parameters.size(), Allocation::Parameters, launch.kernel->name);
  if (launch.parameterAddress != 0)
    std::memcpy(reinterpret_cast<void *>(launch.parameterAddress),
                launch.parameters.data(), launch.parameters.size());
  return launch.parameterAddress != 0;
}

CUresult execute(const LaunchRequest &request) {
  Driver &driver = Driver::get();
  if (driver.sticky())
    return driver.sticky();
  Launch launch;
  launch.image = request.function->module->image.get();
  launch.kernel = request.function->code;
  launch.grid = request.grid;
  launch.block = request.block;
  launch.cluster = request.cluster;
  launch.dynamicShared = request.sharedBytes;
  launch.sharedEnd =
      static_cast<uint32_t>(launch.kernel->staticShared + request.sharedBytes);
  launch.parameters = request.parameters;
  launch.checks = driver.checks;
  launch.number = ++driver.launches;
  launch.maxInstructions = mostInstructions;
  if (const char *limit = std::getenv("TENON_EMULATOR_MAX_INSTRUCTIONS"))
    launch.maxInstructions = std::strtoull(limit, nullptr, 10);
  if (!placeParameters(launch))
    return CUDA_ERROR_OUT_OF_MEMORY;
  launch.memory = DeviceMemory::get().table();
  run(launch);
  Counters::get().add(launch);
  if (launch.parameterAddress != 0)
    DeviceMemory::get().release(launch.parameterAddress);
  CUresult error = errorFor(launch.findings.fault());
  if (error) {
    driver.setFault(launch.findings.fault());
    Counters::get().note(launch.findings);
    driver.fail(error, launch.findings.text());
  }
  return error;
}

} // namespace

CUresult emu::launchKernel(CUstream stream, LaunchRequest request,
                           void **parameters, void **extra) {
  if (CUresult error = checkDriver())
    return error;
  if (!request.function)
    return CUDA_ERROR_INVALID_HANDLE;
  const uint32_t *required = request.function->code->source->reqCluster;
  if (required[0] != 0)
    request.cluster = {required[0], required[1], required[2]};
  if (CUresult error = checkShape(request))
    return error;
  if (CUresult error = takeParameters(request, parameters, extra))
    return error;
  return submit(stream, [request = std::move(request)] {
    // A launch that fails is known when somebody waits for it.
    execute(request);
    return CUDA_SUCCESS;
  });
}

TN_EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned gridX,
                                  unsigned gridY, unsigned gridZ,
                                  unsigned blockX, unsigned blockY,
                                  unsigned blockZ, unsigned sharedBytes,
                                  CUstream stream, void **parameters,
                                  void **extra) {
  LaunchRequest request;
  request.function = function;
  request.grid = {gridX, gridY, gridZ};
  request.block = {blockX, blockY, blockZ};
  request.sharedBytes = sharedBytes;
  return launchKernel(stream, std::move(request), parameters, extra);
}

// cuLaunchKernelEx: the driver's structures, of which only a cluster's size is
// looked at.

namespace {

struct LaunchAttribute {
  int id;
  int unused;
  union {
    unsigned cluster[3];
    char bytes[64];
  } value;
};
static_assert(sizeof(LaunchAttribute) == 72);

struct LaunchConfig {
  unsigned grid[3], block[3], sharedBytes;
  CUstream stream;
  const LaunchAttribute *attributes;
  unsigned count;
};

constexpr int clusterDimension = 4;

} // namespace

TN_EXPORT CUresult cuLaunchKernelEx(const void *config, CUfunction function,
                                    void **parameters, void **extra) {
  if (!config)
    return CUDA_ERROR_INVALID_VALUE;
  const auto &c = *static_cast<const LaunchConfig *>(config);
  LaunchRequest request;
  request.function = function;
  request.grid = {c.grid[0], c.grid[1], c.grid[2]};
  request.block = {c.block[0], c.block[1], c.block[2]};
  request.sharedBytes = c.sharedBytes;
  for (unsigned i = 0; i != c.count; ++i)
    if (c.attributes[i].id == clusterDimension) {
      const unsigned *size = c.attributes[i].value.cluster;
      request.cluster = {size[0], size[1], size[2]};
    }
  return launchKernel(c.stream, std::move(request), parameters, extra);
}
