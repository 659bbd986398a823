//===- DeviceMemory.cpp - allocations and what was written to them --------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/emulator/check/DeviceMemory.h"

#include "runtime/support/Status.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <sys/mman.h>

using namespace tenon;
using namespace tenon::emu;

namespace {

constexpr uint64_t pageBytes = uint64_t(1) << DeviceMemory::pageBits;

/// Addresses without memory behind them.
void *reserve(uint64_t bytes, int protection) {
  void *start = mmap(nullptr, bytes, protection,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return start == MAP_FAILED ? nullptr : start;
}

uint64_t roundUp(uint64_t bytes) {
  return (bytes + pageBytes - 1) & ~(pageBytes - 1);
}

} // namespace

std::string Allocation::describe() const {
  static constexpr const char *kinds[] = {"allocation", "pinned host memory",
                                          "variable", "constant", "parameters"};
  std::string text = kinds[kind];
  text += name.empty() ? rt::format(" %" PRIu64, id)
                       : " '" + rt::printable(name) + "'";
  return text +
         rt::format(" (%" PRIu64 " bytes at 0x%" PRIx64 ")", bytes, start);
}

const Allocation *AllocationTable::find(uint64_t address) const {
  auto after = std::upper_bound(
      sorted.begin(), sorted.end(), address,
      [](uint64_t a, const auto &entry) { return a < entry->start; });
  if (after == sorted.begin())
    return nullptr;
  const Allocation *found = std::prev(after)->get();
  return found->holds(address, 1) ? found : nullptr;
}

std::string AllocationTable::locate(uint64_t address) const {
  const Allocation *nearest = nullptr;
  uint64_t distance = ~0ull;
  bool after = false;
  for (const auto &entry : sorted) {
    uint64_t end = entry->start + entry->bytes;
    uint64_t away = address < entry->start ? entry->start - address
                    : address < end        ? 0
                                           : address - end;
    if (away < distance) {
      nearest = entry.get();
      distance = away;
      after = address >= end;
    }
  }
  if (!nearest || distance > (uint64_t(1) << 30))
    return "which is no device address";
  if (distance == 0 && !after)
    return "in " + nearest->describe();
  return rt::format("%" PRIu64 " bytes %s ", distance,
                    after ? "after the end of" : "before") +
         nearest->describe();
}

DeviceMemory &DeviceMemory::get() {
  static DeviceMemory *memory = new DeviceMemory;
  return *memory;
}

DeviceMemory::DeviceMemory() : current(std::make_shared<AllocationTable>()) {
  for (uint64_t bytes = uint64_t(1) << 41; bytes >= (uint64_t(1) << 32);
       bytes /= 2) {
    void *space = reserve(bytes, PROT_NONE);
    void *shadows = reserve(bytes, PROT_READ | PROT_WRITE);
    void *pages = reserve(bytes >> pageBits, PROT_READ | PROT_WRITE);
    if (space && shadows && pages) {
      heap = next = reinterpret_cast<uint64_t>(space);
      heapEnd = heap + bytes;
      bytesShadow = static_cast<uint8_t *>(shadows);
      pageShadow = static_cast<uint8_t *>(pages);
      return;
    }
    if (space)
      munmap(space, bytes);
    if (shadows)
      munmap(shadows, bytes);
    if (pages)
      munmap(pages, bytes >> pageBits);
  }
}

void DeviceMemory::publish() {
  auto changed = std::make_shared<AllocationTable>(*current);
  std::sort(changed->sorted.begin(), changed->sorted.end(),
            [](const auto &a, const auto &b) { return a->start < b->start; });
  current = std::move(changed);
}

uint64_t DeviceMemory::allocate(uint64_t bytes, Allocation::Kind kind,
                                std::string name) {
  std::lock_guard<std::mutex> lock(mutex);
  if (bytes > limit || inUse > limit - bytes)
    return 0;
  // A page between allocations catches what the table does not.
  uint64_t span = roundUp(bytes) + pageBytes;
  if (span > heapEnd - next)
    return 0;
  auto *start = reinterpret_cast<void *>(next);
  if (mprotect(start, span - pageBytes, PROT_READ | PROT_WRITE) != 0)
    return 0;
  auto made = std::make_shared<Allocation>();
  made->start = next;
  made->bytes = bytes;
  made->id = ++lastId;
  made->kind = kind;
  made->tracked = kind == Allocation::Device || kind == Allocation::Variable;
  made->name = std::move(name);
  next += span;
  inUse += bytes;
  auto changed = std::make_shared<AllocationTable>(*current);
  changed->sorted.push_back(made);
  current = std::move(changed);
  publish();
  return made->start;
}

bool DeviceMemory::release(uint64_t start) {
  std::lock_guard<std::mutex> lock(mutex);
  auto changed = std::make_shared<AllocationTable>(*current);
  auto found = std::find_if(
      changed->sorted.begin(), changed->sorted.end(), [&](const auto &entry) {
        return entry->start == start && entry->kind != Allocation::PinnedHost;
      });
  if (found == changed->sorted.end())
    return false;
  uint64_t bytes = (*found)->bytes, span = roundUp(bytes);
  inUse -= bytes;
  changed->sorted.erase(found);
  current = std::move(changed);
  // Gives the memory back and makes every further access a fault.
  if (span != 0) {
    mmap(reinterpret_cast<void *>(start), span, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    madvise(shadow(start), span, MADV_DONTNEED);
  }
  return true;
}

void DeviceMemory::addHost(void *start, uint64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex);
  auto made = std::make_shared<Allocation>();
  made->start = reinterpret_cast<uint64_t>(start);
  made->bytes = bytes;
  made->id = ++lastId;
  made->kind = Allocation::PinnedHost;
  made->tracked = false;
  auto changed = std::make_shared<AllocationTable>(*current);
  changed->sorted.push_back(made);
  current = std::move(changed);
  publish();
}

bool DeviceMemory::removeHost(void *start) {
  std::lock_guard<std::mutex> lock(mutex);
  auto changed = std::make_shared<AllocationTable>(*current);
  auto address = reinterpret_cast<uint64_t>(start);
  bool erased =
      std::erase_if(changed->sorted, [&](const auto &entry) {
        return entry->start == address && entry->kind == Allocation::PinnedHost;
      }) != 0;
  current = std::move(changed);
  return erased;
}

std::shared_ptr<const AllocationTable> DeviceMemory::table() {
  std::lock_guard<std::mutex> lock(mutex);
  return current;
}

void DeviceMemory::markWritten(uint64_t address, uint64_t bytes) {
  uint64_t end = address + bytes;
  while (address != end) {
    uint64_t pageEnd = std::min(end, (address | (pageBytes - 1)) + 1);
    if (pageEnd - address == pageBytes)
      pageShadow[(address - heap) >> pageBits] = 1;
    else if (!pageWritten(address))
      std::memset(shadow(address), 1, pageEnd - address);
    address = pageEnd;
  }
}

void DeviceMemory::markUnwritten(uint64_t address, uint64_t bytes) {
  uint64_t end = address + bytes;
  while (address != end) {
    uint64_t pageStart = address & ~(pageBytes - 1);
    uint64_t pageEnd = std::min(end, pageStart + pageBytes);
    uint8_t &flag = pageShadow[(address - heap) >> pageBits];
    if (flag)
      std::memset(shadow(pageStart), 1, pageBytes);
    flag = 0;
    std::memset(shadow(address), 0, pageEnd - address);
    address = pageEnd;
  }
}

uint64_t DeviceMemory::firstUnwritten(uint64_t address, uint64_t bytes) const {
  uint64_t end = address + bytes;
  while (address != end) {
    uint64_t pageEnd = std::min(end, (address | (pageBytes - 1)) + 1);
    if (!pageWritten(address)) {
      const void *zero = std::memchr(shadow(address), 0, pageEnd - address);
      if (zero)
        return address + (static_cast<const uint8_t *>(zero) - shadow(address));
    }
    address = pageEnd;
  }
  return end;
}

void DeviceMemory::copyWritten(uint64_t to, uint64_t from, uint64_t bytes) {
  uint64_t end = from + bytes;
  while (from != end) {
    uint64_t good = firstUnwritten(from, end - from);
    if (good != from)
      markWritten(to, good - from);
    to += good - from;
    from = good;
    if (from == end)
      return;
    markUnwritten(to++, 1);
    ++from;
  }
}
