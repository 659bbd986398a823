//===- DeviceMemory.h - allocations and what was written to them ----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_EMULATOR_CHECK_DEVICEMEMORY_H
#define TENON_RUNTIME_EMULATOR_CHECK_DEVICEMEMORY_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace tenon::emu {

/// One allocation. Addresses of the device are addresses of this process, and
/// none is used twice, so that a stale pointer never points to something else.
struct Allocation {
  enum Kind : uint8_t { Device, PinnedHost, Variable, Constant, Parameters };
  uint64_t start = 0;
  uint64_t bytes = 0;
  uint64_t id = 0;
  Kind kind = Device;
  bool tracked = true; // whether its initialised bytes are known
  std::string name;    // of a variable

  bool holds(uint64_t address, uint64_t size) const {
    return address >= start && size <= bytes && address - start <= bytes - size;
  }
  /// "allocation 7 (256 bytes at 0x7f0000000000)".
  std::string describe() const;
};

/// All allocations at one moment, sorted by address; never changed.
struct AllocationTable {
  std::vector<std::shared_ptr<const Allocation>> sorted;

  /// The one that holds the first byte of `address`, or null.
  const Allocation *find(uint64_t address) const;
  /// "0 bytes before allocation 7 ...": where an address that is in none lies.
  std::string locate(uint64_t address) const;
};

/// The device's memory: a reserved range of addresses, of which pages are made
/// usable as they are allocated, and a shadow that tells which bytes hold a
/// value. Thread-safe but for the shadow, which kernels write as they store.
class DeviceMemory {
public:
  static DeviceMemory &get();

  void setLimit(uint64_t bytes) { limit = bytes; }
  uint64_t total() const { return limit; }
  uint64_t used() const { return inUse; }

  /// 0 when the limit, or this machine's memory, is reached.
  uint64_t allocate(uint64_t bytes, Allocation::Kind kind,
                    std::string name = {});
  /// False if `start` is no allocation's.
  bool release(uint64_t start);

  /// Makes memory of the host known to kernels; all of it counts as written.
  void addHost(void *start, uint64_t bytes);
  bool removeHost(void *start);

  std::shared_ptr<const AllocationTable> table();

  // The shadow. Ranges must lie inside one allocation of the device.

  void markWritten(uint64_t address, uint64_t bytes);
  void markUnwritten(uint64_t address, uint64_t bytes);
  /// The first byte of the range that was never written, or its end.
  uint64_t firstUnwritten(uint64_t address, uint64_t bytes) const;
  void copyWritten(uint64_t to, uint64_t from, uint64_t bytes);

  /// For kernels: a byte a byte, not 0 where it was written...
  uint8_t *shadow(uint64_t address) const {
    return bytesShadow + (address - heap);
  }
  /// ... but for pages written as a whole from the host.
  bool pageWritten(uint64_t address) const {
    return pageShadow[(address - heap) >> pageBits];
  }

  static constexpr unsigned pageBits = 12;

private:
  DeviceMemory();
  void publish();

  mutable std::mutex mutex;
  uint64_t heap = 0, heapEnd = 0, next = 0;
  uint8_t *bytesShadow = nullptr;
  uint8_t *pageShadow = nullptr;
  uint64_t limit = uint64_t(80) << 30;
  uint64_t inUse = 0;
  uint64_t lastId = 0;
  std::shared_ptr<const AllocationTable> current;
};

} // namespace tenon::emu

#endif // TENON_RUNTIME_EMULATOR_CHECK_DEVICEMEMORY_H
