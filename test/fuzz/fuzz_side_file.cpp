//===- fuzz_side_file.cpp - any bytes as a .weights file -----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Any bytes read as a file of weights or give an error; of what reads, every
/// byte can be.
///
//===----------------------------------------------------------------------===//

#include "ir/text/SideFile.h"

using namespace tenon::ir;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef bytes(reinterpret_cast<const char *>(data), size);
  std::shared_ptr<llvm::MemoryBuffer> buffer =
      llvm::MemoryBuffer::getMemBufferCopy(bytes, "fuzz");
  llvm::Expected<SideFile> file = SideFile::read(buffer);
  if (!file) {
    llvm::consumeError(file.takeError());
    return 0;
  }
  // The seeds' names.
  for (llvm::StringRef name : {"a", "b", "w"})
    if (ConstantRef constant = file->lookup(name))
      (void)constant->contentHash();
  return 0;
}
