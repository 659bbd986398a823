//===- WarpShared.h - shared memory as the tensor instructions see it ----===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TENON_RUNTIME_EMULATOR_EXEC_WARPSHARED_H
#define TENON_RUNTIME_EMULATOR_EXEC_WARPSHARED_H

#include "runtime/emulator/exec/State.h"
#include "runtime/emulator/tensor/Memory.h"

namespace tenon::emu {

/// Shared memory of one block of the cluster for an operation of `warp`, with
/// all checks and counters.
class WarpShared final : public tensor::SharedMemory {
public:
  /// `origin` is the address of the block's byte 0: that of its window, or 0
  /// where addresses are relative to the block.
  WarpShared(Warp &warp, const Op &op, Block &block, uint32_t origin)
      : SharedMemory(reinterpret_cast<uint8_t *>(block.shared.get()), origin),
        warp(warp), op(op), block(block) {}
  WarpShared(Warp &warp, const Op &op, Block &block)
      : WarpShared(warp, op, block, block.window()) {}
  WarpShared(Warp &warp, const Op &op) : WarpShared(warp, op, *warp.block) {}

  bool access(tensor::AccessKind kind, tensor::Proxy proxy,
              std::span<const tensor::LaneAccess> accesses) override;

private:
  Warp &warp;
  const Op &op;
  Block &block;
};

/// Reports lanes that are missing at an instruction that needs all 32.
bool needsWholeWarp(Warp &warp, const Op &op, uint32_t mask);

} // namespace tenon::emu

#endif // TENON_RUNTIME_EMULATOR_EXEC_WARPSHARED_H
