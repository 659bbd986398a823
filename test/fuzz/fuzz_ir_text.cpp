//===- fuzz_ir_text.cpp - any bytes as a .tn file ------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Any bytes parse or give an error. What parses prints, parses again and
/// prints the same; the verifier, too, survives it.
///
//===----------------------------------------------------------------------===//

#include "ir/text/Text.h"
#include "ir/verify/Verify.h"
#include <cstdlib>

using namespace tenon::ir;

namespace {

std::string str(const Module &module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  PrintOptions options;
  options.maxInlineElements = UINT64_MAX; // there is no side file here
  print(module, os, options);
  return text;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  llvm::Expected<ParsedFile> file = parse(llvm::MemoryBufferRef(text, "fuzz"));
  if (!file) {
    llvm::consumeError(file.takeError());
    return 0;
  }
  llvm::consumeError(verify(*file->module));
  std::string first = str(*file->module);
  llvm::Expected<ParsedFile> again =
      parse(llvm::MemoryBufferRef(first, "again"));
  if (!again) {
    llvm::errs() << llvm::toString(again.takeError()) << '\n' << first;
    std::abort();
  }
  if (str(*again->module) != first)
    std::abort();
  return 0;
}
