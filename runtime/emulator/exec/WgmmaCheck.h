//===- WgmmaCheck.h - registers of wgmma used too early -------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_EMULATOR_EXEC_WGMMACHECK_H
#define TENON_RUNTIME_EMULATOR_EXEC_WGMMACHECK_H

#include "runtime/emulator/exec/Program.h"

namespace tenon::emu {

/// Finds instructions of a decoded function, one operation each and not yet
/// laid out, that use registers of a wgmma.mma_async which may still run: an
/// accumulator, or a fragment of A, that no wgmma.wait_group has waited for on
/// some path; and wgmma.mma_async whose registers were computed after the last
/// wgmma.fence. The operations report themselves when they are executed.
///
/// A mov is no use: the compiler copies the registers of inline assembly as it
/// likes, and the assembler joins them again.
void checkWgmma(Code &code);

} // namespace tenon::emu

#endif // TENON_RUNTIME_EMULATOR_EXEC_WGMMACHECK_H
