//===- TestMemory.h - memory for tests of the tensor instructions ---------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_TEST_EMULATOR_TENSOR_TESTMEMORY_H
#define TENON_TEST_EMULATOR_TENSOR_TESTMEMORY_H

#include "runtime/emulator/tensor/Memory.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace tenon::emu::tensor {

/// Shared memory that refuses what lies outside or is misaligned, and counts
/// wavefronts: how often the 32 banks of four bytes must be visited for each
/// group of accesses.
class TestShared : public SharedMemory {
public:
  explicit TestShared(uint32_t size, uint32_t origin = 0)
      : SharedMemory(nullptr, origin), storage(size) {
    bytes_ = storage.data();
  }

  bool access(AccessKind kind, Proxy proxy,
              std::span<const LaneAccess> accesses) override {
    std::array<std::vector<uint32_t>, 32> banks;
    for (const LaneAccess &a : accesses) {
      if (a.address < origin_ ||
          uint64_t(a.address) + a.bytes > origin_ + storage.size())
        return false;
      if (a.address % std::min(a.bytes, 16u) != 0)
        return false;
      last = {kind, proxy, a};
      for (uint32_t word = a.address / 4; word < (a.address + a.bytes) / 4;
           ++word) {
        std::vector<uint32_t> &bank = banks[word % 32];
        if (std::find(bank.begin(), bank.end(), word) == bank.end())
          bank.push_back(word);
      }
    }
    size_t most = 0;
    for (const auto &bank : banks)
      most = std::max(most, bank.size());
    wavefronts += unsigned(most);
    ++groups;
    return true;
  }

  template <typename T> void put(uint32_t address, T value) {
    std::memcpy(at(address), &value, sizeof(T));
  }
  template <typename T> T get(uint32_t address) const {
    T value;
    std::memcpy(&value, at(address), sizeof(T));
    return value;
  }

  struct Seen {
    AccessKind kind;
    Proxy proxy;
    LaneAccess access;
  };
  std::vector<uint8_t> storage;
  Seen last = {};
  unsigned wavefronts = 0;
  unsigned groups = 0;
};

/// Global memory that begins at a fixed address and refuses what lies outside.
class TestGlobal : public GlobalMemory {
public:
  static constexpr uint64_t base = 0x7f0000000000;
  explicit TestGlobal(size_t size) : storage(size) {}

  const uint8_t *read(uint64_t address, uint64_t bytes) override {
    reads += bytes;
    return at(address, bytes);
  }
  uint8_t *write(uint64_t address, uint64_t bytes) override {
    return at(address, bytes);
  }

  std::vector<uint8_t> storage;
  uint64_t reads = 0;

private:
  uint8_t *at(uint64_t address, uint64_t bytes) {
    if (address < base || bytes > storage.size() ||
        address - base > storage.size() - bytes)
      return nullptr;
    return storage.data() + (address - base);
  }
};

/// The registers of a fragment.
template <typename Word> struct Fragment {
  explicit Fragment(unsigned count) : words(count) {
    for (auto &reg : words)
      pointers.push_back(reg.data());
  }
  Word *const *regs() { return pointers.data(); }
  const Word *const *in() { return pointers.data(); }

  std::vector<std::array<Word, lanes>> words;
  std::vector<Word *> pointers;
};

/// A generator of its own, the same everywhere.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed * 0x9e3779b97f4a7c15 + 1) {}
  uint32_t next() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return uint32_t(state >> 24);
  }
  /// From -1 to 1.
  double unit() { return double(int32_t(next())) * 0x1p-31; }

private:
  uint64_t state;
};

} // namespace tenon::emu::tensor

#endif // TENON_TEST_EMULATOR_TENSOR_TESTMEMORY_H
