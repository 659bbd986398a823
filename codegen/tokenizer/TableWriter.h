//===- TableWriter.h - collects and writes a tokenizer's table -----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_CODEGEN_TOKENIZER_TABLEWRITER_H
#define TENON_CODEGEN_TOKENIZER_TABLEWRITER_H

#include "runtime/format/tokenizer.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace tenon::codegen {

/// The parts of a table while it is made.
class TableWriter {
public:
  rt::TextHeader header = {};
  std::vector<rt::TokenEntry> tokens;
  std::vector<rt::MergeSlot> merges; ///< in order of rank, not yet hashed
  std::vector<uint64_t> seams;
  std::vector<double> scores;
  std::vector<rt::TrieNode> trie;
  std::vector<uint32_t> byteTokens;
  std::vector<rt::AddedEntry> added;
  std::vector<rt::TextStep> normalizers, preTokenizers, decoders;
  std::vector<uint32_t> post, stops;

  /// Puts \p text into the string pool; equal texts are stored once.
  rt::TextString add(llvm::StringRef text);
  llvm::StringRef text(rt::TextString string) const {
    return llvm::StringRef(pool).substr(string.offset, string.length);
  }
  /// Makes \p id exist with \p text. False if it is out of range.
  bool setToken(uint64_t id, llvm::StringRef text, uint32_t flags);

  /// Makes the hash tables and writes everything.
  std::vector<uint8_t> finish();

private:
  std::string pool;
  llvm::StringMap<uint32_t> offsets;
};

/// A trie over tokens of the vocabulary, as a double array.
class TrieBuilder {
public:
  /// \p keys must be sorted and without duplicates; none may be empty.
  static std::vector<rt::TrieNode>
  build(llvm::ArrayRef<std::pair<llvm::StringRef, uint32_t>> keys);
};

} // namespace tenon::codegen

#endif // TENON_CODEGEN_TOKENIZER_TABLEWRITER_H
