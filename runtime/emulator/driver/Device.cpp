//===- Device.cpp - initialisation, the device, its context --------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/emulator/driver/Driver.h"

#include "runtime/emulator/check/Counters.h"
#include "runtime/support/Status.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace tenon;
using namespace tenon::emu;

struct CUctx_st {};

namespace {

CUctx_st context;
thread_local CUcontext current = nullptr;

constexpr unsigned KiB = 1 << 10, MiB = 1 << 20;

/// A card of each architecture.
constexpr DeviceModel models[] = {
    {75, 0, 40, 64 * KiB, 64 * KiB, 1590000, 5001000, 256, 4 * MiB},
    {80, 0, 108, 163 * KiB, 164 * KiB, 1410000, 1215000, 5120, 40 * MiB},
    {86, 0, 84, 99 * KiB, 100 * KiB, 1740000, 6251000, 384, 6 * MiB},
    {87, 0, 16, 163 * KiB, 164 * KiB, 1300000, 3200000, 256, 4 * MiB},
    {89, 0, 142, 99 * KiB, 100 * KiB, 2520000, 9001000, 384, 96 * MiB},
    {90, 'a', 132, 227 * KiB, 228 * KiB, 1980000, 2619000, 5120, 50 * MiB},
    {100, 'a', 148, 227 * KiB, 228 * KiB, 1965000, 3996000, 8192, 126 * MiB},
    {103, 'a', 160, 227 * KiB, 228 * KiB, 1965000, 3996000, 8192, 126 * MiB},
    {120, 'a', 170, 99 * KiB, 100 * KiB, 2407000, 14001000, 512, 96 * MiB},
    {121, 'a', 48, 99 * KiB, 100 * KiB, 2418000, 8533000, 256, 24 * MiB},
};

const char *environment(const char *name, const char *other) {
  const char *text = std::getenv(name);
  return text && *text ? text : std::getenv(other);
}

/// "16G", "512M", "1048576".
bool parseBytes(const char *text, uint64_t &bytes) {
  char *end;
  bytes = std::strtoull(text, &end, 10);
  unsigned shift = 0;
  switch (*end) {
  case 'K':
    shift = 10;
    break;
  case 'M':
    shift = 20;
    break;
  case 'G':
    shift = 30;
    break;
  default:
    break;
  }
  end += shift != 0;
  if (end == text || *end != 0 || bytes > (~0ull >> shift))
    return false;
  bytes <<= shift;
  return true;
}

/// Writes the counters when the process ends.
struct AtExit {
  ~AtExit() {
    if (!Counters::get().writeReport())
      say("cannot write the report to the file that TENON_EMULATOR_REPORT "
          "names");
  }
} atExit;

} // namespace

Driver &Driver::get() {
  static Driver *driver = new Driver;
  return *driver;
}

CUresult Driver::readEnvironment() {
  const char *arch = environment("TENON_EMULATED_ARCH", "TENON_EMULATOR_ARCH");
  if (arch && *arch) {
    const char *digits = std::strncmp(arch, "sm_", 3) == 0 ? arch + 3 : arch;
    char *end;
    unsigned long wanted = std::strtoul(digits, &end, 10);
    auto found =
        std::find_if(std::begin(models), std::end(models),
                     [&](const DeviceModel &m) { return m.arch == wanted; });
    if (found == std::end(models) ||
        (*end != 0 && (end[1] != 0 || (*end != 'a' && *end != 'f')))) {
      say("TENON_EMULATED_ARCH must be sm_75, 80, 86, 87, 89, 90a, 100a, 103a, "
          "120a or 121a, found '" +
          rt::printable(arch) + "'");
      return CUDA_ERROR_NO_DEVICE;
    }
    model = *found;
  } else {
    model = models[1];
  }
  uint64_t bytes = uint64_t(16) << 30;
  const char *memory =
      environment("TENON_EMULATED_MEMORY", "TENON_EMULATOR_MEMORY");
  if (memory && *memory && !parseBytes(memory, bytes)) {
    say("TENON_EMULATED_MEMORY must be a size such as 512M, found '" +
        rt::printable(memory) + "'");
    return CUDA_ERROR_NO_DEVICE;
  }
  DeviceMemory::get().setLimit(bytes);
  checks = Checks::fromEnvironment();
  const char *streams = std::getenv("TENON_EMULATOR_STREAMS");
  putOff = streams && std::strcmp(streams, "late") == 0;
  if (streams && *streams && !putOff && std::strcmp(streams, "now") != 0) {
    say("TENON_EMULATOR_STREAMS must be now or late, found '" +
        rt::printable(streams) + "'");
    return CUDA_ERROR_NO_DEVICE;
  }
  return CUDA_SUCCESS;
}

CUresult Driver::initialise() {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  if (initialised)
    return CUDA_SUCCESS;
#ifdef TN_EMULATOR_AVX2
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    say("this processor lacks AVX2 and FMA, for which the emulator was built");
    return CUDA_ERROR_NO_DEVICE;
  }
#endif
  CUresult result = readEnvironment();
  initialised = result == CUDA_SUCCESS;
  return result;
}

void Driver::fail(CUresult error, const std::string &text) {
  failure = error;
  lastReport = text;
  say(text);
}

void Driver::reset() {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  failure = CUDA_SUCCESS;
  fault = Fault::None;
  lastReport.clear();
}

