//===- ParseVariables.cpp - declarations in a PTX text --------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/emulator/ptx/ParserImpl.h"

#include <cstring>

using namespace tenon;
using namespace tenon::emu::ptx;

namespace {

constexpr uint64_t maxBytes = uint64_t(1) << 40;
constexpr uint64_t maxRegisters = 1 << 20;

uint64_t alignTo(uint64_t value, uint64_t align) {
  return (value + align - 1) / align * align;
}

} // namespace

std::optional<Space> Parser::spaceNamed(std::string_view name) {
  if (name == "global")
    return Space::Global;
  if (name == "const")
    return Space::Const;
  if (name == "shared")
    return Space::Shared;
  if (name == "local")
    return Space::Local;
  if (name == "param")
    return Space::Param;
  return std::nullopt;
}

/// .align 16 .b8, .u64 .ptr .global .align 1, .v4 .f32: what is between the
/// space and the name.
bool Parser::variableHead(Variable &variable) {
  bool typed = false, pointer = false;
  uint64_t lanes = 1;
  while (token.is(Token::Dotted)) {
    std::string_view text = token.text;
    advance();
    uint64_t value;
    if (text == "align") {
      if (!integer(value, 1 << 20, "an alignment"))
        return false;
      if (value == 0 || (value & (value - 1)) != 0)
        return failAt(last.line, "an alignment must be a power of two");
      if (!pointer)
        variable.align = static_cast<unsigned>(value);
    } else if (text == "ptr") {
      pointer = true;
    } else if (text == "v2" || text == "v4") {
      lanes = text[1] - '0';
    } else if (text == "attribute") {
      if (!expect('('))
        return false;
      while (!token.is(')') && !token.is(Token::End))
        advance();
      if (!expect(')'))
        return false;
    } else if (std::optional<Type> type = typeNamed(text)) {
      variable.type = *type;
      typed = true;
    } else if (!pointer || !spaceNamed(text)) {
      return failAt(last.line, "unknown word '." +
                                   rt::printable(std::string(text)) +
                                   "' in a declaration");
    }
  }
  if (!typed || sizeOf(variable.type) == 0)
    return fail("a type");
  variable.bytes = sizeOf(variable.type) * lanes;
  if (variable.align < variable.bytes && variable.align == 1)
    variable.align = static_cast<unsigned>(variable.bytes);
  return true;
}

bool Parser::dimensions(Variable &variable) {
  while (accept('[')) {
    if (accept(']')) {
      variable.unsized = true;
      continue;
    }
    uint64_t count;
    if (!integer(count, maxBytes, "an array's size") || !expect(']'))
      return false;
    if (count != 0 && variable.bytes > maxBytes / count)
      return failAt(last.line, "the array is too large");
    variable.bytes *= count;
  }
  return true;
}

bool Parser::variableName(Variable &variable) {
  variable.line = token.line;
  return word(variable.name, "a variable's name") && dimensions(variable);
}

/// A number, a symbol, symbol+4 or generic(symbol).
bool Parser::initialValue(Variable &variable) {
  Initial initial;
  bool negative = accept('-');
  if (token.is(Token::Word)) {
    bool generic = token.text == "generic";
    advance();
    initial.symbol = last.text;
    if (generic &&
        !(expect('(') && word(initial.symbol, "a symbol") && expect(')')))
      return false;
    if (accept('+') && !integer(initial.bits, maxBytes, "an offset"))
      return false;
  } else if (token.is(Token::Integer) || token.is(Token::Float32) ||
             token.is(Token::Float64)) {
    initial.bits = token.bits;
    if (token.is(Token::Float64) && sizeOf(variable.type) == 4) {
      double value;
      std::memcpy(&value, &token.bits, 8);
      float narrow = static_cast<float>(value);
      initial.bits = 0;
      std::memcpy(&initial.bits, &narrow, 4);
    }
    if (negative)
      initial.bits = ~initial.bits + 1;
    advance();
  } else {
    return fail("a value");
  }
  variable.initial.push_back(initial);
  return true;
}

