//===- Unigram.cpp - the most probable segmentation of a word ------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/text/WordModel.h"

#include <algorithm>

namespace tenon::rt {
namespace {

/// Viterbi over all tokens of the vocabulary that occur in the word; a
/// character without a token of its own may be unknown, and unknown neighbours
/// are one.
class Unigram final : public WordModel {
public:
  explicit Unigram(const TextTable &table) : table(table) {}

  Status encode(std::string_view word, std::vector<uint32_t> &ids) override {
    if (Status status = findPath(word); !status.ok())
      return status;
    parts.clear();
    uint32_t unk = table.header().unkId;
    for (size_t end = word.size(); end > 0;) {
      const Node &node = nodes[end];
      bool unknown = node.id == unk;
      if (unknown && !parts.empty() && parts.back().unknown)
        parts.back().begin = node.from;
      else
        parts.push_back({node.from, uint32_t(end), node.id, unknown});
      end = node.from;
    }
    for (size_t i = parts.size(); i-- > 0;)
      addPart(word, parts[i], ids);
    return {};
  }

private:
  struct Node {
    double score;
    uint32_t from;
    uint32_t id;
  };
  struct Part {
    uint32_t begin, end, id;
    bool unknown;
  };

  void offer(size_t end, double score, uint32_t from, uint32_t id) {
    Node &node = nodes[end];
    if (node.from == none || score > node.score)
      node = {score, from, id};
  }

  Status findPath(std::string_view word) {
    nodes.assign(word.size() + 1, {0, none, 0});
    auto trie = table.trie();
    for (size_t at = 0; at < word.size();) {
      size_t length = 1;
      while (at + length < word.size() &&
             (static_cast<unsigned char>(word[at + length]) & 0xc0) == 0x80)
        ++length;
      double before = nodes[at].score;
      bool single = false;
      uint32_t node = 0;
      for (size_t i = at; i < word.size(); ++i) {
        uint64_t child =
            uint64_t(trie[node].base) + static_cast<unsigned char>(word[i]);
        if (child >= trie.size() || trie[child].parent != node)
          break;
        node = uint32_t(child);
        uint32_t id = trie[node].token;
        if (id == none)
          continue;
        offer(i + 1, before + table.scores()[id], uint32_t(at), id);
        single |= i + 1 - at == length;
      }
      if (!single) {
        if (table.header().unkId == none)
          return TN_ERROR("the tokenizer has no unknown token for a character "
                          "that is not in its vocabulary");
        offer(at + length, before + table.header().unkScore, uint32_t(at),
              table.header().unkId);
      }
      at += length;
    }
    return {};
  }

  void addPart(std::string_view word, const Part &part,
               std::vector<uint32_t> &ids) {
    if (!part.unknown) {
      ids.push_back(part.id);
      return;
    }
    std::string_view text = word.substr(part.begin, part.end - part.begin);
    uint32_t id = table.find(text);
    if (id != none) {
      ids.push_back(id);
      return;
    }
    auto bytes = table.byteTokens();
    auto byteToken = [&](char c) {
      return bytes[static_cast<unsigned char>(c)];
    };
    if (table.has(TextByteFallback) &&
        std::all_of(text.begin(), text.end(),
                    [&](char c) { return byteToken(c) != none; }))
      for (char c : text)
        ids.push_back(byteToken(c));
    else
      ids.push_back(table.header().unkId);
  }

  const TextTable &table;
  std::vector<Node> nodes;
  std::vector<Part> parts;
};

} // namespace

std::unique_ptr<WordModel> makeUnigram(const TextTable &table) {
  return std::make_unique<Unigram>(table);
}

} // namespace tenon::rt
