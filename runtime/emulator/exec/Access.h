//===- Access.h - checked accesses to memory -----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TENON_RUNTIME_EMULATOR_EXEC_ACCESS_H
#define TENON_RUNTIME_EMULATOR_EXEC_ACCESS_H

#include "runtime/emulator/exec/State.h"

namespace tenon::emu {

enum class Touch : uint8_t { Read, Write, Atomic };

/// Where the lanes of a memory operation find their bytes in this process.
struct Access {
  char *at[32];
  bool dense = false; // all 32 lanes, one after the other without gaps
};

/// Checks the access of each lane of `mask` to `bytes` bytes at the address
/// that `op` gives it, counts it, and finds the bytes. False after a finding.
bool resolve(Warp &warp, const Op &op, uint32_t mask, unsigned bytes,
             Touch touch, Access &access);

/// The same for addresses that are already known, in one space.
bool resolveGlobal(Warp &warp, const Op &op, uint32_t mask, unsigned bytes,
                   Touch touch, const uint64_t *address, Access &access);
bool resolveShared(Warp &warp, const Op &op, uint32_t mask, unsigned bytes,
                   Touch touch, const uint64_t *address, Access &access);

/// The addresses of an operation's lanes.
void addressesOf(const Warp &warp, const Op &op, uint64_t *address);

/// The block of the cluster whose shared memory holds `address`, if the
/// `bytes` bytes there exist; else null.
Block *sharedOwner(const Warp &warp, uint64_t address, uint64_t bytes);

/// Reports what the shadow of shared memory has found, if anything.
bool judge(Warp &warp, const Op &op, unsigned lane, Touch touch, unsigned bytes,
           const SharedShadow::Problem &problem);

/// Wavefronts that shared memory needs for the lanes' addresses beside the
/// least possible; both are added to the counters of `op`.
void countBanks(Warp &warp, const Op &op, uint32_t mask, unsigned bytes,
                const uint64_t *address);
/// The same for global memory's sectors.
void countSectors(Warp &warp, const Op &op, uint32_t mask, unsigned bytes,
                  const uint64_t *address);

} // namespace tenon::emu

#endif // TENON_RUNTIME_EMULATOR_EXEC_ACCESS_H
