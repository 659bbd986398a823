//===- ParseInstructions.cpp - instructions of a PTX text -----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/emulator/ptx/ParserImpl.h"

#include <cstring>

using namespace tenon;
using namespace tenon::emu::ptx;

bool Parser::guard(Instruction &instruction) {
  instruction.guardNegated = accept('!');
  std::string_view name;
  if (!word(name, "a predicate"))
    return false;
  std::optional<Names::Meaning> meaning = names->find(name);
  if (!meaning || meaning->kind != Names::Meaning::Register ||
      current->registers[meaning->index] != Type::Pred)
    return failAt(last.line,
                  "'" + rt::printable(std::string(name)) + "' is no predicate");
  instruction.guard = meaning->index;
  return true;
}

bool Parser::instruction(std::string_view opcode) {
  Instruction &made = pending;
  made.opcode = opcode;
  made.line = last.line;
  made.sourceFile = sourceFile;
  made.sourceLine = sourceLine;
  const char *end = last.end;
  while (token.is(Token::Dotted)) {
    made.modifiers.push_back(token.text);
    end = token.end;
    advance();
  }
  made.text = std::string_view(opcode.data(), end - opcode.data());
  if (!(opcode == "call" ? callOperands(made) : operands(made)) || !expect(';'))
    return false;
  if (opcode == "bra" || opcode == "brx") {
    if (made.operands.empty() || made.operands.back().kind != Operand::Symbol)
      return failAt(made.line, "a branch needs a label");
    branches.push_back({made.operands.back().name, names->scope(),
                        static_cast<uint32_t>(current->body.size()),
                        made.line});
  }
  current->body.push_back(std::move(made));
  return true;
}

bool Parser::operands(Instruction &instruction) {
  if (token.is(';'))
    return true;
  do {
    if (!operand(instruction.operands.emplace_back()))
      return false;
  } while (accept(','));
  return true;
}

/// call (returns), function, (arguments) [, prototype]; both groups may be
/// missing.
bool Parser::callOperands(Instruction &instruction) {
  if (token.is('(') &&
      !(callGroup(instruction, instruction.callReturns) && expect(',')))
    return false;
  if (!operand(instruction.operands.emplace_back()))
    return false;
  bool comma = accept(',');
  if (comma && token.is('(')) {
    if (!callGroup(instruction, instruction.callArguments))
      return false;
    comma = accept(',');
  }
  std::string_view prototype;
  return !comma || word(prototype, "a prototype");
}

bool Parser::callGroup(Instruction &instruction, uint32_t &count) {
  if (!expect('('))
    return false;
  size_t before = instruction.operands.size();
  if (!list(instruction.operands, ')'))
    return false;
  count = static_cast<uint32_t>(instruction.operands.size() - before);
  return true;
}

/// Operands without braces or brackets of their own, up to `close`.
bool Parser::list(std::vector<Operand> &parts, char close) {
  if (accept(close))
    return true;
  do {
    if (!plainOperand(parts.emplace_back()))
      return false;
  } while (accept(','));
  return expect(close);
}

bool Parser::operand(Operand &operand) {
  if (accept('['))
    return address(operand);
  if (accept('{')) {
    operand.kind = Operand::Vector;
    return list(operand.parts, '}');
  }
  return plainOperand(operand);
}

bool Parser::plainOperand(Operand &operand) {
  if (accept('!')) {
    operand.negated = true;
    return namedOperand(operand) &&
           (operand.kind == Operand::Register || fail("a predicate"));
  }
  if (token.is(Token::Word))
    return namedOperand(operand);
  return number(operand);
}

bool Parser::number(Operand &operand) {
  bool negative = accept('-');
  operand.bits = token.bits;
  if (token.is(Token::Integer)) {
    operand.kind = Operand::Integer;
    if (negative)
      operand.bits = ~operand.bits + 1;
  } else if (token.is(Token::Float32)) {
    operand.kind = Operand::Float32;
    operand.bits ^= uint64_t(negative) << 31;
  } else if (token.is(Token::Float64)) {
    operand.kind = Operand::Float64;
    operand.bits ^= uint64_t(negative) << 63;
  } else {
    return fail("an operand");
  }
  advance();
  return true;
}

/// +4, -4 and, as compilers print it, +-4.
bool Parser::offset(Operand &operand) {
  bool plus = accept('+');
  bool minus = accept('-');
  if (!plus && !minus)
    return true;
  uint64_t value;
  if (!integer(value, INT64_MAX, "an offset"))
    return false;
  operand.offset =
      minus ? -static_cast<int64_t>(value) : static_cast<int64_t>(value);
  return true;
}

bool Parser::namedOperand(Operand &operand) {
  if (!word(operand.name, "an operand"))
    return false;
  if (operand.name == "_") {
    operand.kind = Operand::Sink;
  } else if (std::optional<Names::Meaning> meaning =
                 names->find(operand.name)) {
    bool isRegister = meaning->kind == Names::Meaning::Register;
    operand.kind = isRegister ? Operand::Register : Operand::Symbol;
    (isRegister ? operand.reg : operand.variable) = meaning->index;
    if (!isRegister)
      return offset(operand);
  } else if (operand.name[0] == '%') {
    operand.kind = Operand::Special;
    if (token.is(Token::Dotted) && last.end + 1 == token.text.data()) {
      operand.name = std::string_view(operand.name.data(),
                                      token.end - operand.name.data());
      advance();
    }
  } else if (operand.name == "WARP_SZ") {
    operand.kind = Operand::Integer;
    operand.bits = 32;
  } else {
    operand.kind = Operand::Symbol;
    return offset(operand);
  }
  return !accept('|') || secondResult(operand);
}

/// The %q of %p|%q.
bool Parser::secondResult(Operand &operand) {
  std::string_view name;
  if (!word(name, "a predicate"))
    return false;
  if (name == "_")
    return true;
  std::optional<Names::Meaning> meaning = names->find(name);
  if (!meaning || meaning->kind != Names::Meaning::Register)
    return failAt(last.line, "expected a predicate after '|'");
  operand.second = meaning->index;
  return true;
}

/// [base + offset], [base + offset, {coordinates}] or [base, register].
bool Parser::address(Operand &operand) {
  if (!plainOperand(operand))
    return false;
  operand.base = operand.kind;
  operand.kind = Operand::Address;
  if (operand.negated || operand.second != Operand::None ||
      (operand.base != Operand::Register && operand.base != Operand::Symbol &&
       operand.base != Operand::Integer))
    return failAt(last.line, "expected an address");
  if (operand.base == Operand::Register && !offset(operand))
    return false;
  if (accept(',') && !(expect('{') && list(operand.parts, '}')))
    return false;
  return expect(']');
}
