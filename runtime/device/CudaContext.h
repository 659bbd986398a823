//===- CudaContext.h - a GPU with its memory and code ---------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_DEVICE_CUDACONTEXT_H
#define TENON_RUNTIME_DEVICE_CUDACONTEXT_H

#include "runtime/device/CudaDriver.h"
#include "runtime/device/DeviceCode.h"

#include <vector>

namespace tenon::rt {

/// A GPU's primary context, one stream, and the units' functions.
class CudaContext {
public:
  static Result<std::unique_ptr<CudaContext>>
  create(const CudaOptions &options);
  ~CudaContext();
  CudaContext(const CudaContext &) = delete;
  CudaContext &operator=(const CudaContext &) = delete;

  const CudaDriver &api() const { return *driver; }
  CUstream stream() const { return itsStream; }
  const std::string &name() const { return gpuName; }

  /// Loads every module of `code` in the form that fits this GPU best.
  Status loadCode(const DeviceCode &code);
  CUfunction function(uint32_t unit) const { return functions[unit]; }
  /// The architecture whose own code ("sm_90a": 90) was loaded for a unit; 0
  /// if the code is for others too.
  unsigned exactArchOf(uint32_t unit) const { return exactArchs[unit]; }

  /// Memory of the GPU; `what` is for the message when there is too little.
  Result<CUdeviceptr> allocate(uint64_t bytes, const std::string &what);
  void release(CUdeviceptr pointer, uint64_t bytes);
  /// What may still be allocated.
  uint64_t freeBytes() const;

  Status synchronize(const std::string &what);

private:
  CudaContext() = default;
  Status open(const CudaOptions &options);
  Status loadModule(const DeviceCode &code, uint32_t module);

  std::shared_ptr<const CudaDriver> driver;
  bool ptxOnly = false;
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUstream itsStream = nullptr;
  std::string gpuName;
  unsigned capability = 0; ///< 90 for 9.0
  uint64_t limit = 0, used = 0;
  std::vector<CUmodule> modules;
  std::vector<unsigned> exactArchOfModule, exactArchs; ///< by unit
  std::vector<CUfunction> functions;
};

/// Pinned host memory.
class PinnedBuffer {
public:
  explicit PinnedBuffer(const CudaDriver &driver) : driver(driver) {}
  PinnedBuffer(PinnedBuffer &&other) noexcept;
  PinnedBuffer &operator=(PinnedBuffer &&) = delete;
  ~PinnedBuffer();

  /// Makes at least `bytes` available; the contents are lost when it grows.
  Status reserve(uint64_t bytes);
  char *data() const { return static_cast<char *>(memory); }

private:
  const CudaDriver &driver;
  void *memory = nullptr;
  uint64_t capacity = 0;
};

} // namespace tenon::rt

#endif // TENON_RUNTIME_DEVICE_CUDACONTEXT_H