/// `= 5` or `= {1, 2, {3, 4}}`; nested braces only group.
bool Parser::initializer(Variable &variable) {
  if (!accept('='))
    return true;
  size_t depth = 0;
  do {
    while (accept('{'))
      ++depth;
    if (!token.is('}') && !initialValue(variable))
      return false;
    while (depth != 0 && accept('}'))
      --depth;
  } while (depth != 0 && accept(','));
  if (depth != 0)
    return fail("'}'");
  if (variable.unsized && !variable.initial.empty()) {
    variable.bytes = variable.initial.size() * sizeOf(variable.type);
    variable.unsized = false;
  }
  if (variable.initial.size() > variable.bytes / sizeOf(variable.type))
    return failAt(last.line, "more values than the variable has room for");
  return true;
}

bool Parser::moduleVariables(Space space, bool external) {
  Variable head;
  head.space = space;
  head.external = external;
  if (!variableHead(head))
    return false;
  do {
    Variable variable = head;
    if (!variableName(variable) || !initializer(variable))
      return false;
    module.variables.push_back(std::move(variable));
  } while (accept(','));
  return expect(';');
}

/// Gives the variable its place in the thread's local memory, or in an entry's
/// parameter block, and its name a meaning.
bool Parser::addLocal(Variable variable) {
  bool parameter = variable.space == Space::Param && current->entry &&
                   current->body.empty() && names->depth() == 1;
  uint64_t &end = parameter ? current->paramBytes : current->localBytes;
  if (variable.space == Space::Local || variable.space == Space::Param) {
    variable.offset = alignTo(end, variable.align);
    end = variable.offset + variable.bytes;
    if (end > maxBytes)
      return failAt(variable.line, "too many variables");
  }
  auto index = static_cast<uint32_t>(current->variables.size());
  if (!names->declare(variable.name, {Names::Meaning::Variable, index, 0}))
    return failAt(variable.line,
                  "'" + std::string(variable.name) + "' is declared twice");
  current->variables.push_back(std::move(variable));
  return true;
}

bool Parser::localVariables(Space space) {
  Variable head;
  head.space = space;
  if (!variableHead(head))
    return false;
  do {
    Variable variable = head;
    if (!variableName(variable) || !initializer(variable))
      return false;
    if (space == Space::Global || space == Space::Const)
      module.variables.push_back(std::move(variable));
    else if (!addLocal(std::move(variable)))
      return false;
  } while (accept(','));
  return expect(';');
}

bool Parser::registers() {
  if (!token.is(Token::Dotted))
    return fail("a register type");
  std::optional<Type> type = typeNamed(token.text);
  if (!type || *type == Type::B8)
    return fail("a register type");
  advance();
  do {
    std::string_view name;
    if (!word(name, "a register's name"))
      return false;
    uint64_t count = 0;
    if (accept('<') &&
        (!integer(count, maxRegisters, "a number of registers") ||
         !expect('>')))
      return false;
    uint64_t added = count == 0 ? 1 : count;
    if (current->registers.size() + added > maxRegisters)
      return failAt(last.line, "too many registers");
    auto first = static_cast<uint32_t>(current->registers.size());
    current->registers.resize(first + added, *type);
    if (!names->declare(name, {Names::Meaning::Register, first,
                               static_cast<uint32_t>(count)}))
      return failAt(last.line, "'" + std::string(name) + "' is declared twice");
  } while (accept(','));
  return expect(';');
}

/// (.param .b32 a, .param .align 8 .b8 b[16]); old texts declare registers,
/// which no compiler does any more.
bool Parser::parameterList(std::vector<uint32_t> &list) {
  if (!accept('('))
    return true;
  if (accept(')'))
    return true;
  do {
    if (!acceptDotted("param"))
      return fail("'.param'");
    Variable variable;
    variable.space = Space::Param;
    if (!variableHead(variable) || !variableName(variable))
      return false;
    list.push_back(static_cast<uint32_t>(current->variables.size()));
    if (!addLocal(std::move(variable)))
      return false;
  } while (accept(','));
  return expect(')');
}
