//===- Lexer.cpp - the words of a PTX text --------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/emulator/ptx/Lexer.h"

#include <cstdlib>
#include <cstring>
#include <string>

using namespace tenon::emu::ptx;

namespace {

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isWordStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         c == '$' || c == '%';
}
bool isWord(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || isDigit(c) ||
         c == '_' || c == '$';
}

int hexDigit(char c) {
  if (isDigit(c))
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  if (c >= 'A' && c <= 'F')
    return c - 'A' + 10;
  return -1;
}

} // namespace

void Lexer::skipSpace() {
  while (at != end) {
    if (*at == '\n') {
      ++line;
      ++at;
    } else if (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\0') {
      ++at;
    } else if (*at == '/' && end - at > 1 && at[1] == '/') {
      while (at != end && *at != '\n')
        ++at;
    } else if (*at == '/' && end - at > 1 && at[1] == '*') {
      at += 2;
      while (at != end && !(*at == '*' && end - at > 1 && at[1] == '/'))
        line += *at++ == '\n';
      at = end - at > 1 ? at + 2 : end;
    } else {
      return;
    }
  }
}

Token Lexer::word(Token::Kind kind) {
  Token token;
  token.kind = kind;
  token.line = line;
  const char *start = at;
  if (kind == Token::Word)
    ++at; // may be %
  while (at != end) {
    if (isWord(*at))
      ++at;
    else if (kind == Token::Dotted && *at == ':' && end - at > 2 &&
             at[1] == ':' && isWord(at[2]))
      at += 2;
    else
      break;
  }
  token.text = std::string_view(start, at - start);
  token.end = at;
  return token;
}

/// Integers in four bases, exact floats (0f, 0d) and decimals.
Token Lexer::number() {
  Token token;
  token.kind = Token::Integer;
  token.line = line;
  const char *start = at;
  unsigned base = 10;
  if (*at == '0' && end - at > 1) {
    char c = at[1];
    bool exact = c == 'f' || c == 'F' || c == 'd' || c == 'D';
    if (exact || c == 'x' || c == 'X') {
      base = 16;
      at += 2;
      if (exact)
        token.kind = c == 'f' || c == 'F' ? Token::Float32 : Token::Float64;
    } else if (c == 'b' || c == 'B') {
      base = 2;
      at += 2;
    } else if (isDigit(c)) {
      base = 8;
      ++at;
    }
  }
  const char *digits = at;
  bool overflow = false;
  while (at != end) {
    int digit = hexDigit(*at);
    if (digit < 0 || digit >= static_cast<int>(base))
      break;
    overflow |= token.bits > (~0ull - digit) / base;
    token.bits = token.bits * base + digit;
    ++at;
  }
  if (at == digits && base != 8)
    token.kind = Token::Bad;
  bool decimal = base == 10 && at != end &&
                 (*at == '.' || *at == 'e' || *at == 'E') &&
                 (*at != '.' || (end - at > 1 && isDigit(at[1])));
  if (decimal) {
    while (at != end &&
           (isDigit(*at) || *at == '.' || *at == 'e' || *at == 'E' ||
            ((*at == '-' || *at == '+') && (at[-1] == 'e' || at[-1] == 'E'))))
      ++at;
    double value = std::strtod(std::string(start, at).c_str(), nullptr);
    std::memcpy(&token.bits, &value, 8);
    token.kind = Token::Float64;
  } else {
    if (overflow || (token.kind == Token::Float32 && at - digits != 8) ||
        (token.kind == Token::Float64 && at - digits != 16))
      token.kind = Token::Bad;
    if (at != end && *at == 'U')
      ++at;
    if (at != end && isWord(*at))
      token.kind = Token::Bad;
  }
  token.text = std::string_view(start, at - start);
  token.end = at;
  return token;
}

Token Lexer::next() {
  skipSpace();
  Token token;
  token.line = line;
  token.end = at;
  if (at == end)
    return token;
  if (isWordStart(*at))
    return word(Token::Word);
  if (isDigit(*at))
    return number();
  if (*at == '.' && end - at > 1 && isWord(at[1])) {
    ++at;
    return word(Token::Dotted);
  }
  if (*at == '"') {
    const char *start = ++at;
    while (at != end && *at != '"' && *at != '\n')
      at += *at == '\\' && end - at > 1 && at[1] != '\n' ? 2 : 1;
    token.kind = at != end && *at == '"' ? Token::String : Token::Bad;
    token.text = std::string_view(start, at - start);
    if (token.kind == Token::String)
      ++at;
    token.end = at;
    return token;
  }
  token.kind =
      static_cast<unsigned char>(*at) < 0x80 ? Token::Punct : Token::Bad;
  token.text = std::string_view(at, 1);
  token.end = ++at;
  return token;
}
