//===- Lexer.h - the words of a PTX text ----------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_EMULATOR_PTX_LEXER_H
#define TENON_RUNTIME_EMULATOR_PTX_LEXER_H

#include <cstdint>
#include <string_view>

namespace tenon::emu::ptx {

struct Token {
  enum Kind : uint8_t {
    End,
    Word,    // a name, a register (%r1), an opcode's first part
    Dotted,  // .f32, .L1::no_allocate, .entry; `text` is without the dot
    Integer, // `bits`
    Float32, // 0f3F800000: `bits`
    Float64, // 0d..., or a decimal: `bits`
    String,  // without its quotes
    Punct,   // one character
    Bad,     // what no PTX text has
  };
  Kind kind = End;
  std::string_view text;
  uint64_t bits = 0;
  unsigned line = 0;
  const char *end = nullptr; // the first character after it

  bool is(char c) const { return kind == Punct && text[0] == c; }
  bool is(Kind other) const { return kind == other; }
};

/// Splits a text into tokens, one at a time; comments and spaces vanish.
class Lexer {
public:
  explicit Lexer(std::string_view text)
      : at(text.data()), end(text.data() + text.size()) {}

  Token next();

private:
  void skipSpace();
  Token number();
  Token word(Token::Kind kind);

  const char *at;
  const char *end;
  unsigned line = 1;
};

} // namespace tenon::emu::ptx

#endif // TENON_RUNTIME_EMULATOR_PTX_LEXER_H
