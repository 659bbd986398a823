//===- TableWriter.cpp - collects and writes a tokenizer's table ---------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/tokenizer/TableWriter.h"

#include "runtime/text/TextTable.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>

namespace tenon::codegen {

namespace {

/// Slots for \p count entries: a power of two, at most two thirds full.
size_t slotCount(size_t count) {
  return llvm::PowerOf2Ceil(count + count / 2 + 2);
}

std::vector<rt::MergeSlot> hashMerges(llvm::ArrayRef<rt::MergeSlot> merges) {
  std::vector<rt::MergeSlot> slots(slotCount(merges.size()),
                                   {rt::none, rt::none, rt::none, rt::none});
  size_t mask = slots.size() - 1;
  for (const rt::MergeSlot &merge : merges) {
    size_t at = rt::mergeHash(merge.left, merge.right) & mask;
    while (slots[at].left != rt::none &&
           (slots[at].left != merge.left || slots[at].right != merge.right))
      at = (at + 1) & mask;
    slots[at] = merge; // the last of equal pairs counts
  }
  return slots;
}

} // namespace

rt::TextString TableWriter::add(llvm::StringRef text) {
  auto [at, isNew] = offsets.try_emplace(text, uint32_t(pool.size()));
  if (isNew)
    pool += text;
  return {at->second, uint32_t(text.size())};
}

bool TableWriter::setToken(uint64_t id, llvm::StringRef text, uint32_t flags) {
  if (id >= rt::maxTokenIds)
    return false;
  if (id >= tokens.size())
    tokens.resize(id + 1, {{0, 0}, 0});
  tokens[id].text = add(text);
  tokens[id].flags |= flags;
  return true;
}

std::vector<uint8_t> TableWriter::finish() {
  std::vector<uint32_t> slots(slotCount(tokens.size()), rt::none);
  for (uint32_t id = 0; id < tokens.size(); ++id) {
    if (!(tokens[id].flags & rt::TokenInModel))
      continue;
    llvm::StringRef token = text(tokens[id].text);
    size_t at = rt::tokenHash(token.data(), token.size()) & (slots.size() - 1);
    while (slots[at] != rt::none)
      at = (at + 1) & (slots.size() - 1);
    slots[at] = id;
  }
  std::vector<rt::MergeSlot> mergeSlots = hashMerges(merges);

  std::memcpy(header.magic, rt::textMagic, sizeof(rt::textMagic));
  header.version = rt::textVersion;
  header.headerBytes = sizeof(header);
  std::vector<uint8_t> out(sizeof(header));
  auto write = [&](rt::Table &table, const auto &records) {
    using Record = std::decay_t<decltype(records[0])>;
    table = {out.size(), uint32_t(records.size()), sizeof(Record)};
    size_t bytes = records.size() * sizeof(Record);
    out.resize(llvm::alignTo(out.size() + bytes, 8));
    if (bytes != 0)
      std::memcpy(out.data() + table.offset, records.data(), bytes);
  };
  write(header.tokens, tokens);
  write(header.tokenSlots, slots);
  write(header.merges, mergeSlots);
  write(header.seams, seams);
  write(header.scores, scores);
  write(header.trie, trie);
  write(header.byteTokens, byteTokens);
  write(header.added, added);
  write(header.normalizers, normalizers);
  write(header.preTokenizers, preTokenizers);
  write(header.decoders, decoders);
  write(header.post, post);
  write(header.stops, stops);
  write(header.pool, pool);
  header.totalBytes = out.size();
  header.textChecksum = 0;
  std::memcpy(out.data(), &header, sizeof(header));
  header.textChecksum = rt::textChecksum({out.data(), out.size()});
  std::memcpy(out.data(), &header, sizeof(header));
  return out;
}

std::vector<rt::TrieNode>
TrieBuilder::build(llvm::ArrayRef<std::pair<llvm::StringRef, uint32_t>> keys) {
  constexpr rt::TrieNode freeNode = {0, rt::none, rt::none};
  std::vector<rt::TrieNode> nodes(1, {0, 0, rt::none});
  // A node whose children are still to be placed: the keys below it and the
  // length that they share.
  struct Pending {
    uint32_t node;
    size_t begin, end, depth;
  };
  std::vector<Pending> work = {{0, 0, keys.size(), 0}};
  size_t firstFree = 1;
  while (!work.empty()) {
    Pending at = work.back();
    work.pop_back();
    if (at.begin < at.end && keys[at.begin].first.size() == at.depth)
      nodes[at.node].token = keys[at.begin++].second;
    // The children's bytes and where each one's keys begin.
    std::vector<std::pair<unsigned char, size_t>> children;
    for (size_t i = at.begin; i < at.end; ++i) {
      auto byte = static_cast<unsigned char>(keys[i].first[at.depth]);
      if (children.empty() || children.back().first != byte)
        children.emplace_back(byte, i);
    }
    if (children.empty())
      continue;
    auto isFree = [&](size_t index) {
      return index >= nodes.size() || nodes[index].parent == rt::none;
    };
    while (!isFree(firstFree))
      ++firstFree;
    size_t base =
        firstFree > children[0].first ? firstFree - children[0].first : 1;
    auto fits = [&] {
      for (auto [byte, first] : children)
        if (!isFree(base + byte))
          return false;
      return true;
    };
    // Dense regions are left behind: a bounded search keeps this linear.
    for (unsigned tries = 0; !fits(); ++tries)
      base = tries < 256 ? base + 1 : nodes.size();
    if (base + children.back().first >= nodes.size())
      nodes.resize(base + children.back().first + 1, freeNode);
    nodes[at.node].base = uint32_t(base);
    for (size_t c = 0; c < children.size(); ++c) {
      auto child = uint32_t(base + children[c].first);
      nodes[child] = {0, at.node, rt::none};
      size_t end = c + 1 < children.size() ? children[c + 1].second : at.end;
      work.push_back({child, children[c].second, end, at.depth + 1});
    }
  }
  return nodes;
}

} // namespace tenon::codegen
