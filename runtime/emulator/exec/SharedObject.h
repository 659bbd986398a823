//===- SharedObject.h - places in shared memory that operations name ------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_EMULATOR_EXEC_SHAREDOBJECT_H
#define TENON_RUNTIME_EMULATOR_EXEC_SHAREDOBJECT_H

#include "runtime/emulator/exec/Access.h"
#include "runtime/emulator/exec/Decoder.h"
#include "runtime/emulator/tensor/Mbarrier.h"

namespace tenon::emu {

/// An address operand, apart from `Op`, which has room for one.
struct Place {
  Ref base = 0;
  int64_t offset = 0;
  bool narrow = false;
  bool generic = false; ///< may lie in any space
};

/// Decodes operand `operand` as a place in `space`.
Place takePlace(Decoder &d, const ptx::Operand &operand, AddressSpace space);
/// The address of a lane.
uint64_t addressAt(const Warp &warp, const Place &place, unsigned lane);
/// The address of a lane as one in the shared windows; false after a finding.
bool sharedAt(Warp &warp, const Op &op, const Place &place, unsigned lane,
              uint32_t &address);

/// An mbarrier object of a block of the cluster.
struct BarrierPlace {
  Block *block = nullptr;
  uint32_t offset = 0; ///< in the block's shared memory

  tensor::Mbarrier load() const;
  void store(const tensor::Mbarrier &barrier) const;
};

/// Finds the object at a shared address, checking bounds, alignment and that it
/// was written before; `touch` is Write for init and inval.
bool findBarrier(Warp &warp, const Op &op, unsigned lane, uint32_t address,
                 Touch touch, BarrierPlace &barrier);

/// What the warp did before is known to those who wait for the object later.
void releaseTo(Warp &warp, const BarrierPlace &barrier);

/// Takes the modifiers of a shared space; generic addresses without any.
AddressSpace takeSharedSpace(Decoder &d);

/// Reports a refusal of the object; true when there is none.
bool accept(Warp &warp, const Op &op, unsigned lane,
            tensor::MbarrierError error);

} // namespace tenon::emu

#endif // TENON_RUNTIME_EMULATOR_EXEC_SHAREDOBJECT_H
