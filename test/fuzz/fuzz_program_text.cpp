//===- fuzz_program_text.cpp - any bytes as a .tnk file ------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Any bytes parse or give an error. What parses prints, parses again and
/// prints the same.
///
//===----------------------------------------------------------------------===//

#include "ir/kernel/Program.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>

using namespace tenon;

namespace {

std::string str(const kernel::Program &program) {
  std::string text;
  llvm::raw_string_ostream os(text);
  kernel::print(program, os);
  return text;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  llvm::Expected<kernel::Program> program =
      kernel::parse(llvm::MemoryBufferRef(text, "fuzz"));
  if (!program) {
    llvm::consumeError(program.takeError());
    return 0;
  }
  std::string first = str(*program);
  llvm::Expected<kernel::Program> again =
      kernel::parse(llvm::MemoryBufferRef(first, "again"));
  if (!again) {
    llvm::errs() << llvm::toString(again.takeError()) << '\n' << first;
    std::abort();
  }
  if (str(*again) != first)
    std::abort();
  return 0;
}
