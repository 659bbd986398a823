//===- SideFile.h - the weights that belong to a text --------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_IR_TEXT_SIDEFILE_H
#define TENON_IR_TEXT_SIDEFILE_H

/// \file
/// A module `x.tn` has its large constants in `x.tn.weights`. The file, all
/// numbers little-endian:
///
///   8 bytes   "TNWEIGHT"
///   u32       version, 1
///   u32       number of entries
///   entries   u32 length and bytes of the name; u8 length and bytes of the
///             element type's mnemonic; u8 rank; u64 for each dimension;
///             u64 offset and u64 size of the data
///   data      each at a multiple of 64 from the start of the file, packed

#include "ir/text/Text.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MemoryBuffer.h"

namespace tenon::ir {

/// The constants of a side file. The data stays in the mapped file, which the
/// constants keep open.
class SideFile {
public:
  /// Maps the file at \p path. Errors name it.
  static llvm::Expected<SideFile> open(llvm::StringRef path);
  /// Reads from memory, every size and offset checked against it.
  static llvm::Expected<SideFile>
  read(std::shared_ptr<llvm::MemoryBuffer> buffer);

  /// Null when there is none of that name.
  ConstantRef lookup(llvm::StringRef name) const;
  size_t size() const { return constants.size(); }

private:
  llvm::StringMap<ConstantRef> constants;
};

/// Writes the constants that \p module prints as `dense<"name">` under
/// \p options. Nothing more than the header when there are none.
void writeSideFile(const Module &module, llvm::raw_ostream &os,
                   const PrintOptions &options = {});

/// The side file of the text at \p path.
std::string sideFilePath(llvm::StringRef path);
/// Parses the text at \p path ("-" is standard input), with its side file if
/// there is one.
llvm::Expected<ParsedFile> parseFile(llvm::StringRef path);
/// Writes \p module to \p path and, if it has large constants, to its side
/// file.
llvm::Error writeFile(const Module &module, llvm::StringRef path,
                      const PrintOptions &options = {});

} // namespace tenon::ir

#endif // TENON_IR_TEXT_SIDEFILE_H
