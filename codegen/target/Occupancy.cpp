//===- Occupancy.cpp - what of a kernel a multiprocessor holds ------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/target/Occupancy.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

namespace tenon::codegen {

namespace {

/// What a multiprocessor has.
struct Multiprocessor {
  unsigned arch, warps, blocks, sharedBytes;
  unsigned reserved; ///< shared memory that each block needs for the system
  unsigned unit;     ///< shared memory is given in multiples of this
};

constexpr unsigned kibi = 1024;
constexpr Multiprocessor multiprocessors[] = {
    {75, 32, 16, 64 * kibi, 0, 256},      {80, 64, 32, 164 * kibi, kibi, 128},
    {86, 48, 16, 100 * kibi, kibi, 128},  {87, 48, 16, 164 * kibi, kibi, 128},
    {89, 48, 24, 100 * kibi, kibi, 128},  {90, 64, 32, 228 * kibi, kibi, 128},
    {100, 64, 32, 228 * kibi, kibi, 128}, {103, 64, 32, 228 * kibi, kibi, 128},
    {120, 48, 24, 100 * kibi, kibi, 128}, {121, 48, 24, 100 * kibi, kibi, 128},
};
/// Registers, the same on all: given to warps in multiples of 256.
constexpr unsigned allRegisters = 64 * kibi, registerUnit = 256;

} // namespace

Occupancy occupancyOf(unsigned arch, unsigned threads, unsigned registers,
                      unsigned sharedBytes) {
  const Multiprocessor *found = llvm::find_if(
      multiprocessors, [&](const Multiprocessor &m) { return m.arch == arch; });
  if (found == std::end(multiprocessors) || threads == 0)
    return {};
  unsigned warps = llvm::divideCeil(threads, 32u);
  unsigned blocks = std::min(found->blocks, found->warps / warps);
  if (registers != 0) {
    unsigned ofWarp = llvm::alignTo(registers * 32u, registerUnit);
    blocks = std::min(blocks, allRegisters / ofWarp / warps);
  }
  unsigned shared = llvm::alignTo(sharedBytes + found->reserved, found->unit);
  if (shared != 0)
    blocks = std::min(blocks, found->sharedBytes / shared);
  return {blocks * warps, found->warps};
}

} // namespace tenon::codegen
