//===- Lexer.cpp - tokens of the text form -------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/text/Lexer.h"
#include "ir/support/Quote.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace tenon::ir {

namespace {

bool isWordChar(char c) { return isAlnum(c) || c == '_'; }

void skipSpaceAndComments(StringRef &rest) {
  while (true) {
    rest = rest.ltrim(" \t\r\n");
    if (!rest.starts_with("//"))
      return;
    rest = rest.drop_front(std::min(rest.find('\n'), rest.size()));
  }
}

/// The length of the number at the front of \p rest. The dots of `1..512`
/// belong to the range.
size_t numberLength(StringRef rest) {
  auto digitsFrom = [&](size_t at) {
    while (at < rest.size() && isDigit(rest[at]))
      ++at;
    return at;
  };
  if (rest.starts_with("0x")) {
    size_t at = 2;
    while (at < rest.size() && isHexDigit(rest[at]))
      ++at;
    return at;
  }
  size_t at = digitsFrom(0);
  if (at + 1 < rest.size() && rest[at] == '.' && isDigit(rest[at + 1]))
    at = digitsFrom(at + 1);
  if (at < rest.size() && (rest[at] == 'e' || rest[at] == 'E')) {
    size_t exponent = at + 1;
    if (exponent < rest.size() &&
        (rest[exponent] == '+' || rest[exponent] == '-'))
      ++exponent;
    if (exponent < rest.size() && isDigit(rest[exponent]))
      at = digitsFrom(exponent);
  }
  return at;
}

/// The length of the quoted string at the front of \p rest, 0 if it is broken.
size_t stringLength(StringRef rest) {
  StringRef after = rest;
  return consumeQuoted(after) ? rest.size() - after.size() : 0;
}

size_t punctuationLength(StringRef rest) {
  for (StringRef known : {"...", "..", "->", "=="})
    if (rest.starts_with(known))
      return known.size();
  return StringRef("(){}[]<>,:=+-*~").contains(rest.front()) ? 1 : 0;
}

} // namespace

bool isValueNameChar(char c) { return isWordChar(c) || c == '.'; }

Token lexToken(StringRef &rest) {
  skipSpaceAndComments(rest);
  Token token;
  token.begin = rest.data();
  if (rest.empty())
    return token;
  auto take = [&](Token::Kind kind, size_t length, size_t skip = 0) {
    token.kind = length > skip ? kind : Token::Invalid;
    length = std::max<size_t>(length, 1);
    token.text = rest.slice(token.kind == Token::Invalid ? 0 : skip, length);
    rest = rest.drop_front(length);
    return token;
  };
  char c = rest.front();
  StringRef tail = rest.drop_front();
  if (isDigit(c))
    return take(Token::Number, numberLength(rest));
  if (isWordChar(c))
    return take(Token::Identifier, rest.take_while(isWordChar).size());
  if (c == '"')
    return take(Token::String, stringLength(rest));
  if (c == '%')
    return take(Token::Value, 1 + tail.take_while(isValueNameChar).size(), 1);
  if (c == '@')
    return take(Token::Function,
                1 + (tail.starts_with("\"")
                         ? stringLength(tail)
                         : tail.take_while(isWordChar).size()),
                1);
  return take(Token::Punctuation, punctuationLength(rest));
}

} // namespace tenon::ir
