//===- Charsmap.cpp - SentencePiece's precompiled normalization ----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/text/Charsmap.h"

#include "runtime/text/Unicode.h"
#include "runtime/text/Utf8.h"

namespace tenon::rt {
namespace {

// The fields of a darts-clone unit.
bool hasLeaf(uint32_t unit) { return unit >> 8 & 1; }
uint32_t valueOf(uint32_t unit) { return unit & 0x7fffffffu; }
uint32_t labelOf(uint32_t unit) { return unit & 0x800000ffu; }
uint32_t offsetOf(uint32_t unit) {
  return unit >> 10 << ((unit & 0x200u) >> 6);
}

} // namespace

Result<Charsmap> Charsmap::load(std::string_view bytes) {
  Charsmap map;
  const auto *data = reinterpret_cast<const uint8_t *>(bytes.data());
  if (bytes.size() < 4)
    return TN_ERROR("precompiled_charsmap: too short");
  uint32_t trieBytes = readAs<uint32_t>(data);
  if (trieBytes < 4 || trieBytes % 4 != 0 ||
      !inRange(4, trieBytes, bytes.size()))
    return TN_ERROR("precompiled_charsmap: its trie reaches past the end");
  map.units = {data + 4, trieBytes};
  map.numUnits = trieBytes / 4;
  map.replacements = bytes.substr(4 + size_t(trieBytes));
  return map;
}

bool Charsmap::transform(std::string &out, std::string_view part) const {
  uint64_t node = offsetOf(unit(0));
  for (char c : part) {
    auto byte = static_cast<unsigned char>(c);
    node ^= byte;
    if (byte == 0 || node >= numUnits)
      return false;
    uint32_t found = unit(node);
    if (labelOf(found) != byte)
      return false;
    node ^= offsetOf(found);
    if (node >= numUnits)
      return false;
    if (!hasLeaf(found))
      continue;
    uint64_t at = valueOf(unit(node));
    if (at > replacements.size())
      return false;
    std::string_view rest = replacements.substr(at);
    rest = rest.substr(0, rest.find('\0'));
    if (validUtf8Prefix(rest) != rest.size())
      return false;
    out.append(rest);
    return true;
  }
  return false;
}

void Charsmap::append(std::string &out, std::string_view text) const {
  auto takeOr = [&](std::string_view part) {
    if (!transform(out, part))
      out.append(part);
  };
  const char *at = text.data(), *end = at + text.size();
  int32_t state = 0;
  while (at < end) {
    const char *begin = at;
    uint32_t code = nextCodePoint(at, end);
    // A grapheme cluster; two ASCII characters are one only as CR LF.
    while (at < end) {
      const char *next = at;
      uint32_t following = nextCodePoint(next, end);
      bool joined = code < 0x80 && following < 0x80
                        ? code == '\r' && following == '\n'
                        : !graphemeBreak(code, following, state);
      if (!joined)
        break;
      code = following;
      at = next;
    }
    state = 0;
    std::string_view cluster(begin, size_t(at - begin));
    if (cluster.size() < 6 && transform(out, cluster))
      continue;
    for (const char *c = begin; c < at;) {
      const char *from = c;
      nextCodePoint(c, at);
      takeOr({from, size_t(c - from)});
    }
  }
}

} // namespace tenon::rt
