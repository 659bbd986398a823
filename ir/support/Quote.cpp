//===- Quote.cpp - quoted strings in the text forms ----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/support/Quote.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace tenon {

bool isIdentifier(StringRef text) {
  if (text.empty() || isDigit(text.front()))
    return false;
  return all_of(text, [](char c) { return isAlnum(c) || c == '_'; });
}

void printQuoted(raw_ostream &os, StringRef text) {
  os << '"';
  for (unsigned char c : text) {
    if (c == '"' || c == '\\')
      os << '\\' << c;
    else if (c == '\n')
      os << "\\n";
    else if (c == '\t')
      os << "\\t";
    else if (c < 0x20 || c >= 0x7f)
      os << "\\x" << hexdigit(c >> 4, /*LowerCase=*/true)
         << hexdigit(c & 15, /*LowerCase=*/true);
    else
      os << c;
  }
  os << '"';
}

void printIdentifier(raw_ostream &os, StringRef text) {
  if (isIdentifier(text))
    os << text;
  else
    printQuoted(os, text);
}

/// The character that the escape at the front of \p rest (after the backslash)
/// stands for; takes it off.
static std::optional<char> consumeEscape(StringRef &rest) {
  if (rest.empty())
    return std::nullopt;
  char c = rest.front();
  rest = rest.drop_front();
  switch (c) {
  case '"':
  case '\\':
    return c;
  case 'n':
    return '\n';
  case 't':
    return '\t';
  case 'x': {
    if (rest.size() < 2 || !isHexDigit(rest[0]) || !isHexDigit(rest[1]))
      return std::nullopt;
    char value = char(hexDigitValue(rest[0]) * 16 + hexDigitValue(rest[1]));
    rest = rest.drop_front(2);
    return value;
  }
  default:
    return std::nullopt;
  }
}

std::optional<std::string> consumeQuoted(StringRef &text) {
  StringRef rest = text;
  if (!rest.consume_front("\""))
    return std::nullopt;
  std::string value;
  while (!rest.empty()) {
    char c = rest.front();
    rest = rest.drop_front();
    if (c == '"') {
      text = rest;
      return value;
    }
    if (c == '\n')
      return std::nullopt;
    if (c == '\\') {
      std::optional<char> escaped = consumeEscape(rest);
      if (!escaped)
        return std::nullopt;
      c = *escaped;
    }
    value.push_back(c);
  }
  return std::nullopt;
}

} // namespace tenon
