//===- CudaDriver.h - the CUDA driver, found when it is needed ------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_DEVICE_CUDADRIVER_H
#define TENON_RUNTIME_DEVICE_CUDADRIVER_H

#include "runtime/device/cuda_types.h"
#include "runtime/support/Status.h"

#include <memory>
#include <string>

namespace tenon::rt {

/// Which driver to open and what it is to be told.
struct CudaOptions {
  /// The emulator instead of libcuda.so.1: $TENON_CUDA_DRIVER, else
  /// libtenon_emulator.so beside this program, or beside `tenon` in $PATH.
  bool emulated = false;
  /// The GPU that the emulator plays, "sm_90a"; empty: its default.
  std::string emulatedArch;
  /// Where the emulator writes what it counted and found; empty: nowhere.
  std::string emulatorReport;
  /// Which GPU.
  int ordinal = 0;
  /// Bytes of the GPU's memory to use at most; 0: all that is free.
  uint64_t memoryLimit = 0;
  /// Launch one kernel after the other and wait for each, so that an error
  /// names the one it is from. The emulator always does so.
  bool stepwise = false;
};

/// The driver's functions (cuda_api.def), once it is loaded and initialised.
class CudaDriver {
public:
  static Result<std::shared_ptr<const CudaDriver>>
  open(const CudaOptions &options);
  ~CudaDriver();
  CudaDriver(const CudaDriver &) = delete;
  CudaDriver &operator=(const CudaDriver &) = delete;

#define TN_CUDA(name, symbol, parameters) CUresult(*name) parameters = nullptr;
#include "runtime/device/cuda_api.def"

  /// An error that says what was tried, with the driver's own words; none for
  /// CUDA_SUCCESS.
  Status check(CUresult result, const std::string &what) const;
  const std::string &path() const { return file; }

private:
  CudaDriver() = default;
  Status load(const std::string &path);

  void *library = nullptr;
  /// The emulator's: what it found wrong, with the place.
  const char *(*lastReport)() = nullptr;
  std::string file;
};

} // namespace tenon::rt

#endif // TENON_RUNTIME_DEVICE_CUDADRIVER_H
