//===- ParserImpl.h - the parser's parts ----------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_EMULATOR_PTX_PARSERIMPL_H
#define TENON_RUNTIME_EMULATOR_PTX_PARSERIMPL_H

#include "runtime/emulator/ptx/Lexer.h"
#include "runtime/emulator/ptx/Names.h"
#include "runtime/emulator/ptx/Ptx.h"
#include "runtime/support/Status.h"

#include <span>

namespace tenon::emu::ptx {

/// A recursive-descent parser whose nesting is that of the grammar's rules, not
/// of the text: blocks are counted, not recursed into. After the first error
/// every rule returns false at once.
class Parser {
public:
  explicit Parser(Module &module)
      : module(module), lexer(*module.text), token(lexer.next()) {}

  /// Parser.cpp: the whole text.
  rt::Status run();

private:
  // Tokens.
  void advance() {
    last = token;
    token = lexer.next();
  }
  bool fail(const char *expected);
  bool failAt(unsigned line, std::string what);
  bool accept(char c) {
    if (!token.is(c))
      return false;
    advance();
    return true;
  }
  bool acceptDotted(std::string_view word) {
    if (!token.is(Token::Dotted) || token.text != word)
      return false;
    advance();
    return true;
  }
  bool expect(char c);
  bool word(std::string_view &name, const char *what);
  bool integer(uint64_t &value, uint64_t limit, const char *what);
  void skipLine();
  bool skipBlock();

  // Parser.cpp: module level.
  bool topLevel();
  bool moduleDirective(std::string_view directive);
  bool fileDirective();
  bool versionDirective();
  bool targetDirective();

  // ParseVariables.cpp.
  static std::optional<Space> spaceNamed(std::string_view name);
  bool variableHead(Variable &variable);
  bool variableName(Variable &variable);
  bool dimensions(Variable &variable);
  bool initializer(Variable &variable);
  bool initialValue(Variable &variable);
  bool moduleVariables(Space space, bool external);
  bool localVariables(Space space);
  bool addLocal(Variable variable);
  bool registers();
  bool parameterList(std::vector<uint32_t> &list);

  // ParseFunctions.cpp.
  bool function(bool entry);
  bool functionDirective();
  bool extents(uint32_t (&out)[3]);
  bool body();
  bool statement();
  bool bodyDirective();
  bool label(std::string_view name);
  bool location();
  bool resolveBranches();
  bool resolveTarget(std::string_view name, const Names::LabelUse &use);

  // ParseInstructions.cpp.
  bool instruction(std::string_view opcode);
  bool guard(Instruction &instruction);
  bool operands(Instruction &instruction);
  bool callOperands(Instruction &instruction);
  bool callGroup(Instruction &instruction, uint32_t &count);
  bool operand(Operand &operand);
  bool plainOperand(Operand &operand);
  bool namedOperand(Operand &operand);
  bool secondResult(Operand &operand);
  bool number(Operand &operand);
  bool offset(Operand &operand);
  bool address(Operand &operand);
  bool list(std::vector<Operand> &parts, char close);

  Module &module;
  Lexer lexer;
  Token token;
  Token last;
  rt::Status status;

  // Of the function being parsed.
  Function *current = nullptr;
  std::optional<Names> names;
  std::vector<Names::LabelUse> branches;
  Instruction pending; // holds the guard and the .loc of the next instruction
  unsigned sourceFile = 0, sourceLine = 0;
};

} // namespace tenon::emu::ptx

#endif // TENON_RUNTIME_EMULATOR_PTX_PARSERIMPL_H
