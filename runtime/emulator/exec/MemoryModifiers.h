//===- MemoryModifiers.h - what memory instructions have in common -------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TENON_RUNTIME_EMULATOR_EXEC_MEMORYMODIFIERS_H
#define TENON_RUNTIME_EMULATOR_EXEC_MEMORYMODIFIERS_H

#include "runtime/emulator/exec/Decoder.h"

namespace tenon::emu {

/// Modifiers between the opcode of ld, st, atom or red and its operation or
/// type. Cache hints are allowed and mean nothing here.
struct MemoryModifiers {
  AddressSpace space = AddressSpace::Generic;
  bool synchronizes = false;
  unsigned vector = 1;
};

MemoryModifiers takeMemoryModifiers(Decoder &d);

} // namespace tenon::emu

#endif // TENON_RUNTIME_EMULATOR_EXEC_MEMORYMODIFIERS_H
