//===- Parser.cpp - from PTX text to its data -----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/emulator/ptx/Parser.h"

#include "runtime/emulator/ptx/ParserImpl.h"

#include <cstdio>

using namespace tenon;
using namespace tenon::emu::ptx;

namespace {

struct TypeInfo {
  const char *name;
  uint8_t bytes;
  bool isSigned;
};

// In the order of Type.
constexpr TypeInfo types[] = {
    {"", 0, false},       {"pred", 0, false},   {"b8", 1, false},
    {"b16", 2, false},    {"b32", 4, false},    {"b64", 8, false},
    {"b128", 16, false},  {"u8", 1, false},     {"u16", 2, false},
    {"u32", 4, false},    {"u64", 8, false},    {"s8", 1, true},
    {"s16", 2, true},     {"s32", 4, true},     {"s64", 8, true},
    {"f16", 2, false},    {"f16x2", 4, false},  {"bf16", 2, false},
    {"bf16x2", 4, false}, {"tf32", 4, false},   {"f32", 4, false},
    {"f64", 8, false},    {"u16x2", 4, false},  {"s16x2", 4, true},
    {"f32x2", 8, false},  {"e4m3x2", 2, false}, {"e5m2x2", 2, false},
};

} // namespace

unsigned emu::ptx::sizeOf(Type type) {
  return types[static_cast<unsigned>(type)].bytes;
}

bool emu::ptx::isSigned(Type type) {
  return types[static_cast<unsigned>(type)].isSigned;
}

std::optional<Type> emu::ptx::typeNamed(std::string_view name) {
  for (size_t i = 1; i != std::size(types); ++i)
    if (name == types[i].name)
      return static_cast<Type>(i);
  return std::nullopt;
}

bool Parser::failAt(unsigned line, std::string what) {
  if (status.ok())
    status = TN_ERROR("line %u: %s", line, what.c_str());
  token = Token(); // End: every loop stops
  return false;
}

bool Parser::fail(const char *expected) {
  std::string found = token.is(Token::End)
                          ? "the end of the text"
                          : "'" + rt::printable(std::string(token.text)) + "'";
  return failAt(token.line,
                rt::format("expected %s, found %s", expected, found.c_str()));
}

bool Parser::expect(char c) {
  char text[] = {'\'', c, '\'', 0};
  return accept(c) || fail(text);
}

bool Parser::word(std::string_view &name, const char *what) {
  if (!token.is(Token::Word))
    return fail(what);
  name = token.text;
  advance();
  return true;
}

bool Parser::integer(uint64_t &value, uint64_t limit, const char *what) {
  if (!token.is(Token::Integer) || token.bits > limit)
    return fail(what);
  value = token.bits;
  advance();
  return true;
}

/// .loc and .file end with their line, not with a semicolon.
void Parser::skipLine() {
  unsigned line = last.line;
  while (!token.is(Token::End) && token.line == line)
    advance();
}

bool Parser::skipBlock() {
  if (!expect('{'))
    return false;
  for (size_t depth = 1; depth != 0; advance()) {
    if (token.is(Token::End))
      return fail("'}'");
    depth += token.is('{');
    depth -= token.is('}');
  }
  return true;
}

bool Parser::versionDirective() {
  std::string text(token.text);
  if (!token.is(Token::Float64) ||
      std::sscanf(text.c_str(), "%u.%u", &module.isaMajor, &module.isaMinor) !=
          2)
    return fail("a version such as 9.0");
  advance();
  return true;
}

bool Parser::targetDirective() {
  do {
    std::string_view name;
    if (!word(name, "a target such as sm_80"))
      return false;
    if (name.substr(0, 3) == "sm_")
      module.target = name;
  } while (accept(','));
  return true;
}

bool Parser::fileDirective() {
  uint64_t number = 0;
  if (!integer(number, UINT32_MAX, "a file's number"))
    return false;
  if (!token.is(Token::String))
    return fail("a file's name");
  module.files.emplace_back(static_cast<unsigned>(number), token.text);
  advance();
  skipLine();
  return true;
}

bool Parser::moduleDirective(std::string_view directive) {
  uint64_t value = 0;
  if (directive == "version")
    return versionDirective();
  if (directive == "target")
    return targetDirective();
  if (directive == "address_size")
    return integer(value, 64, "32 or 64") &&
           (value == 64 || failAt(last.line, "only 64-bit PTX can be run"));
  if (directive == "file")
    return fileDirective();
  if (directive == "pragma") {
    if (!token.is(Token::String))
      return fail("a string");
    advance();
    return expect(';');
  }
  if (directive == "section") {
    advance(); // its name
    return skipBlock();
  }
  return failAt(last.line, "unknown directive '." +
                               rt::printable(std::string(directive)) + "'");
}

bool Parser::topLevel() {
  if (!token.is(Token::Dotted))
    return fail("a directive");
  bool external = false;
  while (token.is(Token::Dotted) &&
         (token.text == "visible" || token.text == "extern" ||
          token.text == "weak" || token.text == "common")) {
    external |= token.text == "extern";
    advance();
  }
  std::string_view directive = token.text;
  bool dotted = token.is(Token::Dotted);
  if (!dotted)
    return fail("a directive");
  advance();
  if (directive == "entry" || directive == "func")
    return function(directive == "entry");
  if (std::optional<Space> space = spaceNamed(directive))
    return moduleVariables(*space, external);
  return moduleDirective(directive);
}

rt::Status Parser::run() {
  while (status.ok() && !token.is(Token::End))
    topLevel();
  if (status.ok() && module.isaMajor == 0)
    return TN_ERROR("line 1: this is no PTX text: it has no .version");
  return status;
}

rt::Result<Module> emu::ptx::parse(std::string_view text) {
  Module module;
  module.text = std::make_unique<std::string>(text);
  rt::Status status = Parser(module).run();
  if (!status.ok())
    return status;
  return module;
}
