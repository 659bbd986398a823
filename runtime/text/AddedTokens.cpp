//===- AddedTokens.cpp - tokens found in the text before the model sees it
//---===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/text/AddedTokens.h"

#include "runtime/text/Unicode.h"
#include "runtime/text/Utf8.h"

#include <algorithm>

namespace tenon::rt {
namespace {

unsigned char byteAt(std::string_view text, size_t at) {
  return static_cast<unsigned char>(text[at]);
}

bool endsWithWord(std::string_view text) {
  if (text.empty())
    return false;
  const char *end = text.data() + text.size();
  const char *at = previousCodePoint(text.data(), end);
  return isWordCharacter(nextCodePoint(at, end));
}

bool startsWithWord(std::string_view text) {
  const char *at = text.data();
  return !text.empty() && isWordCharacter(nextCodePoint(at, at + text.size()));
}

size_t skipSpaceLeft(std::string_view text, size_t at) {
  while (at > 0) {
    const char *begin = previousCodePoint(text.data(), text.data() + at);
    const char *next = begin;
    if (!isWhiteSpace(nextCodePoint(next, text.data() + at)))
      break;
    at = size_t(begin - text.data());
  }
  return at;
}

size_t skipSpaceRight(std::string_view text, size_t at) {
  const char *here = text.data() + at, *end = text.data() + text.size();
  while (here < end) {
    const char *next = here;
    if (!isWhiteSpace(nextCodePoint(next, end)))
      break;
    here = next;
  }
  return size_t(here - text.data());
}

} // namespace

void AddedTokens::add(std::string content, uint32_t id, uint32_t flags) {
  if (!content.empty())
    entries.push_back({std::move(content), id, flags});
}

void AddedTokens::finish() {
  std::stable_sort(
      entries.begin(), entries.end(),
      [](const Entry &a, const Entry &b) { return a.content < b.content; });
  for (const Entry &entry : entries)
    ++firsts[byteAt(entry.content, 0) + 1];
  for (size_t i = 1; i < 257; ++i)
    firsts[i] += firsts[i - 1];
}

/// Narrows the sorted entries byte by byte; the longest that is whole wins.
const AddedTokens::Entry *AddedTokens::longestAt(std::string_view text,
                                                 size_t at) const {
  auto low = entries.begin() + firsts[byteAt(text, at)];
  auto high = entries.begin() + firsts[byteAt(text, at) + 1];
  const Entry *best = nullptr;
  for (size_t depth = 1; low != high; ++depth) {
    if (low->content.size() == depth)
      best = &*low;
    if (at + depth == text.size())
      break;
    unsigned char next = byteAt(text, at + depth);
    low = std::lower_bound(low, high, next, [&](const Entry &e, int wanted) {
      return e.content.size() <= depth || byteAt(e.content, depth) < wanted;
    });
    high = std::upper_bound(low, high, next, [&](int wanted, const Entry &e) {
      return wanted < byteAt(e.content, depth);
    });
  }
  return best;
}

void AddedTokens::split(std::string_view text,
                        std::vector<Section> &out) const {
  size_t done = 0;
  for (size_t at = 0; !entries.empty() && at < text.size();) {
    unsigned char first = byteAt(text, at);
    const Entry *entry =
        firsts[first] == firsts[first + 1] ? nullptr : longestAt(text, at);
    if (!entry) {
      ++at;
      continue;
    }
    size_t begin = at, end = at + entry->content.size();
    at = end;
    if ((entry->flags & AddedSingleWord) &&
        (endsWithWord(text.substr(0, begin)) ||
         startsWithWord(text.substr(end))))
      continue;
    if (entry->flags & AddedStripLeft)
      begin = std::max(skipSpaceLeft(text, begin), done);
    if (entry->flags & AddedStripRight)
      end = skipSpaceRight(text, end);
    if (done < begin)
      out.push_back({done, begin, none});
    out.push_back({begin, end, entry->id});
    done = end;
  }
  if (done < text.size())
    out.push_back({done, text.size(), none});
}

} // namespace tenon::rt
