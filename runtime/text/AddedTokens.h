//===- AddedTokens.h - tokens found in the text before the model sees it
//---===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_TEXT_ADDEDTOKENS_H
#define TENON_RUNTIME_TEXT_ADDEDTOKENS_H

#include "runtime/text/TextTable.h"

#include <string>
#include <vector>

namespace tenon::rt {

/// Finds a set of strings: the leftmost, and of those the longest.
class AddedTokens {
public:
  void add(std::string content, uint32_t id, uint32_t flags);
  /// To be called when all have been added.
  void finish();

  /// A part of a text: one of the tokens, or what lies between them (id none).
  struct Section {
    size_t begin, end;
    uint32_t id;
  };
  /// Appends the sections of `text`, in order; together they cover it.
  void split(std::string_view text, std::vector<Section> &out) const;

private:
  struct Entry {
    std::string content;
    uint32_t id, flags;
  };
  const Entry *longestAt(std::string_view text, size_t at) const;

  std::vector<Entry> entries; ///< sorted by content
  uint32_t firsts[257] = {};  ///< entries by first byte
};

} // namespace tenon::rt

#endif // TENON_RUNTIME_TEXT_ADDEDTOKENS_H
