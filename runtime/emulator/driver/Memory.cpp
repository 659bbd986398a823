//===- Memory.cpp - allocations and copies -------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/emulator/driver/Driver.h"
#include "runtime/support/Status.h"

#include <cinttypes>
#include <cstdlib>
#include <cstring>

using namespace tenon;
using namespace tenon::emu;

namespace {

constexpr uint64_t pageBytes = 4096;

/// The allocation that holds the whole range; reports where there is none, as
/// a copy out of bounds is as wrong as a kernel's access.
const Allocation *rangeOf(const AllocationTable &table, CUdeviceptr address,
                          size_t bytes, const char *what) {
  const Allocation *found = table.find(address);
  if (found && found->holds(address, bytes))
    return found;
  say(rt::format("%s of %zu bytes at 0x%" PRIx64 ", %s", what, bytes, address,
                 found ? ("beyond the end of " + found->describe()).c_str()
                       : table.locate(address).c_str()));
  return nullptr;
}

bool tracked(const Allocation *allocation) { return allocation->tracked; }

CUresult copyIn(CUdeviceptr to, const void *from, size_t bytes) {
  auto table = DeviceMemory::get().table();
  const Allocation *target = rangeOf(*table, to, bytes, "copy to the device");
  if (!target)
    return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(reinterpret_cast<void *>(to), from, bytes);
  if (tracked(target))
    DeviceMemory::get().markWritten(to, bytes);
  return CUDA_SUCCESS;
}

CUresult copyOut(void *to, CUdeviceptr from, size_t bytes) {
  auto table = DeviceMemory::get().table();
  if (!rangeOf(*table, from, bytes, "copy from the device"))
    return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(to, reinterpret_cast<const void *>(from), bytes);
  return CUDA_SUCCESS;
}

CUresult copyWithin(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  auto table = DeviceMemory::get().table();
  const Allocation *target = rangeOf(*table, to, bytes, "copy to the device");
  const Allocation *source =
      rangeOf(*table, from, bytes, "copy from the device");
  if (!target || !source)
    return CUDA_ERROR_INVALID_VALUE;
  std::memmove(reinterpret_cast<void *>(to),
               reinterpret_cast<const void *>(from), bytes);
  if (tracked(target) && tracked(source))
    DeviceMemory::get().copyWritten(to, from, bytes);
  else if (tracked(target))
    DeviceMemory::get().markWritten(to, bytes);
  return CUDA_SUCCESS;
}

/// Fills with a value of 1, 2 or 4 bytes.
template <typename T> CUresult fill(CUdeviceptr to, T value, size_t count) {
  auto table = DeviceMemory::get().table();
  if (count > SIZE_MAX / sizeof(T) || to % sizeof(T) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  size_t bytes = count * sizeof(T);
  const Allocation *target = rangeOf(*table, to, bytes, "memset");
  if (!target)
    return CUDA_ERROR_INVALID_VALUE;
  auto *at = reinterpret_cast<T *>(to);
  for (size_t i = 0; i != count; ++i)
    at[i] = value;
  if (tracked(target))
    DeviceMemory::get().markWritten(to, bytes);
  return CUDA_SUCCESS;
}

CUresult hostAllocation(void **pointer, size_t bytes) {
  if (CUresult error = checkDriver())
    return error;
  if (!pointer || bytes == 0 || bytes > (size_t(1) << 40))
    return CUDA_ERROR_INVALID_VALUE;
  void *start =
      std::aligned_alloc(pageBytes, (bytes + pageBytes - 1) & ~(pageBytes - 1));
  if (!start)
    return CUDA_ERROR_OUT_OF_MEMORY;
  DeviceMemory::get().addHost(start, bytes);
  *pointer = start;
  return CUDA_SUCCESS;
}

} // namespace

TN_EXPORT CUresult cuMemGetInfo_v2(size_t *free, size_t *total) {
  if (CUresult error = checkDriver())
    return error;
  DeviceMemory &memory = DeviceMemory::get();
  if (free)
    *free = memory.total() - memory.used();
  if (total)
    *total = memory.total();
  return CUDA_SUCCESS;
}

TN_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
  if (CUresult error = checkDriver())
    return error;
  if (!pointer || bytes == 0)
    return CUDA_ERROR_INVALID_VALUE;
  *pointer = DeviceMemory::get().allocate(bytes, Allocation::Device);
  return *pointer ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

TN_EXPORT CUresult cuMemFree_v2(CUdeviceptr pointer) {
  if (pointer == 0)
    return CUDA_SUCCESS;
  (void)finishAll();
  std::lock_guard<std::recursive_mutex> lock(Driver::get().mutex);
  return DeviceMemory::get().release(pointer) ? CUDA_SUCCESS
                                              : CUDA_ERROR_INVALID_VALUE;
}

TN_EXPORT CUresult cuMemHostAlloc(void **pointer, size_t bytes, unsigned) {
  return hostAllocation(pointer, bytes);
}
TN_EXPORT CUresult cuMemAllocHost_v2(void **pointer, size_t bytes) {
  return hostAllocation(pointer, bytes);
}

TN_EXPORT CUresult cuMemFreeHost(void *pointer) {
  (void)finishAll();
  if (!pointer || !DeviceMemory::get().removeHost(pointer))
    return CUDA_ERROR_INVALID_VALUE;
  std::free(pointer);
  return CUDA_SUCCESS;
}

TN_EXPORT CUresult cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned) {
  if (!pointer || bytes == 0)
    return CUDA_ERROR_INVALID_VALUE;
  DeviceMemory::get().addHost(pointer, bytes);
  return CUDA_SUCCESS;
}
TN_EXPORT CUresult cuMemHostUnregister(void *pointer) {
  return DeviceMemory::get().removeHost(pointer) ? CUDA_SUCCESS
                                                 : CUDA_ERROR_INVALID_VALUE;
}
TN_EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *host,
                                                unsigned) {
  if (!out)
    return CUDA_ERROR_INVALID_VALUE;
  *out = reinterpret_cast<CUdeviceptr>(host);
  return CUDA_SUCCESS;
}

