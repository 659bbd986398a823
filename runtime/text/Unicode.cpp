//===- Unicode.cpp - properties and normal forms of characters -----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/text/Unicode.h"

#include "runtime/text/Utf8.h"

#include <algorithm>
#include <utf8proc.h>

namespace tenon::rt {
namespace {

utf8proc_category_t category(uint32_t c) {
  return utf8proc_category(utf8proc_int32_t(c));
}

bool isAsciiPunctuation(uint32_t c) {
  return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) ||
         (c >= 123 && c <= 126);
}

utf8proc_option_t optionsOf(NormalForm form) {
  int options = UTF8PROC_STABLE;
  bool composed = form == NormalForm::Nfc || form == NormalForm::Nfkc;
  options |= composed ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == NormalForm::Nfkc || form == NormalForm::Nfkd)
    options |= UTF8PROC_COMPAT;
  return utf8proc_option_t(options);
}

int combiningClass(utf8proc_int32_t c) {
  return utf8proc_get_property(c)->combining_class;
}

/// Puts marks into canonical order.
void orderMarks(std::vector<utf8proc_int32_t> &codes) {
  for (size_t i = 0; i < codes.size();) {
    if (combiningClass(codes[i]) == 0) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < codes.size() && combiningClass(codes[end]) != 0)
      ++end;
    std::stable_sort(codes.begin() + ptrdiff_t(i),
                     codes.begin() + ptrdiff_t(end),
                     [](utf8proc_int32_t a, utf8proc_int32_t b) {
                       return combiningClass(a) < combiningClass(b);
                     });
    i = end;
  }
}

/// A run of text whose first character alone may be ASCII.
void normalizeRun(std::string &out, std::string_view run,
                  utf8proc_option_t options,
                  std::vector<utf8proc_int32_t> &codes) {
  codes.clear();
  const char *at = run.data(), *end = at + run.size();
  int lastClass = UTF8PROC_BOUNDCLASS_START;
  while (at < end) {
    auto code = utf8proc_int32_t(nextCodePoint(at, end));
    utf8proc_int32_t parts[32]; // no character has more than 18
    utf8proc_ssize_t count =
        utf8proc_decompose_char(code, parts, 32, options, &lastClass);
    if (count < 0 || count > 32) {
      codes.push_back(code);
      continue;
    }
    codes.insert(codes.end(), parts, parts + count);
  }
  orderMarks(codes);
  utf8proc_ssize_t count = utf8proc_normalize_utf32(
      codes.data(), utf8proc_ssize_t(codes.size()), options);
  for (utf8proc_ssize_t i = 0; i < count; ++i)
    appendUtf8(out, uint32_t(codes[size_t(i)]));
}

bool isAscii(char c) { return static_cast<unsigned char>(c) < 0x80; }

} // namespace

bool isPunctuation(uint32_t c) {
  if (c < 0x80)
    return isAsciiPunctuation(c);
  if (c == 0x166d) // a symbol since Unicode 12
    return true;
  switch (category(c)) {
  case UTF8PROC_CATEGORY_PC:
  case UTF8PROC_CATEGORY_PD:
  case UTF8PROC_CATEGORY_PS:
  case UTF8PROC_CATEGORY_PE:
  case UTF8PROC_CATEGORY_PI:
  case UTF8PROC_CATEGORY_PF:
  case UTF8PROC_CATEGORY_PO:
    return true;
  default:
    return false;
  }
}

bool isNumeric(uint32_t c) {
  if (c < 0x80)
    return c >= '0' && c <= '9';
  utf8proc_category_t kind = category(c);
  return kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_NL ||
         kind == UTF8PROC_CATEGORY_NO;
}

bool isMark(uint32_t c) {
  if (c < 0x300)
    return false;
  utf8proc_category_t kind = category(c);
  return kind == UTF8PROC_CATEGORY_MN || kind == UTF8PROC_CATEGORY_MC ||
         kind == UTF8PROC_CATEGORY_ME;
}

bool isNonspacingMark(uint32_t c) {
  if (c < 0x300 || c == 0x1885 || c == 0x1886) // letters before Unicode 9
    return false;
  // U+1734 became a spacing mark with Unicode 14.
  return c == 0x1734 || category(c) == UTF8PROC_CATEGORY_MN;
}

bool isControlOrFormat(uint32_t c) {
  if (c < 0x80)
    return c < 0x20 || c == 0x7f;
  utf8proc_category_t kind = category(c);
  return kind == UTF8PROC_CATEGORY_CC || kind == UTF8PROC_CATEGORY_CF ||
         kind == UTF8PROC_CATEGORY_CO;
}

bool isWordCharacter(uint32_t c) {
  if (c < 0x80)
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (c >= 'a' && c <= 'z');
  switch (category(c)) {
  case UTF8PROC_CATEGORY_LU:
  case UTF8PROC_CATEGORY_LL:
  case UTF8PROC_CATEGORY_LT:
  case UTF8PROC_CATEGORY_LM:
  case UTF8PROC_CATEGORY_LO:
  case UTF8PROC_CATEGORY_MN:
  case UTF8PROC_CATEGORY_MC:
  case UTF8PROC_CATEGORY_ME:
  case UTF8PROC_CATEGORY_ND:
  case UTF8PROC_CATEGORY_NL:
  case UTF8PROC_CATEGORY_PC:
    return true;
  default:
    // Join_Control, and Other_Alphabetic beyond the categories above.
    return c == 0x200c || c == 0x200d || (c >= 0x24b6 && c <= 0x24e9) ||
           (c >= 0x1f130 && c <= 0x1f149) || (c >= 0x1f150 && c <= 0x1f169) ||
           (c >= 0x1f170 && c <= 0x1f189);
  }
}

void appendLowercase(std::string &out, uint32_t c) {
  if (c < 0x80) {
    out += char(c >= 'A' && c <= 'Z' ? c + 32 : c);
    return;
  }
  if (c == 0x130) { // the one character whose lower case is two
    out += "i\xcc\x87";
    return;
  }
  appendUtf8(out, uint32_t(utf8proc_tolower(utf8proc_int32_t(c))));
}

void appendNormalized(std::string &out, std::string_view text,
                      NormalForm form) {
  // ASCII is in every normal form; a mark may combine with one before it.
  utf8proc_option_t options = optionsOf(form);
  std::vector<utf8proc_int32_t> codes;
  size_t at = 0;
  while (at < text.size()) {
    size_t plain = at;
    while (plain < text.size() && isAscii(text[plain]))
      ++plain;
    if (plain == text.size()) {
      out.append(text.substr(at));
      return;
    }
    size_t begin = plain > at ? plain - 1 : plain;
    out.append(text.substr(at, begin - at));
    size_t end = plain;
    while (end < text.size() && !isAscii(text[end]))
      ++end;
    normalizeRun(out, text.substr(begin, end - begin), options, codes);
    at = end;
  }
}

bool graphemeBreak(uint32_t first, uint32_t second, int32_t &state) {
  return utf8proc_grapheme_break_stateful(utf8proc_int32_t(first),
                                          utf8proc_int32_t(second), &state);
}

} // namespace tenon::rt
