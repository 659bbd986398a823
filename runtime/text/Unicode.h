//===- Unicode.h - properties and normal forms of characters -------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_TEXT_UNICODE_H
#define TENON_RUNTIME_TEXT_UNICODE_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::rt {

/// The property White_Space.
inline bool isWhiteSpace(uint32_t c) {
  if (c < 0x80)
    return c == ' ' || (c >= 9 && c <= 13);
  return c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
         c == 0x202f || c == 0x205f || c == 0x3000;
}

// Where characters changed their category, these follow the older tables that
// Hugging Face's tokenizers have.

/// ASCII punctuation and symbols, and the general categories P*.
bool isPunctuation(uint32_t c);
/// General categories Nd, Nl, No.
bool isNumeric(uint32_t c);
/// Part of a word: letters, marks, decimal digits, connectors, joiners.
bool isWordCharacter(uint32_t c);
bool isMark(uint32_t c);            ///< M*
bool isNonspacingMark(uint32_t c);  ///< Mn
bool isControlOrFormat(uint32_t c); ///< Cc, Cf, Co

/// Appends the full lower-case mapping of `c` (without context).
void appendLowercase(std::string &out, uint32_t c);

enum class NormalForm { Nfc, Nfd, Nfkc, Nfkd };

/// Appends `text` in a Unicode normal form to `out`.
void appendNormalized(std::string &out, std::string_view text, NormalForm form);

/// Whether an extended grapheme cluster ends between two adjacent characters;
/// `state` is 0 at the start of a text.
bool graphemeBreak(uint32_t first, uint32_t second, int32_t &state);

} // namespace tenon::rt

#endif // TENON_RUNTIME_TEXT_UNICODE_H