TN_EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from,
                                        size_t bytes, CUstream stream) {
  if (bytes == 0)
    return checkDriver();
  if (!from)
    return CUDA_ERROR_INVALID_VALUE;
  return submit(stream, [=] { return copyIn(to, from, bytes); });
}
TN_EXPORT CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from,
                                        size_t bytes, CUstream stream) {
  if (bytes == 0)
    return checkDriver();
  if (!to)
    return CUDA_ERROR_INVALID_VALUE;
  return submit(stream, [=] { return copyOut(to, from, bytes); });
}
TN_EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from,
                                        size_t bytes, CUstream stream) {
  if (bytes == 0)
    return checkDriver();
  return submit(stream, [=] { return copyWithin(to, from, bytes); });
}
TN_EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value,
                                   size_t bytes, CUstream stream) {
  if (bytes == 0)
    return checkDriver();
  return submit(stream, [=] { return fill<uint8_t>(to, value, bytes); });
}
TN_EXPORT CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value,
                                    size_t count, CUstream stream) {
  if (count == 0)
    return checkDriver();
  return submit(stream, [=] { return fill<uint32_t>(to, value, count); });
}

TN_EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from,
                                   size_t bytes) {
  return cuMemcpyHtoDAsync_v2(to, from, bytes, nullptr);
}
TN_EXPORT CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) {
  return cuMemcpyDtoHAsync_v2(to, from, bytes, nullptr);
}
TN_EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from,
                                   size_t bytes) {
  return cuMemcpyDtoDAsync_v2(to, from, bytes, nullptr);
}
TN_EXPORT CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value,
                                 size_t bytes) {
  return cuMemsetD8Async(to, value, bytes, nullptr);
}
TN_EXPORT CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value,
                                  size_t count) {
  return cuMemsetD32Async(to, value, count, nullptr);
}
