//===- Memory.h - how tensor instructions touch memory --------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_EMULATOR_TENSOR_MEMORY_H
#define TENON_RUNTIME_EMULATOR_TENSOR_MEMORY_H

#include <cstdint>
#include <span>

namespace tenon::emu::tensor {

/// Lanes of a warp. A warp-wide 32-bit register is `uint32_t[lanes]`.
inline constexpr unsigned lanes = 32;

/// A fragment of an instruction: `regs[i]` points to the 32 lanes of its i-th
/// register. Results are written after all operands were read, so destination
/// and source registers may be the same.
using RegsIn = const uint32_t *const *;
using RegsOut = uint32_t *const *;
using Regs64In = const uint64_t *const *;
using Regs64Out = uint64_t *const *;

enum class AccessKind : uint8_t { Read, Write };

/// Through which path memory is reached. Data written through one is seen
/// through the other only after a `fence.proxy.async`.
enum class Proxy : uint8_t { Generic, Async };

/// What one lane touches. Accesses of the asynchronous proxy belong to no
/// lane (`lane` 0) and may be longer than 16 bytes.
struct LaneAccess {
  uint32_t address;
  uint32_t bytes;
  uint32_t lane;
};

/// Shared memory of one block, as the instructions see it.
class SharedMemory {
public:
  virtual ~SharedMemory() = default;

  /// Announces accesses that the hardware serves together (the eight rows of
  /// a matrix, the rows of a box), before the bytes are touched. False when a
  /// check refused them: the instruction then has no effect at all, and the
  /// implementation has reported why. Alignment is checked by the
  /// implementation too: every access here must be aligned to `bytes` if that
  /// is a power of two up to 16, else to 16.
  virtual bool access(AccessKind kind, Proxy proxy,
                      std::span<const LaneAccess> accesses) = 0;

  /// Host address of a shared address whose access was granted.
  uint8_t *at(uint32_t address) const { return bytes_ + (address - origin_); }

protected:
  SharedMemory(uint8_t *bytes, uint32_t origin)
      : bytes_(bytes), origin_(origin) {}
  uint8_t *bytes_;
  uint32_t origin_;
};

/// Global memory, as bulk copies see it.
class GlobalMemory {
public:
  virtual ~GlobalMemory() = default;
  /// Host address of `bytes` readable bytes; null when a check refused it.
  virtual const uint8_t *read(uint64_t address, uint64_t bytes) = 0;
  /// Host address of `bytes` writable bytes; null when a check refused it.
  virtual uint8_t *write(uint64_t address, uint64_t bytes) = 0;
};

} // namespace tenon::emu::tensor

#endif // TENON_RUNTIME_EMULATOR_TENSOR_MEMORY_H
