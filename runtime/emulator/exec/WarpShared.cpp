//===- WarpShared.cpp - shared memory as the tensor instructions see it --===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/emulator/exec/WarpShared.h"

#include "runtime/emulator/exec/Access.h"
#include "runtime/support/Status.h"

#include <algorithm>

using namespace tenon;
using namespace tenon::emu;

bool WarpShared::access(tensor::AccessKind kind, tensor::Proxy proxy,
                        std::span<const tensor::LaneAccess> accesses) {
  Touch touch = kind == tensor::AccessKind::Read ? Touch::Read : Touch::Write;
  const Checks &checks = warp.launch->checks;
  bool races = checks.races && &block == warp.block;
  for (const tensor::LaneAccess &a : accesses) {
    unsigned lane = std::min(a.lane, 31u);
    bool power = (a.bytes & (a.bytes - 1)) == 0;
    uint32_t align = power ? std::min(a.bytes, 16u) : 16;
    if (align != 0 && a.address % align != 0) {
      warp.fault(op, Fault::Misaligned, lane,
                 rt::format("uses shared address 0x%x, which is not aligned to "
                            "%u bytes",
                            a.address, align));
      return false;
    }
    uint32_t offset = a.address - origin_;
    if (a.address < origin_ || offset < sharedStart ||
        uint64_t(offset) + a.bytes > block.sharedEnd) {
      warp.fault(op, Fault::OutOfBounds, lane,
                 rt::format("uses %u bytes at shared address 0x%x, outside the "
                            "block's [0x%x, 0x%x)",
                            a.bytes, a.address, sharedStart, block.sharedEnd));
      return false;
    }
    if (!checks.initialised && !checks.races)
      continue;
    bool isAsync = proxy == tensor::Proxy::Async;
    SharedShadow &shadow = block.shadow;
    SharedShadow::Problem problem =
        touch == Touch::Read
            ? (isAsync ? shadow.asyncRead(offset, a.bytes, warp.index, races)
                       : shadow.read(offset, a.bytes, warp.index, races))
            : (isAsync ? shadow.asyncWrite(offset, a.bytes, warp.index, races)
                       : shadow.write(offset, a.bytes, warp.index, races));
    if (!judge(warp, op, lane, touch, a.bytes, problem))
      return false;
  }
  // Rows of a matrix are served together.
  bool together = proxy == tensor::Proxy::Generic || accesses.size() == 8;
  if (together && accesses.size() <= 32 && !accesses.empty()) {
    uint64_t address[32];
    for (size_t i = 0; i != accesses.size(); ++i)
      address[i] = accesses[i].address;
    // One group of the hardware's, counted as lanes that come together.
    unsigned bytes = accesses[0].bytes;
    uint32_t mask = accesses.size() == 32 ? ~0u : (1u << accesses.size()) - 1;
    countBanks(warp, op, mask, bytes, address);
  }
  return true;
}

bool emu::needsWholeWarp(Warp &warp, const Op &op, uint32_t mask) {
  if (mask == ~0u)
    return true;
  warp.fault(op, Fault::BadMask, __builtin_ctz(mask),
             rt::format("executes an instruction of the whole warp with only "
                        "the lanes 0x%08x",
                        mask));
  return false;
}
