//===- TextTable.cpp - a checked, read-only view of a tokenizer ----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/text/TextTable.h"

#include "runtime/support/Checksum.h"
#include "runtime/text/Utf8.h"

#include <cmath>
#include <cstring>

namespace tenon::rt {

uint64_t textChecksum(Bytes table) {
  TextHeader header;
  std::memcpy(&header, table.data(), sizeof(header));
  header.textChecksum = 0;
  uint64_t seed =
      checksum({reinterpret_cast<const uint8_t *>(&header), sizeof(header)});
  return checksum(table.subspan(sizeof(header)), seed);
}

/// Checks the parts of a table one after another.
class TextTableChecker {
public:
  explicit TextTableChecker(Bytes bytes) : bytes(bytes) {}

  Result<TextTable> run() {
    Status (TextTableChecker::*const checks[])() = {
        &TextTableChecker::checkHeader, &TextTableChecker::mapTables,
        &TextTableChecker::checkTokens, &TextTableChecker::checkModel,
        &TextTableChecker::checkTrie,   &TextTableChecker::checkSteps,
        &TextTableChecker::checkIds};
    for (auto check : checks)
      if (Status status = (this->*check)(); !status.ok())
        return status;
    return table;
  }

private:
  static Status damaged(const char *what) {
    return TN_ERROR("damaged tokenizer: %s", what);
  }

  Status checkHeader() {
    if (bytes.size() < sizeof(TextHeader) ||
        reinterpret_cast<uintptr_t>(bytes.data()) % 8 != 0)
      return damaged("too short");
    table.head = reinterpret_cast<const TextHeader *>(bytes.data());
    if (std::memcmp(head().magic, textMagic, sizeof(textMagic)) != 0)
      return damaged("it does not begin as one");
    if (head().version != textVersion ||
        head().headerBytes != sizeof(TextHeader))
      return TN_ERROR("tokenizer of format version %u, expected %u",
                      head().version, textVersion);
    if (head().totalBytes != bytes.size())
      return damaged("its size differs from the one it states");
    if (head().textChecksum != textChecksum(bytes))
      return damaged("its checksum differs");
    return {};
  }

  template <typename T>
  Status map(const Table &from, std::span<const T> &to, const char *name) {
    if (from.recordSize != sizeof(T) || from.offset % alignof(T) != 0 ||
        !inRange(from.offset, uint64_t(from.count) * sizeof(T), bytes.size()))
      return damaged(name);
    to = {reinterpret_cast<const T *>(bytes.data() + from.offset), from.count};
    return {};
  }

  Status mapTables() {
    Status all[] = {
        map(head().pool, table.pool, "strings"),
        map(head().tokens, table.tokenTable, "tokens"),
        map(head().tokenSlots, table.slotTable, "token slots"),
        map(head().merges, table.mergeTable, "merges"),
        map(head().seams, table.seamTable, "seams"),
        map(head().scores, table.scoreTable, "scores"),
        map(head().trie, table.trieTable, "trie"),
        map(head().byteTokens, table.byteTable, "byte tokens"),
        map(head().added, table.addedTable, "added tokens"),
        map(head().normalizers, table.normalizerTable, "normalizers"),
        map(head().preTokenizers, table.preTokenizerTable, "pre-tokenizers"),
        map(head().decoders, table.decoderTable, "decoders"),
        map(head().post, table.postTable, "template"),
        map(head().stops, table.stopTable, "stop ids")};
    for (Status &status : all)
      if (!status.ok())
        return status;
    return {};
  }

  bool isString(TextString string) const {
    return inRange(string.offset, string.length, table.pool.size());
  }
  bool isToken(uint32_t id) const {
    return id < table.tokenTable.size() && table.tokenTable[id].flags != 0;
  }
  bool isTokenOrNone(uint32_t id) const { return id == none || isToken(id); }

  /// An open-addressed table has a power of two of slots, and a free one, so
  /// that searching ends.
  template <typename T, typename IsFree>
  static bool isHashTable(std::span<const T> slots, IsFree isFree) {
    if (slots.empty() || (slots.size() & (slots.size() - 1)) != 0)
      return false;
    for (const T &slot : slots)
      if (isFree(slot))
        return true;
    return false;
  }

  Status checkTokens() {
    if (table.tokenTable.size() > maxTokenIds)
      return damaged("too many tokens");
    for (const TokenEntry &token : table.tokenTable)
      if (!isString(token.text))
        return damaged("a token's text");
    if (!isHashTable(table.slotTable, [](uint32_t id) { return id == none; }))
      return damaged("token slots");
    for (uint32_t id : table.slotTable)
      if (!isTokenOrNone(id))
        return damaged("a token slot");
    return {};
  }

