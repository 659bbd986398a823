//===- Quote.h - quoted strings in the text forms ------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_IR_SUPPORT_QUOTE_H
#define TENON_IR_SUPPORT_QUOTE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"
#include <optional>
#include <string>

namespace tenon {

/// Whether \p text is `[A-Za-z_][A-Za-z0-9_]*`.
bool isIdentifier(llvm::StringRef text);
/// Prints \p text in double quotes. Escapes: `\"`, `\\`, `\n`, `\t`, `\xHH` for
/// other bytes outside printable ASCII, so that any bytes come back unchanged.
void printQuoted(llvm::raw_ostream &os, llvm::StringRef text);
/// Prints \p text bare if it is an identifier, else quoted.
void printIdentifier(llvm::raw_ostream &os, llvm::StringRef text);
/// Takes a quoted string off the front of \p text; nullopt (and \p text
/// unchanged) when it does not start with a complete, well-formed one.
std::optional<std::string> consumeQuoted(llvm::StringRef &text);

} // namespace tenon

#endif // TENON_IR_SUPPORT_QUOTE_H
