//===- Control.h - operations that the decoder itself adds ----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_EMULATOR_EXEC_CONTROL_H
#define TENON_RUNTIME_EMULATOR_EXEC_CONTROL_H

#include "runtime/emulator/exec/Program.h"

namespace tenon::emu {

/// Where lanes that took another branch continue.
Op joinOp();
/// The end of a kernel or of another function.
Op endOp(bool entry);

/// printf and the like (Builtins.cpp): `arguments` are offsets of the
/// arguments in local memory, `result` of the result.
bool runBuiltin(Warp &warp, const Op &op, uint32_t mask, const CallSite &site);

} // namespace tenon::emu

#endif // TENON_RUNTIME_EMULATOR_EXEC_CONTROL_H
