//===- WordModel.h - the model that turns words into tokens --------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_TEXT_WORDMODEL_H
#define TENON_RUNTIME_TEXT_WORDMODEL_H

#include "runtime/text/TextTable.h"

#include <memory>
#include <string>
#include <vector>

namespace tenon::rt {

/// Turns one piece of text, which is not empty, into ids. Holds scratch memory:
/// for one thread at a time.
class WordModel {
public:
  virtual ~WordModel() = default;
  virtual Status encode(std::string_view word, std::vector<uint32_t> &ids) = 0;
};

std::unique_ptr<WordModel> makeBpe(const TextTable &table);
std::unique_ptr<WordModel> makeWordPiece(const TextTable &table);
std::unique_ptr<WordModel> makeUnigram(const TextTable &table);
std::unique_ptr<WordModel> makeWordLevel(const TextTable &table);

/// The model that `table` describes.
std::unique_ptr<WordModel> makeWordModel(const TextTable &table);

/// Remembers the ids of words that were seen before.
class WordCache {
public:
  WordCache();
  /// Appends the remembered ids of `word`; false if there are none.
  bool append(std::string_view word, std::vector<uint32_t> &ids) const;
  void store(std::string_view word, std::span<const uint32_t> ids);

  /// Longer words are not worth remembering.
  static constexpr size_t maxWord = 64;

private:
  struct Slot {
    uint32_t hash = 0;
    uint32_t text = 0; ///< offset in `texts`
    uint16_t length = 0, count = 0;
    uint32_t ids = 0; ///< offset in `allIds`
  };
  static constexpr size_t numSlots = size_t(1) << 16;

  std::vector<Slot> slots;
  std::string texts;
  std::vector<uint32_t> allIds;
  size_t used = 0;
};

} // namespace tenon::rt

#endif // TENON_RUNTIME_TEXT_WORDMODEL_H
