//===- Text.h - reading and writing the text form ------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_IR_TEXT_TEXT_H
#define TENON_IR_TEXT_TEXT_H

#include "ir/Op.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBufferRef.h"

namespace tenon::ir {

struct PrintOptions {
  bool locations = true;
  /// Dense constants with more elements print as `dense<"name">` (their bytes
  /// go to a side file or are lost, see writeConstants).
  uint64_t maxInlineElements = 16;
};

/// Prints a module (.tn). What is printed parses back to an equal module.
void print(const Module &module, llvm::raw_ostream &os,
           const PrintOptions &options = {});
void print(const Op &op, llvm::raw_ostream &os,
           const PrintOptions &options = {});

/// A `// run:` line: @f(argument, ...) ~ ref, rtol = 1e-5, atol = 1e-6 -- or
/// == [expected, ...].
struct RunLine {
  std::string text;
  unsigned line;
};

struct ParsedFile {
  std::unique_ptr<Module> module;
  std::vector<RunLine> runLines;
};

/// Looks up the payload of `dense<"name">`; null when unknown.
using ConstantLookup = llvm::function_ref<ConstantRef(llvm::StringRef name)>;

/// Parses a .tn file. Types in the text are checked against inference. Errors
/// carry `file:line:column: error: ...`.
llvm::Expected<ParsedFile> parse(llvm::MemoryBufferRef buffer,
                                 ConstantLookup lookup = nullptr);

} // namespace tenon::ir

#endif // TENON_IR_TEXT_TEXT_H
