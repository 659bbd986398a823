//===- WarpGlobal.h - global memory as bulk copies touch it ---------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_EMULATOR_EXEC_WARPGLOBAL_H
#define TENON_RUNTIME_EMULATOR_EXEC_WARPGLOBAL_H

#include "runtime/emulator/exec/Access.h"
#include "runtime/emulator/tensor/Memory.h"

namespace tenon::emu {

/// Global memory for an operation that lane `lane` of a warp issues, with all
/// checks and counters.
class WarpGlobal final : public tensor::GlobalMemory {
public:
  WarpGlobal(Warp &warp, const Op &op, unsigned lane)
      : warp(warp), op(op), lane(lane) {}

  const uint8_t *read(uint64_t address, uint64_t bytes) override;
  uint8_t *write(uint64_t address, uint64_t bytes) override;

private:
  const Allocation *find(Touch touch, uint64_t address, uint64_t bytes);
  void count(uint64_t address, uint64_t bytes);

  Warp &warp;
  const Op &op;
  unsigned lane;
};

} // namespace tenon::emu

#endif // TENON_RUNTIME_EMULATOR_EXEC_WARPGLOBAL_H
