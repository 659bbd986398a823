//===- Parser.h - from PTX text to its data -------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_EMULATOR_PTX_PARSER_H
#define TENON_RUNTIME_EMULATOR_PTX_PARSER_H

#include "runtime/emulator/ptx/Ptx.h"
#include "runtime/support/Status.h"

namespace tenon::emu::ptx {

/// Parses a whole PTX text, which nobody need have checked before. Errors name
/// the line: "line 12: expected ';', found 'foo'".
rt::Result<Module> parse(std::string_view text);

} // namespace tenon::emu::ptx

#endif // TENON_RUNTIME_EMULATOR_PTX_PARSER_H
