//===- Utf8.cpp - code points of UTF-8 text ------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/text/Utf8.h"

#include "runtime/support/Bytes.h"

namespace tenon::rt {
namespace {

/// What begins at a byte: the length of a well-formed character, or of the
/// ill-formed part to be replaced by one U+FFFD.
struct Sequence {
  size_t length;
  bool valid;
};

Sequence sequenceAt(const unsigned char *at, size_t room) {
  unsigned char first = at[0];
  if (first < 0x80)
    return {1, true};
  if (first < 0xc2 || first > 0xf4)
    return {1, false};
  size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  // The second byte's range depends on the first: no overlong forms, no
  // surrogates, nothing above U+10FFFF.
  unsigned char low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  unsigned char high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  for (size_t i = 1; i < length; ++i) {
    if (i == room || at[i] < low || at[i] > high)
      return {i, false};
    low = 0x80;
    high = 0xbf;
  }
  return {length, true};
}

} // namespace

size_t validUtf8Prefix(std::string_view text) {
  const auto *data = reinterpret_cast<const unsigned char *>(text.data());
  size_t at = 0, size = text.size();
  while (at < size) {
    while (size - at >= 8 &&
           (readAs<uint64_t>(data + at) & 0x8080808080808080ull) == 0)
      at += 8;
    if (at == size)
      break;
    Sequence next = sequenceAt(data + at, size - at);
    if (!next.valid)
      return at;
    at += next.length;
  }
  return size;
}

std::string repairUtf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    size_t good = validUtf8Prefix(text);
    out.append(text.substr(0, good));
    text.remove_prefix(good);
    if (text.empty())
      break;
    Sequence bad = sequenceAt(
        reinterpret_cast<const unsigned char *>(text.data()), text.size());
    appendUtf8(out, 0xfffd);
    text.remove_prefix(bad.length);
  }
  return out;
}

} // namespace tenon::rt
