//===- Gpu.h - the emulator, loaded as a driver --------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TENON_TEST_EMULATOR_GPU_H
#define TENON_TEST_EMULATOR_GPU_H

#include "runtime/device/cuda_types.h"

#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

namespace tenon::test {

// The functions that tests call, by the names that the library exports.
#define TN_TEST_DRIVER(X)                                                      \
  X(cuInit, (unsigned))                                                        \
  X(cuModuleLoadDataEx,                                                        \
    (CUmodule *, const void *, unsigned, CUjit_option *, void **))             \
  X(cuModuleUnload, (CUmodule))                                                \
  X(cuModuleGetFunction, (CUfunction *, CUmodule, const char *))               \
  X(cuModuleGetGlobal_v2, (CUdeviceptr *, size_t *, CUmodule, const char *))   \
  X(cuFuncGetAttribute, (int *, CUfunction_attribute, CUfunction))             \
  X(cuFuncSetAttribute, (CUfunction, CUfunction_attribute, int))               \
  X(cuMemAlloc_v2, (CUdeviceptr *, size_t))                                    \
  X(cuMemFree_v2, (CUdeviceptr))                                               \
  X(cuMemGetInfo_v2, (size_t *, size_t *))                                     \
  X(cuMemHostAlloc, (void **, size_t, unsigned))                               \
  X(cuMemFreeHost, (void *))                                                   \
  X(cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t))                      \
  X(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t))                            \
  X(cuMemcpyDtoDAsync_v2, (CUdeviceptr, CUdeviceptr, size_t, CUstream))        \
  X(cuMemsetD8Async, (CUdeviceptr, unsigned char, size_t, CUstream))           \
  X(cuMemsetD32Async, (CUdeviceptr, unsigned, size_t, CUstream))               \
  X(cuStreamCreate, (CUstream *, unsigned))                                    \
  X(cuStreamDestroy_v2, (CUstream))                                            \
  X(cuStreamSynchronize, (CUstream))                                           \
  X(cuStreamWaitEvent, (CUstream, CUevent, unsigned))                          \
  X(cuStreamBeginCapture_v2, (CUstream, CUstreamCaptureMode))                  \
  X(cuStreamEndCapture, (CUstream, CUgraph *))                                 \
  X(cuEventCreate, (CUevent *, unsigned))                                      \
  X(cuEventRecord, (CUevent, CUstream))                                        \
  X(cuEventDestroy_v2, (CUevent))                                              \
  X(cuGraphInstantiateWithFlags, (CUgraphExec *, CUgraph, unsigned long long)) \
  X(cuGraphLaunch, (CUgraphExec, CUstream))                                    \
  X(cuGraphExecDestroy, (CUgraphExec))                                         \
  X(cuGraphDestroy, (CUgraph))                                                 \
  X(cuCtxSynchronize, (void))                                                  \
  X(cuLaunchKernel,                                                            \
    (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,   \
     unsigned, CUstream, void **, void **))

/// The library's functions; the process ends if it cannot be loaded.
class Gpu {
public:
  static Gpu &get();

#define TN_TEST_DECLARE(name, parameters) CUresult(*name) parameters;
  TN_TEST_DRIVER(TN_TEST_DECLARE)
#undef TN_TEST_DECLARE
  const char *(*lastReport)();
  const char *(*lastFault)();
  const char *(*counters)();
  void (*clearCounters)();
  void (*reset)();

private:
  Gpu();
};

/// PTX to test: the text that is committed, or what NVRTC makes of the source.
/// Empty where NVRTC is missing.
std::string ptxOf(const std::string &name, bool byNvrtc,
                  const std::string &arch = "compute_80");

/// A loaded module; empty `error` if loading went well.
struct Module {
  explicit Module(const std::string &ptx);
  ~Module();
  CUfunction function(const char *name);

  CUmodule handle = nullptr;
  std::string error;
};

/// Tests of the kernels in one file, on the committed PTX and on that of NVRTC:
/// the parameter says which. Both have the lines of the source.
class KernelTest : public testing::TestWithParam<bool> {
protected:
  explicit KernelTest(std::string file) : file(std::move(file)) {}
  void SetUp() override;

  Module *module = nullptr;

private:
  std::string file;
};

/// An array on the device.
template <typename T> struct Array {
  explicit Array(size_t count) : count(count) {
    Gpu::get().cuMemAlloc_v2(&pointer, count * sizeof(T));
  }
  explicit Array(const std::vector<T> &values) : Array(values.size()) {
    set(values);
  }
  ~Array() { Gpu::get().cuMemFree_v2(pointer); }
  Array(const Array &) = delete;
  void set(const std::vector<T> &values) {
    Gpu::get().cuMemcpyHtoD_v2(pointer, values.data(),
                               values.size() * sizeof(T));
  }
  std::vector<T> read() const {
    std::vector<T> values(count);
    Gpu::get().cuMemcpyDtoH_v2(values.data(), pointer, count * sizeof(T));
    return values;
  }

  CUdeviceptr pointer = 0;
  size_t count;
};

struct Shape {
  unsigned x = 1, y = 1, z = 1;
};

/// Launches and waits; the arguments are values of the parameters' own types.
template <typename... Args>
CUresult launch(CUfunction function, Shape grid, Shape block, unsigned shared,
                Args... args) {
  void *pointers[] = {static_cast<void *>(&args)..., nullptr};
  CUresult result = Gpu::get().cuLaunchKernel(function, grid.x, grid.y, grid.z,
                                              block.x, block.y, block.z, shared,
                                              nullptr, pointers, nullptr);
  return result ? result : Gpu::get().cuCtxSynchronize();
}

} // namespace tenon::test

#endif // TENON_TEST_EMULATOR_GPU_H
