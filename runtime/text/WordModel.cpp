//===- WordModel.cpp - WordPiece, word lists and the words seen before ---===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/text/WordModel.h"

#include "runtime/text/Utf8.h"

namespace tenon::rt {
namespace {

Status missingUnk() {
  return TN_ERROR("the tokenizer has no unknown token for a word that is not "
                  "in its vocabulary");
}

/// Greedy: the longest token that fits, then the longest continuation.
class WordPiece final : public WordModel {
public:
  explicit WordPiece(const TextTable &table)
      : table(table), prefix(table.text(table.header().continuingPrefix)) {}

  Status encode(std::string_view word, std::vector<uint32_t> &ids) override {
    size_t characters = 0;
    for (char c : word)
      characters += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    size_t before = ids.size();
    bool known = characters <= table.header().maxInputChars;
    for (size_t at = 0; known && at < word.size();)
      known = takeLongest(word, at, ids);
    if (known)
      return {};
    ids.resize(before);
    if (table.header().unkId == none)
      return missingUnk();
    ids.push_back(table.header().unkId);
    return {};
  }

private:
  bool takeLongest(std::string_view word, size_t &at,
                   std::vector<uint32_t> &ids) {
    candidate.clear();
    if (at > 0)
      candidate = prefix;
    size_t fixed = candidate.size();
    candidate.append(word.substr(at));
    while (candidate.size() > fixed) {
      uint32_t id = table.find(candidate);
      if (id != none) {
        ids.push_back(id);
        at += candidate.size() - fixed;
        return true;
      }
      const char *begin = candidate.data();
      candidate.resize(
          size_t(previousCodePoint(begin, begin + candidate.size()) - begin));
    }
    return false;
  }

  const TextTable &table;
  std::string_view prefix;
  std::string candidate;
};

/// A word is a token or unknown.
class WordLevel final : public WordModel {
public:
  explicit WordLevel(const TextTable &table) : table(table) {}

  Status encode(std::string_view word, std::vector<uint32_t> &ids) override {
    uint32_t id = table.find(word);
    if (id == none)
      id = table.header().unkId;
    if (id == none)
      return missingUnk();
    ids.push_back(id);
    return {};
  }

private:
  const TextTable &table;
};

} // namespace

std::unique_ptr<WordModel> makeWordPiece(const TextTable &table) {
  return std::make_unique<WordPiece>(table);
}

std::unique_ptr<WordModel> makeWordLevel(const TextTable &table) {
  return std::make_unique<WordLevel>(table);
}

std::unique_ptr<WordModel> makeWordModel(const TextTable &table) {
  switch (table.header().model) {
  case TextModel::Bpe:
    return makeBpe(table);
  case TextModel::WordPiece:
    return makeWordPiece(table);
  case TextModel::Unigram:
    return makeUnigram(table);
  case TextModel::WordLevel:
    break;
  }
  return makeWordLevel(table);
}

WordCache::WordCache() : slots(numSlots) {}

bool WordCache::append(std::string_view word,
                       std::vector<uint32_t> &ids) const {
  uint32_t hash = tokenHash(word.data(), word.size());
  for (size_t at = hash % numSlots;; at = (at + 1) % numSlots) {
    const Slot &slot = slots[at];
    if (slot.length == 0)
      return false;
    if (slot.hash != hash || slot.length != word.size() ||
        std::memcmp(texts.data() + slot.text, word.data(), word.size()) != 0)
      continue;
    ids.insert(ids.end(), allIds.begin() + slot.ids,
               allIds.begin() + slot.ids + slot.count);
    return true;
  }
}

void WordCache::store(std::string_view word, std::span<const uint32_t> ids) {
  if (word.empty() || word.size() > maxWord || ids.size() > 4 * maxWord)
    return;
  if (used >= numSlots / 2) { // full: what is common comes back soon
    slots.assign(numSlots, {});
    texts.clear();
    allIds.clear();
    used = 0;
  }
  uint32_t hash = tokenHash(word.data(), word.size());
  size_t at = hash % numSlots;
  while (slots[at].length != 0)
    at = (at + 1) % numSlots;
  slots[at] = {hash, uint32_t(texts.size()), uint16_t(word.size()),
               uint16_t(ids.size()), uint32_t(allIds.size())};
  texts.append(word);
  allIds.insert(allIds.end(), ids.begin(), ids.end());
  ++used;
}

} // namespace tenon::rt
