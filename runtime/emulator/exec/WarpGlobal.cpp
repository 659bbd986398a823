//===- WarpGlobal.cpp - global memory as bulk copies touch it -------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/emulator/exec/WarpGlobal.h"
#include "runtime/support/Status.h"

#include <cinttypes>

using namespace tenon;
using namespace tenon::emu;

const Allocation *WarpGlobal::find(Touch touch, uint64_t address,
                                   uint64_t bytes) {
  const AllocationTable &table = *warp.launch->memory;
  const Allocation *found = table.find(address);
  bool writes = touch != Touch::Read;
  bool inside = found && found->holds(address, bytes);
  if (inside && (!writes || found->kind < Allocation::Constant))
    return found;
  std::string text =
      rt::format("%s %" PRIu64 " bytes at global address 0x%" PRIx64 ", ",
                 writes ? "writes" : "reads", bytes, address);
  if (inside)
    warp.fault(op, Fault::WriteToConstant, lane,
               text + "in " + found->describe());
  else
    warp.fault(op, Fault::OutOfBounds, lane,
               text + (found ? "beyond the end of " + found->describe()
                             : table.locate(address)));
  return nullptr;
}

void WarpGlobal::count(uint64_t address, uint64_t bytes) {
  OpStats &stats = warp.stats[op.id];
  stats.bytes += bytes;
  stats.ideal += (bytes + 31) / 32;
  stats.pieces += (address + bytes + 31) / 32 - address / 32;
}

const uint8_t *WarpGlobal::read(uint64_t address, uint64_t bytes) {
  const Allocation *found = find(Touch::Read, address, bytes);
  if (!found)
    return nullptr;
  if (found->tracked && warp.launch->checks.initialised) {
    uint64_t bad = DeviceMemory::get().firstUnwritten(address, bytes);
    if (bad < address + bytes) {
      warp.fault(op, Fault::Uninitialised, lane,
                 rt::format("reads %" PRIu64 " bytes at global address "
                            "0x%" PRIx64 ", of which byte %" PRIu64
                            " was never written, ",
                            bytes, address, bad - address) +
                     found->describe());
      return nullptr;
    }
  }
  count(address, bytes);
  return reinterpret_cast<const uint8_t *>(address);
}

uint8_t *WarpGlobal::write(uint64_t address, uint64_t bytes) {
  const Allocation *found = find(Touch::Write, address, bytes);
  if (!found)
    return nullptr;
  if (found->tracked)
    DeviceMemory::get().markWritten(address, bytes);
  count(address, bytes);
  return reinterpret_cast<uint8_t *>(address);
}
