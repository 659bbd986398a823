//===- Bpe.cpp - byte-pair encoding --------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/text/Utf8.h"
#include "runtime/text/WordModel.h"

#include <algorithm>

namespace tenon::rt {
namespace {

/// Starts with the characters and joins the pair of least rank, the leftmost
/// among equals, until none is left. Short words look at all pairs each time,
/// longer ones keep them in a heap.
class Bpe final : public WordModel {
public:
  explicit Bpe(const TextTable &table)
      : table(table), prefix(table.text(table.header().continuingPrefix)),
        suffix(table.text(table.header().wordSuffix)) {
    for (uint32_t c = 0; c < lowCharacters; ++c) {
      std::string text;
      appendUtf8(text, c);
      lowIds[c] = table.find(text);
    }
  }

  Status encode(std::string_view word, std::vector<uint32_t> &ids) override {
    if (table.has(TextIgnoreMerges))
      if (uint32_t id = table.find(word); id != none) {
        ids.push_back(id);
        return {};
      }
    if (!table.has(TextSeams) || word.size() < shortestCut) {
      encodePart(word, ids);
      return {};
    }
    // Cut where no merge ever joins two characters: the parts are independent.
    const char *begin = word.data(), *at = begin, *end = at + word.size();
    uint32_t last = nextCodePoint(at, end);
    while (at < end) {
      const char *here = at;
      uint32_t code = nextCodePoint(at, end);
      uint32_t bit = seamHash(last, code);
      last = code;
      if (table.seams()[bit / 64] >> (bit % 64) & 1)
        continue;
      encodeCached({begin, size_t(here - begin)}, ids);
      begin = here;
    }
    encodeCached({begin, size_t(end - begin)}, ids);
    return {};
  }

private:
  static constexpr uint32_t lowCharacters = 512;
  static constexpr size_t shortestCut = 24;
  static constexpr size_t shortWord = 24; ///< in symbols

  struct Symbol {
    uint32_t id;
    int32_t previous, next; ///< -1: none; removed ones have id == none
  };
  struct Pair {
    uint32_t rank, merged;
    int32_t at;
  };

  void encodeCached(std::string_view part, std::vector<uint32_t> &ids) {
    if (cache.append(part, ids))
      return;
    size_t before = ids.size();
    encodePart(part, ids);
    cache.store(part, std::span(ids).subspan(before));
  }

  uint32_t idOf(std::string_view character, uint32_t code, bool first,
                bool last) {
    bool plain = (first || prefix.empty()) && (!last || suffix.empty());
    if (plain)
      return code < lowCharacters ? lowIds[code] : table.find(character);
    std::string decorated;
    if (!first)
      decorated = prefix;
    decorated.append(character);
    if (last)
      decorated.append(suffix);
    return table.find(decorated);
  }

  bool addBytes(std::string_view character) {
    if (!table.has(TextByteFallback))
      return false;
    auto bytes = table.byteTokens();
    for (char c : character)
      if (bytes[static_cast<unsigned char>(c)] == none)
        return false;
    for (char c : character)
      word.push_back(bytes[static_cast<unsigned char>(c)]);
    return true;
  }

  /// The ids of the characters of `part`.
  void start(std::string_view part) {
    word.clear();
    bool pendingUnk = false;
    uint32_t unk = table.header().unkId;
    const char *at = part.data(), *end = at + part.size();
    while (at < end) {
      const char *from = at;
      uint32_t code = nextCodePoint(at, end);
      std::string_view character(from, size_t(at - from));
      uint32_t id = idOf(character, code, from == part.data(), at == end);
      if (id != none) {
        if (pendingUnk)
          word.push_back(unk);
        pendingUnk = false;
        word.push_back(id);
      } else if (!addBytes(character) && unk != none) {
        if (pendingUnk && !table.has(TextFuseUnk))
          word.push_back(unk);
        pendingUnk = true;
      }
    }
    if (pendingUnk)
      word.push_back(unk);
  }

  void encodePart(std::string_view part, std::vector<uint32_t> &ids) {
    start(part);
    if (word.size() <= shortWord)
      mergeShort();
    else
      mergeLong();
    ids.insert(ids.end(), word.begin(), word.end());
  }

  void mergeShort() {
    const MergeSlot *pairs[shortWord];
    size_t count = word.size();
    for (size_t i = 0; i + 1 < count; ++i)
      pairs[i] = table.findMerge(word[i], word[i + 1]);
    while (count > 1) {
      size_t best = 0;
      uint32_t rank = none;
      for (size_t i = 0; i + 1 < count; ++i)
        if (pairs[i] && pairs[i]->rank < rank) {
          rank = pairs[i]->rank;
          best = i;
        }
      if (rank == none)
        break;
      word[best] = pairs[best]->merged;
      for (size_t i = best + 1; i + 1 < count; ++i) {
        word[i] = word[i + 1];
        pairs[i - 1] = pairs[i];
      }
      --count;
      if (best > 0)
        pairs[best - 1] = table.findMerge(word[best - 1], word[best]);
      if (best + 1 < count)
        pairs[best] = table.findMerge(word[best], word[best + 1]);
    }
    word.resize(count);
  }

  void pushPair(int32_t left, int32_t right) {
    const MergeSlot *merge =
        table.findMerge(symbols[size_t(left)].id, symbols[size_t(right)].id);
    if (!merge)
      return;
    heap.push_back({merge->rank, merge->merged, left});
    std::push_heap(heap.begin(), heap.end(), later);
  }

  static bool later(const Pair &a, const Pair &b) {
    return a.rank != b.rank ? a.rank > b.rank : a.at > b.at;
  }

  void mergeLong() {
    symbols.clear();
    heap.clear();
    int32_t count = int32_t(word.size());
    for (int32_t i = 0; i < count; ++i)
      symbols.push_back({word[size_t(i)], i - 1, i + 1 < count ? i + 1 : -1});
    for (int32_t i = 0; i + 1 < count; ++i)
      if (const MergeSlot *merge =
              table.findMerge(word[size_t(i)], word[size_t(i) + 1]))
        heap.push_back({merge->rank, merge->merged, i});
    std::make_heap(heap.begin(), heap.end(), later);
    while (!heap.empty()) {
      std::pop_heap(heap.begin(), heap.end(), later);
      Pair pair = heap.back();
      heap.pop_back();
      merge(pair);
    }
    size_t to = 0;
    for (const Symbol &symbol : symbols)
      if (symbol.id != none)
        word[to++] = symbol.id;
    word.resize(to);
  }

  void merge(Pair pair) {
    Symbol &left = symbols[size_t(pair.at)];
    if (left.id == none || left.next < 0)
      return;
    Symbol &right = symbols[size_t(left.next)];
    // One of the two may have been joined with another since.
    const MergeSlot *now = table.findMerge(left.id, right.id);
    if (!now || now->merged != pair.merged)
      return;
    left.id = pair.merged;
    right.id = none;
    left.next = right.next;
    if (left.next >= 0)
      symbols[size_t(left.next)].previous = pair.at;
    if (left.previous >= 0)
      pushPair(left.previous, pair.at);
    if (left.next >= 0)
      pushPair(pair.at, left.next);
  }

  const TextTable &table;
  std::string_view prefix, suffix;
  uint32_t lowIds[lowCharacters];
  WordCache cache;
  std::vector<uint32_t> word;
  std::vector<Symbol> symbols;
  std::vector<Pair> heap;
};

} // namespace

std::unique_ptr<WordModel> makeBpe(const TextTable &table) {
  return std::make_unique<Bpe>(table);
}

} // namespace tenon::rt