CUresult emu::checkDriver() {
  Driver &driver = Driver::get();
  return driver.ready() ? driver.sticky() : CUDA_ERROR_NOT_INITIALIZED;
}

TN_EXPORT CUresult cuInit(unsigned flags) {
  return flags == 0 ? Driver::get().initialise() : CUDA_ERROR_INVALID_VALUE;
}

TN_EXPORT CUresult cuDriverGetVersion(int *version) {
  if (!version)
    return CUDA_ERROR_INVALID_VALUE;
  *version = 13000;
  return CUDA_SUCCESS;
}

TN_EXPORT CUresult cuDeviceGetCount(int *count) {
  if (!Driver::get().ready())
    return CUDA_ERROR_NOT_INITIALIZED;
  if (!count)
    return CUDA_ERROR_INVALID_VALUE;
  *count = 1;
  return CUDA_SUCCESS;
}

TN_EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  if (!Driver::get().ready())
    return CUDA_ERROR_NOT_INITIALIZED;
  if (!device)
    return CUDA_ERROR_INVALID_VALUE;
  if (ordinal != 0)
    return CUDA_ERROR_INVALID_DEVICE;
  *device = 0;
  return CUDA_SUCCESS;
}

TN_EXPORT CUresult cuDeviceGetName(char *name, int size, CUdevice device) {
  if (device != 0)
    return CUDA_ERROR_INVALID_DEVICE;
  if (!name || size <= 0)
    return CUDA_ERROR_INVALID_VALUE;
  std::snprintf(name, static_cast<size_t>(size), "Tenon emulator (sm_%u)",
                Driver::get().device().arch);
  return CUDA_SUCCESS;
}

TN_EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
  if (device != 0)
    return CUDA_ERROR_INVALID_DEVICE;
  if (!bytes)
    return CUDA_ERROR_INVALID_VALUE;
  *bytes = DeviceMemory::get().total();
  return CUDA_SUCCESS;
}

TN_EXPORT CUresult cuDeviceGetAttribute(int *value,
                                        CUdevice_attribute attribute,
                                        CUdevice device) {
  const DeviceModel &m = Driver::get().device();
  if (device != 0)
    return CUDA_ERROR_INVALID_DEVICE;
  if (!value)
    return CUDA_ERROR_INVALID_VALUE;
  // Numbers that the runtime does not use have no name there.
  static constexpr int plain[][2] = {
      {2, 1024},      {3, 1024},  {4, 64},       {5, 0x7fffffff}, {6, 65535},
      {7, 65535},     {9, 65536}, {11, 1 << 30}, {12, 65536},     {14, 256},
      {15, 1},        {17, 0},    {18, 0},       {19, 1},         {20, 0},
      {31, 1},        {32, 0},    {33, 0},       {34, 0},         {35, 0},
      {39, 2048},     {40, 2},    {41, 1},       {82, 65536},     {83, 1},
      {86, 1},        {88, 1},    {89, 1},       {95, 1},         {106, 32},
      {107, 1 << 27}, {109, 0},   {111, 1024},   {115, 1}};
  switch (static_cast<int>(attribute)) {
  case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    *value = 1024;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
    *value = 48 << 10;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
    *value = 32;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
    *value = static_cast<int>(m.clockKHz);
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
    *value = static_cast<int>(m.multiprocessors);
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
    *value = static_cast<int>(m.memoryClockKHz);
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
    *value = static_cast<int>(m.memoryBusBits);
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
    *value = static_cast<int>(m.l2Bytes);
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    *value = static_cast<int>(m.arch / 10);
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    *value = static_cast<int>(m.arch % 10);
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
    *value = static_cast<int>(m.sharedPerMultiprocessor);
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
    *value = static_cast<int>(m.sharedPerBlock);
    return CUDA_SUCCESS;
  default:
    break;
  }
  if (attribute == 120) { // clusters
    *value = m.arch >= 90;
    return CUDA_SUCCESS;
  }
  for (const auto &[number, known] : plain)
    if (number == static_cast<int>(attribute)) {
      *value = known;
      return CUDA_SUCCESS;
    }
  return CUDA_ERROR_INVALID_VALUE;
}

TN_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device) {
  if (!Driver::get().ready())
    return CUDA_ERROR_NOT_INITIALIZED;
  if (device != 0)
    return CUDA_ERROR_INVALID_DEVICE;
  if (!out)
    return CUDA_ERROR_INVALID_VALUE;
  *out = &context;
  return CUDA_SUCCESS;
}

TN_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  if (device != 0)
    return CUDA_ERROR_INVALID_DEVICE;
  if (!Counters::get().writeReport())
    say("cannot write the report to the file that TENON_EMULATOR_REPORT names");
  return CUDA_SUCCESS;
}

TN_EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  if (device != 0)
    return CUDA_ERROR_INVALID_DEVICE;
  Driver::get().reset();
  return CUDA_SUCCESS;
}

TN_EXPORT CUresult cuCtxSetCurrent(CUcontext to) {
  if (to != nullptr && to != &context)
    return CUDA_ERROR_INVALID_CONTEXT;
  current = to;
  return CUDA_SUCCESS;
}

TN_EXPORT CUresult cuCtxGetCurrent(CUcontext *out) {
  if (!out)
    return CUDA_ERROR_INVALID_VALUE;
  *out = current;
  return CUDA_SUCCESS;
}

TN_EXPORT CUresult cuCtxSynchronize(void) { return finishAll(); }
