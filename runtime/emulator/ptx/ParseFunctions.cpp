//===- ParseFunctions.cpp - functions and statements of a PTX text --------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/emulator/ptx/ParserImpl.h"

using namespace tenon;
using namespace tenon::emu::ptx;

namespace {
constexpr size_t maxDepth = 256;
}

bool Parser::extents(uint32_t (&out)[3]) {
  for (uint32_t &extent : out)
    extent = 1;
  for (uint32_t &extent : out) {
    uint64_t value;
    if (!integer(value, 1 << 20, "a number of threads or blocks"))
      return false;
    extent = static_cast<uint32_t>(value);
    if (!accept(','))
      break;
  }
  return true;
}

/// .maxntid 256, 1, 1 and the like, between a function's head and its body.
bool Parser::functionDirective() {
  std::string_view name = token.text;
  advance();
  uint64_t value;
  if (name == "maxntid") {
    uint32_t threads[3];
    if (!extents(threads))
      return false;
    uint64_t product = uint64_t(threads[0]) * threads[1];
    current->maxThreads = static_cast<uint32_t>(
        product * threads[2] > 1024 ? 1024 : product * threads[2]);
    return true;
  }
  if (name == "reqntid")
    return extents(current->reqThreads);
  if (name == "reqnctapercluster")
    return extents(current->reqCluster);
  if (name == "minnctapersm" || name == "maxnreg" || name == "maxclusterrank")
    return integer(value, UINT32_MAX, "a number");
  if (name == "explicitcluster" || name == "blocksareclusters" ||
      name == "noreturn" || name == "unified" || name == "unique_intid")
    return true;
  if (name == "pragma") {
    advance();
    return expect(';');
  }
  return failAt(last.line, "unknown directive '." +
                               rt::printable(std::string(name)) +
                               "' of a function");
}

bool Parser::function(bool entry) {
  auto made = std::make_unique<Function>();
  current = made.get();
  current->entry = entry;
  names.emplace();
  branches.clear();
  sourceFile = sourceLine = 0;
  if (!entry && !parameterList(current->returns))
    return false;
  current->line = token.line;
  if (!word(current->name, "a function's name") ||
      !parameterList(current->params))
    return false;
  while (token.is(Token::Dotted))
    if (!functionDirective())
      return false;
  if (!accept(';')) {
    current->defined = true;
    if (!body())
      return false;
  }
  module.functions.push_back(std::move(made));
  return true;
}

bool Parser::body() {
  if (!expect('{'))
    return false;
  size_t outer = names->depth();
  names->open();
  while (names->depth() != outer)
    if (!statement())
      return false;
  return resolveBranches();
}

bool Parser::statement() {
  if (accept('{')) {
    if (names->depth() == maxDepth)
      return failAt(last.line, "blocks are nested too deeply");
    names->open();
    return true;
  }
  if (accept('}')) {
    names->close();
    return true;
  }
  if (accept(';'))
    return true;
  if (token.is(Token::Dotted))
    return bodyDirective();
  pending = Instruction();
  if (accept('@') && !guard(pending))
    return false;
  std::string_view name;
  if (!word(name, "an instruction"))
    return false;
  if (pending.guard == Operand::None && accept(':'))
    return label(name);
  return instruction(name);
}

bool Parser::bodyDirective() {
  std::string_view name = token.text;
  advance();
  if (name == "reg")
    return registers();
  if (name == "loc")
    return location();
  if (std::optional<Space> space = spaceNamed(name))
    return localVariables(*space);
  if (name == "pragma") {
    advance();
    return expect(';');
  }
  return failAt(last.line, "unknown directive '." +
                               rt::printable(std::string(name)) +
                               "' in a function");
}

/// A label, or the name of a list of branch targets or of a call's prototype.
bool Parser::label(std::string_view name) {
  if (acceptDotted("branchtargets") || acceptDotted("calltargets")) {
    std::vector<std::string_view> targets;
    do {
      std::string_view target;
      if (!word(target, "a label"))
        return false;
      targets.push_back(target);
    } while (accept(','));
    return expect(';') &&
           (names->placeList(name, std::move(targets)) ||
            failAt(last.line, "'" + std::string(name) + "' is there twice"));
  }
  if (acceptDotted("callprototype")) {
    while (!token.is(';') && !token.is(Token::End))
      advance();
    return expect(';');
  }
  auto index = static_cast<uint32_t>(current->body.size());
  return names->placeLabel(name, index) ||
         failAt(last.line,
                "the label '" + std::string(name) + "' is there twice");
}

/// .loc file line column [, function_name label, inlined_at file line column]:
/// of inlined code, the place that called it says more.
bool Parser::location() {
  uint64_t file, line;
  if (!integer(file, UINT32_MAX, "a file's number") ||
      !integer(line, UINT32_MAX, "a line"))
    return false;
  unsigned own = last.line;
  while (!token.is(Token::End) && token.line == own) {
    bool inlined = token.is(Token::Word) && token.text == "inlined_at";
    advance();
    if (inlined && (!integer(file, UINT32_MAX, "a file's number") ||
                    !integer(line, UINT32_MAX, "a line")))
      return false;
  }
  sourceFile = static_cast<unsigned>(file);
  sourceLine = static_cast<unsigned>(line);
  return true;
}

bool Parser::resolveTarget(std::string_view name, const Names::LabelUse &use) {
  const uint32_t *target = names->label(name, use.scope);
  if (!target)
    return failAt(use.line, "there is no label '" +
                                rt::printable(std::string(name)) + "'");
  current->body[use.instruction].targets.push_back(*target);
  return true;
}

bool Parser::resolveBranches() {
  for (const Names::LabelUse &use : branches) {
    if (current->body[use.instruction].opcode != "brx") {
      if (!resolveTarget(use.name, use))
        return false;
      continue;
    }
    const std::vector<std::string_view> *list =
        names->list(use.name, use.scope);
    if (!list)
      return failAt(use.line, "there is no list of branch targets '" +
                                  rt::printable(std::string(use.name)) + "'");
    for (std::string_view name : *list)
      if (!resolveTarget(name, use))
        return false;
  }
  return true;
}
