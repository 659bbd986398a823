//===- device.h - compiling and launching CUDA kernels in tests -----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// NVRTC and the CUDA driver's ABI, both opened when needed: the driver is the
/// library that TENON_CUDA_DRIVER names (the emulator), else libcuda.so.1.
/// Where one is missing, a test that wants it is skipped with a line that says
/// so.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_TEST_KERNELS_CUDA_DEVICE_H
#define TENON_TEST_KERNELS_CUDA_DEVICE_H

#include "runtime/device/cuda_types.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace test {

/// The kernel headers by the names that units include them with; a test may
/// change a text before it compiles.
using Headers = std::map<std::string, std::string>;
const Headers &kernelHeaders();

/// What NVRTC makes of a unit.
struct Compiled {
  bool ok = false;
  std::string image; ///< PTX for compute_..., a cubin for sm_...
  std::string log;
};

/// The reason why there is no NVRTC; empty if there is.
std::string nvrtcMissing();
/// Compiles for "compute_80" (PTX) or "sm_80" (a cubin, with ptxas's report in
/// the log).
Compiled compile(const std::string &source, const std::string &arch,
                 const Headers &headers = kernelHeaders());

/// Device memory of exactly so many bytes.
struct Buffer {
  CUdeviceptr address = 0;
  size_t bytes = 0;
};

/// A view of a launch, in elements.
struct DeviceView {
  CUdeviceptr data;
  std::vector<int64_t> shape, stride;
};

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

/// A 3-dimensional tensor map with the 128-byte swizzle.
struct BulkMap {
  CUdeviceptr data;
  int type; ///< the driver's number of the elements' type
  uint64_t size[3], strideBytes[2];
  uint32_t box[3];
};

/// All that a launch has besides the code.
struct LaunchSpec {
  Dim3 grid;
  unsigned threads = 128;
  unsigned sharedBytes = 0;
  std::vector<DeviceView> views;
  int rank = 1; ///< Cfg::view_rank
  CUdeviceptr scratch = 0, counters = 0;
  std::vector<int64_t> params;
  std::vector<BulkMap> maps;
};

/// The one device of a test program.
class Device {
public:
  /// Null where there is none; `missing` says why.
  static Device *get();
  static std::string missing();

  /// Major * 10 + minor.
  int arch() const { return capability; }

  Buffer upload(const std::vector<char> &data);
  /// The first `zeros` bytes are 0, the others are left as they are.
  Buffer allocate(size_t bytes, size_t zeros);
  void write(const Buffer &buffer, const std::vector<char> &data);
  std::vector<char> download(const Buffer &buffer);
  void release(const Buffer &buffer);

  /// Loads `image`, launches its `entry` and waits. Empty, or what went wrong;
  /// of the emulator with its report, and the device can be used again.
  std::string launch(const std::string &image, const std::string &entry,
                     const LaunchSpec &spec);

  bool isEmulated() const;
  /// The emulator's counters since the last call, as JSON.
  std::string takeCounters();

private:
  Device() = default;
  int capability = 0;
};

} // namespace test

#endif // TENON_TEST_KERNELS_CUDA_DEVICE_H
