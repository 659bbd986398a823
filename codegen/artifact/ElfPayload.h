//===- ElfPayload.h - appends sections to a linked ELF file -------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_CODEGEN_ARTIFACT_ELFPAYLOAD_H
#define TENON_CODEGEN_ARTIFACT_ELFPAYLOAD_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>
#include <vector>

namespace tenon::codegen {

/// Appends sections that are not loaded to an ELF file that a linker has made:
/// first their contents, then a new table of names and a new section table. The
/// program headers stay as they are, so that contents of any size neither move
/// code nor meet relocation limits, and `strip` and `cp` keep them.
class ElfPayload {
public:
  /// Opens \p path for reading and writing.
  static llvm::Expected<ElfPayload> open(llvm::StringRef path);
  ElfPayload(ElfPayload &&other) noexcept;
  ElfPayload &operator=(ElfPayload &&) = delete;
  ~ElfPayload();

  /// Makes room for a section of \p bytes at a multiple of \p alignment and
  /// gives its offset in the file.
  uint64_t add(llvm::StringRef name, uint64_t bytes, uint64_t alignment);
  /// Writes at a place in the file; any number of threads may at once.
  llvm::Error write(uint64_t offset, llvm::ArrayRef<uint8_t> bytes) const;
  /// Writes the tables. Nothing may be added afterwards.
  llvm::Error finish();

  int descriptor() const { return fd; }
  uint64_t fileBytes() const { return end; }
  /// Bytes of machine code in the file as it was.
  uint64_t codeBytes() const;

private:
  ElfPayload() = default;
  llvm::Error readTables();
  llvm::Error readAt(uint64_t offset, void *to, uint64_t size) const;
  llvm::Error damaged() const;

  std::string path;
  int fd = -1;
  uint64_t end = 0; ///< where the next contents go
  llvm::ELF::Elf64_Ehdr header = {};
  std::vector<llvm::ELF::Elf64_Shdr> sections;
  std::string names;
};

} // namespace tenon::codegen

#endif // TENON_CODEGEN_ARTIFACT_ELFPAYLOAD_H
