//===- Charsmap.h - SentencePiece's precompiled normalization ------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_TEXT_CHARSMAP_H
#define TENON_RUNTIME_TEXT_CHARSMAP_H

#include "runtime/support/Bytes.h"
#include "runtime/support/Status.h"

#include <string>
#include <string_view>

namespace tenon::rt {

/// SentencePiece's `precompiled_charsmap`: the size of a double-array trie in
/// bytes, the trie (darts-clone's units), and the replacements it points to,
/// each ended by a NUL.
class Charsmap {
public:
  /// Checks `bytes`, which must outlive the result.
  static Result<Charsmap> load(std::string_view bytes);

  /// Appends `text` normalized: each grapheme cluster below six bytes, else
  /// each character, is replaced by what the trie has for its shortest prefix,
  /// as Hugging Face's tokenizers do.
  void append(std::string &out, std::string_view text) const;

private:
  bool transform(std::string &out, std::string_view part) const;
  uint32_t unit(uint64_t index) const {
    return readAs<uint32_t>(units.data() + index * 4);
  }

  Bytes units;
  uint64_t numUnits = 0;
  std::string_view replacements;
};

} // namespace tenon::rt

#endif // TENON_RUNTIME_TEXT_CHARSMAP_H
