//===- JinjaLexer.cpp - the words of chat templates
//-------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/tokenizer/JinjaLexer.h"

#include "ir/support/Diag.h"
#include "llvm/ADT/StringExtras.h"

namespace tenon::codegen::jinja {

using llvm::StringRef;

namespace {

class Lexer {
public:
  explicit Lexer(StringRef source) : rest(source) {}

  llvm::Expected<std::vector<Token>> run() {
    while (!rest.empty() && problem.empty()) {
      size_t at = nextTag();
      takeText(at);
      if (!rest.empty())
        takeTag();
    }
    if (!problem.empty())
      return userError("{0}", problem);
    return std::move(tokens);
  }

private:
  StringRef rest;
  std::vector<Token> tokens;
  std::string problem;
  bool stripNext = false, dropNewline = false;

  size_t nextTag() const {
    size_t at = StringRef::npos;
    for (StringRef open : {"{{", "{%", "{#"})
      at = std::min(at, rest.find(open));
    return at;
  }

  void takeText(size_t at) {
    StringRef text = rest.take_front(at);
    rest = rest.drop_front(text.size());
    if (stripNext)
      text = text.ltrim(" \t\r\n");
    else if (dropNewline)
      text.consume_front("\n");
    stripNext = dropNewline = false;
    StringRef mark = rest.substr(2, 1);
    if (mark == "-")
      text = text.rtrim(" \t\r\n");
    else if (mark != "+" && !rest.empty() && rest[1] != '{') {
      StringRef line = text.rtrim(" \t");
      if (line.empty() ? atLineStart() : line.ends_with("\n"))
        text = line;
    }
    if (!text.empty())
      tokens.push_back({Token::Text, text.str()});
  }

  /// Whether nothing stands before the text on its line.
  bool atLineStart() const { return tokens.empty() || lineEnded; }
  bool lineEnded = false;

  void takeTag() {
    char kind = rest[1];
    rest = rest.drop_front(2);
    if (!rest.consume_front("-"))
      rest.consume_front("+");
    if (kind == '#') {
      size_t end = rest.find("#}");
      if (end == StringRef::npos)
        return fail("a comment does not end");
      bool strip = end > 0 && rest[end - 1] == '-';
      rest = rest.drop_front(end + 2);
      return close(strip, true);
    }
    tokens.push_back(
        {kind == '{' ? Token::BeginOutput : Token::BeginBlock, ""});
    StringRef closing = kind == '{' ? "}}" : "%}";
    unsigned braces = 0;
    while (problem.empty()) {
      rest = rest.ltrim(" \t\r\n");
      if (rest.empty())
        return fail("a tag does not end");
      bool strip =
          rest.starts_with("-") && rest.drop_front().starts_with(closing);
      if (strip)
        rest = rest.drop_front();
      if (braces == 0 && rest.consume_front(closing)) {
        tokens.push_back({Token::End, ""});
        return close(strip, kind == '%');
      }
      if (rest[0] == '{')
        ++braces;
      if (rest[0] == '}' && braces > 0)
        --braces;
      takeToken();
    }
  }

  void close(bool strip, bool block) {
    stripNext = strip;
    dropNewline = block && !strip;
    lineEnded = (dropNewline && rest.starts_with("\n")) ||
                (strip && rest.ltrim(" \t\r").starts_with("\n"));
  }

  void takeToken() {
    char c = rest[0];
    if (llvm::isAlpha(c) || c == '_') {
      size_t n =
          rest.find_if_not([](char d) { return llvm::isAlnum(d) || d == '_'; });
      return push(Token::Name, n);
    }
    if (llvm::isDigit(c))
      return push(Token::Number,
                  rest.find_if_not([](char d) { return llvm::isDigit(d); }));
    if (c == '"' || c == '\'')
      return takeString(c);
    for (StringRef two : {"==", "!=", "<=", ">=", "//"})
      if (rest.starts_with(two))
        return push(Token::Symbol, 2);
    if (StringRef("+-*/%~<>=.,:|()[]{}").contains(c))
      return push(Token::Symbol, 1);
    fail("unexpected '" + rest.take_front(10).str() + "'");
  }

  void push(Token::Kind kind, size_t n) {
    tokens.push_back({kind, rest.take_front(n).str()});
    rest = rest.drop_front(std::min(n, rest.size()));
  }

  void takeString(char quote) {
    std::string text;
    rest = rest.drop_front();
    while (!rest.empty() && rest[0] != quote) {
      char c = rest[0];
      rest = rest.drop_front();
      if (c == '\\' && !rest.empty()) {
        char d = rest[0];
        rest = rest.drop_front();
        c = d == 'n' ? '\n' : d == 't' ? '\t' : d == 'r' ? '\r' : d;
        if (d != c || d == '\\' || d == '\'' || d == '"') {
          text += c;
          continue;
        }
        text += '\\'; // Python keeps what it does not know
      }
      text += c;
    }
    if (rest.empty())
      return fail("a string does not end");
    rest = rest.drop_front();
    tokens.push_back({Token::String, text});
  }

  void fail(const std::string &why) {
    if (problem.empty())
      problem = why;
  }
};

} // namespace

llvm::Expected<std::vector<Token>> lex(StringRef source) {
  return Lexer(source).run();
}

} // namespace tenon::codegen::jinja