  Status checkModel() {
    if (uint32_t(head().model) > uint32_t(TextModel::WordLevel))
      return damaged("its kind of model");
    if (!isHashTable(table.mergeTable,
                     [](const MergeSlot &slot) { return slot.left == none; }))
      return damaged("merges");
    for (const MergeSlot &slot : table.mergeTable)
      if (slot.left != none && !isToken(slot.merged))
        return damaged("a merge");
    if (!table.seamTable.empty() && table.seamTable.size() != 1024)
      return damaged("seams");
    if (table.has(TextSeams) && table.seamTable.empty())
      return damaged("seams");
    if (!table.byteTable.empty() && table.byteTable.size() != 256)
      return damaged("byte tokens");
    if (table.has(TextByteFallback) && table.byteTable.empty())
      return damaged("byte tokens");
    for (uint32_t id : table.byteTable)
      if (!isTokenOrNone(id))
        return damaged("a byte token");
    if (!isTokenOrNone(head().unkId))
      return damaged("the unknown token");
    if (!isString(head().continuingPrefix) || !isString(head().wordSuffix))
      return damaged("a prefix");
    return {};
  }

  Status checkTrie() {
    bool needed = head().model == TextModel::Unigram;
    if (!needed)
      return {};
    if (table.trieTable.empty() ||
        table.scoreTable.size() != table.tokenTable.size())
      return damaged("the Unigram model");
    for (const TrieNode &node : table.trieTable)
      if (!isTokenOrNone(node.token))
        return damaged("a node of the trie");
    for (double score : table.scoreTable)
      if (std::isnan(score))
        return damaged("a score");
    return std::isnan(head().unkScore) ? damaged("a score") : Status();
  }

  Status checkSteps(std::span<const TextStep> steps, unsigned lastKind,
                    const char *name) const {
    for (const TextStep &step : steps)
      if (step.kind > lastKind || step.behavior > SplitBehavior::Last ||
          !isString(step.a) || !isString(step.b))
        return damaged(name);
    return {};
  }

  /// Regular expressions need text that is well-formed.
  bool isText(TextString string) const {
    std::string_view text = table.text(string);
    return validUtf8Prefix(text) == text.size();
  }

  Status checkTexts() const {
    for (auto steps :
         {table.normalizerTable, table.preTokenizerTable, table.decoderTable})
      for (const TextStep &step : steps) {
        bool binary = steps.data() == table.normalizerTable.data() &&
                      Normalizer(step.kind) == Normalizer::Precompiled;
        if ((!binary && !isText(step.a)) || !isText(step.b))
          return damaged("a step's text");
      }
    return {};
  }

  Status checkSteps() {
    Status all[] = {checkSteps(table.normalizerTable,
                               unsigned(Normalizer::Last), "a normalizer"),
                    checkSteps(table.preTokenizerTable,
                               unsigned(PreTokenizer::Last), "a pre-tokenizer"),
                    checkSteps(table.decoderTable, unsigned(TokenDecoder::Last),
                               "a decoder")};
    for (Status &status : all)
      if (!status.ok())
        return status;
    return checkTexts();
  }

  Status checkIds() {
    for (const AddedEntry &entry : table.addedTable)
      if (!isString(entry.content) || entry.content.length == 0 ||
          !isText(entry.content) || !isToken(entry.id))
        return damaged("an added token");
    for (uint32_t id : table.postTable)
      if (!isTokenOrNone(id))
        return damaged("the template");
    for (uint32_t id : table.stopTable)
      if (id >= maxTokenIds)
        return damaged("a stop id");
    const ChatFormat &chat = head().chat;
    for (TextString string : {chat.begin, chat.userBegin, chat.userEnd,
                              chat.assistantBegin, chat.assistantEnd})
      if (!isString(string))
        return damaged("the chat format");
    const GenerationDefaults &defaults = head().defaults;
    for (float value : {defaults.temperature, defaults.topP, defaults.minP,
                        defaults.repetitionPenalty})
      if (!std::isfinite(value) || value < 0)
        return damaged("the generation defaults");
    return {};
  }

  const TextHeader &head() const { return *table.head; }

  Bytes bytes;
  TextTable table;
};

Result<TextTable> TextTable::load(Bytes bytes) {
  return TextTableChecker(bytes).run();
}

uint32_t TextTable::find(std::string_view token) const {
  size_t mask = slotTable.size() - 1;
  for (size_t at = tokenHash(token.data(), token.size()) & mask;;
       at = (at + 1) & mask) {
    uint32_t id = slotTable[at];
    if (id == none || text(tokenTable[id].text) == token)
      return id;
  }
}

const MergeSlot *TextTable::findMerge(uint32_t left, uint32_t right) const {
  size_t mask = mergeTable.size() - 1;
  for (size_t at = mergeHash(left, right) & mask;; at = (at + 1) & mask) {
    const MergeSlot &slot = mergeTable[at];
    if (slot.left == none)
      return nullptr;
    if (slot.left == left && slot.right == right)
      return &slot;
  }
}

} // namespace tenon::rt
