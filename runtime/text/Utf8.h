//===- Utf8.h - code points of UTF-8 text --------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_TEXT_UTF8_H
#define TENON_RUNTIME_TEXT_UTF8_H

#include <cstdint>
#include <string>
#include <string_view>

namespace tenon::rt {

/// Reads a code point from `at` and moves `at` behind it; `at < end`. The text
/// is expected to be valid; a sequence that `end` cuts short reads as U+FFFD.
inline uint32_t nextCodePoint(const char *&at, const char *end) {
  auto byte = [&](int i) {
    return uint32_t(static_cast<unsigned char>(at[i]));
  };
  uint32_t first = byte(0);
  if (first < 0x80) {
    ++at;
    return first;
  }
  int length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (end - at < length) {
    at = end;
    return 0xfffd;
  }
  uint32_t code = first & (0x7fu >> length);
  for (int i = 1; i < length; ++i)
    code = code << 6 | (byte(i) & 0x3f);
  at += length;
  return code;
}

/// Appends a code point below 0x110000.
inline void appendUtf8(std::string &out, uint32_t code) {
  if (code < 0x80) {
    out += char(code);
  } else if (code < 0x800) {
    out += char(0xc0 | code >> 6);
    out += char(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    out += char(0xe0 | code >> 12);
    out += char(0x80 | (code >> 6 & 0x3f));
    out += char(0x80 | (code & 0x3f));
  } else {
    out += char(0xf0 | code >> 18);
    out += char(0x80 | (code >> 12 & 0x3f));
    out += char(0x80 | (code >> 6 & 0x3f));
    out += char(0x80 | (code & 0x3f));
  }
}

/// Start of the character that ends at `at`, behind `begin`.
inline const char *previousCodePoint(const char *begin, const char *at) {
  do
    --at;
  while (at > begin && (static_cast<unsigned char>(*at) & 0xc0) == 0x80);
  return at;
}

/// Length in bytes of the longest prefix that is valid UTF-8.
size_t validUtf8Prefix(std::string_view text);

/// `text` with each ill-formed sequence (each maximal subpart, as the Unicode
/// standard has it) replaced by U+FFFD.
std::string repairUtf8(std::string_view text);

} // namespace tenon::rt

#endif // TENON_RUNTIME_TEXT_UTF8_H
