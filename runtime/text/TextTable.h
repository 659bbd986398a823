//===- TextTable.h - a checked, read-only view of a tokenizer ------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_TEXT_TEXTTABLE_H
#define TENON_RUNTIME_TEXT_TEXTTABLE_H

#include "runtime/format/tokenizer.h"
#include "runtime/support/Bytes.h"
#include "runtime/support/Status.h"

#include <optional>
#include <string_view>

namespace tenon::rt {

/// A tokenizer's table whose every index and range has been checked.
class TextTable {
public:
  /// Checks the table in `bytes`, which must outlive the result and start at a
  /// multiple of 8.
  static Result<TextTable> load(Bytes bytes);

  const TextHeader &header() const { return *head; }
  bool has(TextFlags flag) const { return head->flags & flag; }
  std::string_view text(TextString string) const {
    return {pool.data() + string.offset, string.length};
  }

  std::span<const TokenEntry> tokens() const { return tokenTable; }
  std::span<const MergeSlot> merges() const { return mergeTable; }
  std::span<const uint64_t> seams() const { return seamTable; }
  std::span<const double> scores() const { return scoreTable; }
  std::span<const TrieNode> trie() const { return trieTable; }
  std::span<const uint32_t> byteTokens() const { return byteTable; }
  std::span<const AddedEntry> added() const { return addedTable; }
  std::span<const TextStep> normalizers() const { return normalizerTable; }
  std::span<const TextStep> preTokenizers() const { return preTokenizerTable; }
  std::span<const TextStep> decoders() const { return decoderTable; }
  std::span<const uint32_t> post() const { return postTable; }
  std::span<const uint32_t> stops() const { return stopTable; }

  /// The id of a token of the model's vocabulary, or `none`.
  uint32_t find(std::string_view token) const;
  /// The merge of two tokens, or null.
  const MergeSlot *findMerge(uint32_t left, uint32_t right) const;

private:
  friend class TextTableChecker;
  TextTable() = default;

  const TextHeader *head = nullptr;
  std::span<const char> pool;
  std::span<const TokenEntry> tokenTable;
  std::span<const uint32_t> slotTable;
  std::span<const MergeSlot> mergeTable;
  std::span<const uint64_t> seamTable;
  std::span<const double> scoreTable;
  std::span<const TrieNode> trieTable;
  std::span<const uint32_t> byteTable;
  std::span<const AddedEntry> addedTable;
  std::span<const TextStep> normalizerTable, preTokenizerTable, decoderTable;
  std::span<const uint32_t> postTable, stopTable;
};

/// The checksum that `header.textChecksum` must have.
uint64_t textChecksum(Bytes table);

} // namespace tenon::rt

#endif // TENON_RUNTIME_TEXT_TEXTTABLE_H
