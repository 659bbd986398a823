//===- WeightMemory.cpp - memory for the bytes of big constants ----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/support/WeightMemory.h"
#include "llvm/Support/FileSystem.h"
#include <optional>
#include <vector>

using namespace tenon;
using namespace tenon::ir;

namespace {

constexpr uint64_t maxHeapBytes = 16 << 20;

/// A mapping of an unlinked temporary file.
std::optional<WeightMemory> allocateInFile(uint64_t size) {
  namespace fs = llvm::sys::fs;
  llvm::Expected<fs::TempFile> file =
      fs::TempFile::create("tenon-weights-%%%%%%%%");
  if (!file) {
    llvm::consumeError(file.takeError());
    return std::nullopt;
  }
  std::error_code code = fs::resize_file(file->FD, size);
  std::shared_ptr<fs::mapped_file_region> region;
  if (!code)
    region = std::make_shared<fs::mapped_file_region>(
        fs::convertFDToNativeFile(file->FD), fs::mapped_file_region::readwrite,
        size, 0, code);
  // The mapping keeps the contents; the name goes at once.
  llvm::consumeError(file->discard());
  if (code)
    return std::nullopt;
  auto *data = reinterpret_cast<uint8_t *>(region->data());
  return WeightMemory{{data, static_cast<size_t>(size)}, region};
}

} // namespace

WeightMemory tenon::ir::allocateWeight(uint64_t size) {
  if (size > maxHeapBytes)
    if (std::optional<WeightMemory> buffer = allocateInFile(size))
      return *buffer;
  auto bytes = std::make_shared<std::vector<uint8_t>>(size);
  return WeightMemory{*bytes, bytes};
}
