//===- Parser.cpp - reading the text form --------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The grammar, with `x*` for any number of x, `x,*` for a list with commas:
///
///   file    = ["stage" name] ["dims" "{" symbol,* "}"] func*
///   symbol  = name [":" integer ("..." | ".." integer)]
///   func    = "func" @name "(" input,* ")" "->" "(" output,* ")"
///             ["where" (dim "==" dim [loc]),*] block
///   input   = %name [string] ":" type
///   output  = [name ":"] type
///   block   = "{" op* "}"
///   op      = [%name,* "="] mnemonic (literal | operand,*) [attrs] [region]
///             [":" type,*] [loc]
///   operand = %name | "_"
///   attrs   = "{" (name "=" value),* "}"
///   region  = ["epilogue"] "(" (%name ":" type),* ")" block
///   type    = element ["[" dim,* "]"]
///   literal = "[" number,* "]" | "splat" "(" number ")" | "iota"
///           | "random" "(" "seed" "=" integer ")" | "dense" "<" string ">"
///   loc     = "loc" "(" string,* ")"
///
//===----------------------------------------------------------------------===//

#include "ir/Builder.h"
#include "ir/text/AttrsParser.h"
#include "ir/text/Literals.h"
#include "ir/text/Names.h"
#include "ir/text/Text.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace llvm;

namespace tenon::ir {

namespace {

/// Regions inside regions; the verifier allows one level.
constexpr unsigned maxRegionDepth = 8;

/// The values that a block's ops can name.
using Scope = StringMap<Value *>;

struct Name {
  std::string text;
  const char *begin;
};

/// An op while it is read.
struct PendingOp {
  OpKind kind;
  const char *begin;
  SmallVector<Name, 2> results;
  SmallVector<Value *, 4> operands;
  std::unique_ptr<Attrs> attrs;
  std::unique_ptr<Block> region;
  SmallVector<TensorType, 2> types;
  const char *typesBegin = nullptr;
  Location loc;
};

class Parser {
public:
  Parser(MemoryBufferRef buffer, ConstantLookup lookup)
      : buffer(buffer), cursor(buffer), lookup(lookup) {}
  Expected<ParsedFile> run();

private:
  bool header();
  bool stage();
  bool symbol();
  bool range(DimRange &range);
  bool function();
  bool input(Func &func, Scope &scope);
  bool output(SmallVectorImpl<TensorType> &types, Func &func);
  bool constraint(Func &func);
  bool checkOutputs(const Func &func, ArrayRef<TensorType> types,
                    const char *begin);
  bool block(Block &block, Scope &scope, unsigned depth);
  bool op(Block &block, Scope &scope, unsigned depth);
  bool resultNames(PendingOp &op);
  bool literal(PendingOp &op);
  bool operands(PendingOp &op, const Scope &scope);
  bool region(PendingOp &op, unsigned depth);
  bool resultTypes(PendingOp &op);
  bool finish(PendingOp &op, Block &block, Scope &scope);
  bool location(Location &loc);
  bool define(Scope &scope, const Name &name, Value *value);
  void declareSymbolsOf(ArrayRef<Dim> dims);
  void declareSymbolsOf(const Op &op);

  MemoryBufferRef buffer;
  Cursor cursor;
  ConstantLookup lookup;
  std::unique_ptr<Module> module = std::make_unique<Module>();
  StringSet<> declared, funcNames;
  Func *currentFunc = nullptr;
};

//===----------------------------------------------------------------------===//
// Header
//===----------------------------------------------------------------------===//

bool Parser::header() {
  if (cursor.consumeKeyword("stage") && !stage())
    return false;
  if (!cursor.consumeKeyword("dims"))
    return true;
  if (!cursor.expect("{", "after 'dims'"))
    return false;
  if (cursor.consumeIf("}"))
    return true;
  do {
    if (!symbol())
      return false;
  } while (cursor.consumeIf(","));
  return cursor.expect("}", "at the end of the dimensions");
}

bool Parser::stage() {
  for (Stage stage : {Stage::Imported, Stage::Canonical, Stage::Fused}) {
    if (cursor.consumeKeyword(stageName(stage))) {
      module->stage = stage;
      return true;
    }
  }
  return cursor.expected("a stage: imported, canonical or fused");
}

bool Parser::symbol() {
  const char *begin = cursor.token().begin;
  std::string name;
  DimRange range;
  if (!cursor.name(name, "the name of a dimension"))
    return false;
  if (!declared.insert(name).second)
    return cursor.failAt(begin, "dimension '" + name + "' is declared twice");
  if (cursor.consumeIf(":") && !this->range(range))
    return false;
  module->symbols.push_back({name, range});
  return true;
}

bool Parser::range(DimRange &range) {
  const char *begin = cursor.token().begin;
  if (!cursor.integer(range.low))
    return false;
  if (!cursor.consumeIf("...")) {
    if (!cursor.expect("..", "or '...' after the lower bound") ||
        !cursor.integer(range.high))
      return false;
  }
  if (range.low < 0 || range.high < range.low)
    return cursor.failAt(begin, "a range goes from 0 or more to no less");
  return true;
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

bool Parser::define(Scope &scope, const Name &name, Value *value) {
  if (!scope.try_emplace(name.text, value).second)
    return cursor.failAt(name.begin, "%" + name.text + " is defined twice");
  if (isValueName(name.text))
    value->name = name.text;
  return true;
}

/// Symbols of a signature, and those that ops define, need no declaration.
void Parser::declareSymbolsOf(ArrayRef<Dim> dims) {
  for (Dim dim : dims)
    dim.collectSymbols([&](StringRef symbol) {
      if (declared.insert(symbol).second)
        module->symbols.push_back({symbol.str(), {}});
    });
}

void Parser::declareSymbolsOf(const Op &op) {
  if (op.kind() == OpKind::BindDims)
    declareSymbolsOf(op.attrs<BindDimsAttrs>().symbols);
  if (op.kind() == OpKind::NonZero)
    declareSymbolsOf(op.attrs<CountAttrs>().count);
}

bool Parser::input(Func &func, Scope &scope) {
  const Token token = cursor.token();
  if (token.kind != Token::Value)
    return cursor.expected("an input such as %x: f32[2]");
  cursor.advance();
  Port port{token.text.str()};
  TensorType type;
  if (cursor.token().kind == Token::String && !cursor.string(port.name))
    return false;
  if (!cursor.expect(":", "before the type of an input") || !cursor.type(type))
    return false;
  declareSymbolsOf(type.shape);
  func.inputs.push_back(std::move(port));
  return define(scope, {token.text.str(), token.begin},
                func.body.addArgument(type));
}

bool Parser::output(SmallVectorImpl<TensorType> &types, Func &func) {
  // `name: type` or a type alone, which starts with an identifier too.
  const Token token = cursor.token();
  Port port{"output" + std::to_string(func.outputs.size())};
  if (token.kind == Token::String || token.kind == Token::Identifier) {
    cursor.advance();
    bool isNamed = cursor.is(":");
    cursor.moveTo(token.begin);
    if (isNamed) {
      if (!cursor.name(port.name, "the name of an output"))
        return false;
      cursor.advance();
    }
  }
  func.outputs.push_back(std::move(port));
  return cursor.type(types.emplace_back());
}

bool Parser::constraint(Func &func) {
  DimConstraint constraint;
  if (!cursor.dim(constraint.a) || !cursor.expect("==", "in a constraint") ||
      !cursor.dim(constraint.b) || !location(constraint.loc))
    return false;
  func.constraints.push_back(std::move(constraint));
  return true;
}

bool Parser::checkOutputs(const Func &func, ArrayRef<TensorType> types,
                          const char *begin) {
  const Op *terminator = func.body.terminator();
  if (!terminator || terminator->kind() != OpKind::Return)
    return cursor.failAt(begin, "@" + func.name + " does not end in a return");
  ArrayRef<Value *> values = terminator->operands();
  if (values.size() != types.size())
    return cursor.failAt(begin,
                         "@" + func.name + " declares " + Twine(types.size()) +
                             " outputs and returns " + Twine(values.size()));
  for (auto [value, type] : zip_equal(values, types)) {
    if (value->type == type)
      continue;
    std::string text;
    raw_string_ostream(text) << "output is declared as " << type
                             << ", but what is returned is " << value->type;
    return cursor.failAt(begin, text);
  }
  return true;
}

bool Parser::function() {
  const char *begin = cursor.token().begin;
  if (!cursor.consumeKeyword("func"))
    return cursor.expected("'func'");
  if (cursor.token().kind != Token::Function)
    return cursor.expected("the name of a function, such as @main");
  std::string name = cursor.token().text.str();
  if (name.front() == '"') {
    cursor.moveTo(cursor.token().begin + 1);
    if (!cursor.string(name))
      return false;
  } else {
    cursor.advance();
  }
  if (!funcNames.insert(name).second)
    return cursor.failAt(begin, "function @" + name + " is defined twice");
  currentFunc = module->funcs.emplace_back(std::make_unique<Func>(name)).get();
  Func &func = *currentFunc;

  Scope scope;
  SmallVector<TensorType> outputs;
  auto commaList = [&](function_ref<bool()> item) {
    if (cursor.consumeIf(")"))
      return true;
    do {
      if (!item())
        return false;
    } while (cursor.consumeIf(","));
    return cursor.expect(")", "at the end of the list");
  };
  if (!cursor.expect("(", "after the function's name") ||
      !commaList([&] { return input(func, scope); }) ||
      !cursor.expect("->", "after the inputs") ||
      !cursor.expect("(", "before the outputs") ||
      !commaList([&] { return output(outputs, func); }))
    return false;
  if (cursor.consumeKeyword("where")) {
    do {
      if (!constraint(func))
        return false;
    } while (cursor.consumeIf(","));
  }
  return block(func.body, scope, 0) && checkOutputs(func, outputs, begin);
}

bool Parser::block(Block &block, Scope &scope, unsigned depth) {
  if (!cursor.expect("{", "before the ops"))
    return false;
  while (!cursor.consumeIf("}")) {
    if (block.terminator())
      return cursor.fail("nothing may come after '" +
                         opDef(*block.terminator()).mnemonic + "'");
    if (!op(block, scope, depth))
      return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

bool Parser::op(Block &block, Scope &scope, unsigned depth) {
  PendingOp op;
  if (!resultNames(op))
    return false;
  op.begin = cursor.token().begin;
  StringRef mnemonic = cursor.token().text;
  std::optional<OpKind> kind = cursor.token().kind == Token::Identifier
                                   ? parseMnemonic(mnemonic)
                                   : std::nullopt;
  if (!kind)
    return cursor.expected("the name of an op");
  op.kind = *kind;
  op.attrs = opDef(*kind).makeAttrs();
  cursor.advance();
  if (op.kind == OpKind::Const)
    return literal(op) && location(op.loc) && finish(op, block, scope);
  return operands(op, scope) && parseAttrs(cursor, mnemonic, *op.attrs) &&
         region(op, depth) && resultTypes(op) && location(op.loc) &&
         finish(op, block, scope);
}

bool Parser::resultNames(PendingOp &op) {
  if (cursor.token().kind != Token::Value)
    return true;
  do {
    if (cursor.token().kind != Token::Value)
      return cursor.expected("the name of a result");
    op.results.push_back({cursor.token().text.str(), cursor.token().begin});
    cursor.advance();
  } while (cursor.consumeIf(","));
  return cursor.expect("=", "after the results");
}

/// A constant's elements are read once its type, which comes after, is known.
bool Parser::literal(PendingOp &op) {
  const char *begin = cursor.token().begin;
  if (!cursor.skipTo([](const Token &token) { return token.is(":"); }))
    return false;
  const char *colon = cursor.token().begin;
  cursor.advance();
  op.typesBegin = cursor.token().begin;
  TensorType type;
  if (!cursor.type(type))
    return false;
  const char *end = cursor.token().begin;
  cursor.moveTo(begin);
  ConstantRef value;
  if (!parseConstant(cursor, type, lookup, value))
    return false;
  if (cursor.token().begin != colon)
    return cursor.expected("':' and the type after the constant");
  cursor.moveTo(end);
  static_cast<ConstAttrs &>(*op.attrs).value = std::move(value);
  op.types.push_back(std::move(type));
  return true;
}

bool Parser::operands(PendingOp &op, const Scope &scope) {
  if (cursor.token().kind != Token::Value && !cursor.token().isKeyword("_"))
    return true;
  // An op without operands may be followed by the next op's results.
  if (operandSpecs(op.kind).empty())
    return true;
  do {
    if (cursor.consumeKeyword("_")) {
      op.operands.push_back(nullptr);
      continue;
    }
    if (cursor.token().kind != Token::Value)
      return cursor.expected("an operand");
    auto it = scope.find(cursor.token().text);
    if (it == scope.end())
      return cursor.fail("%" + cursor.token().text + " is not defined here");
    op.operands.push_back(it->second);
    cursor.advance();
  } while (cursor.consumeIf(","));
  return true;
}

bool Parser::region(PendingOp &op, unsigned depth) {
  const OpDef &def = opDef(op.kind);
  const char *begin = cursor.token().begin;
  bool isEpilogue = cursor.consumeKeyword("epilogue");
  if (!isEpilogue && !cursor.is("("))
    return true;
  if (!def.is(isEpilogue ? HasEpilogue : HasBody))
    return cursor.failAt(begin, "'" + def.mnemonic + "' has no " +
                                    (isEpilogue ? "epilogue" : "body"));
  if (depth == maxRegionDepth)
    return cursor.failAt(begin, "regions are nested too deeply");
  op.region = std::make_unique<Block>();
  Scope scope;
  if (!cursor.expect("(", "before the region's arguments"))
    return false;
  while (!cursor.is(")")) {
    Name name{cursor.token().text.str(), cursor.token().begin};
    TensorType type;
    if (cursor.token().kind != Token::Value)
      return cursor.expected("an argument such as %x: f32");
    cursor.advance();
    if (!cursor.expect(":", "before the argument's type") ||
        !cursor.type(type) ||
        !define(scope, name, op.region->addArgument(type)))
      return false;
    if (!cursor.consumeIf(","))
      break;
  }
  return cursor.expect(")", "after the region's arguments") &&
         block(*op.region, scope, depth + 1);
}

bool Parser::resultTypes(PendingOp &op) {
  op.typesBegin = cursor.token().begin;
  if (!cursor.consumeIf(":"))
    return op.results.empty() ||
           cursor.expected("':' and the types of the results");
  op.typesBegin = cursor.token().begin;
  do {
    if (!cursor.type(op.types.emplace_back()))
      return false;
  } while (cursor.consumeIf(","));
  return true;
}

bool Parser::location(Location &loc) {
  if (!cursor.consumeKeyword("loc"))
    return true;
  if (!cursor.expect("(", "after 'loc'"))
    return false;
  do {
    if (!cursor.string(loc.nodes.emplace_back()))
      return false;
  } while (cursor.consumeIf(","));
  return cursor.expect(")", "after the locations");
}

/// Infers the op's types, checks them against the text and inserts it.
bool Parser::finish(PendingOp &op, Block &block, Scope &scope) {
  StringRef mnemonic = opDef(op.kind).mnemonic;
  Builder builder(&block);
  builder.loc = std::move(op.loc);
  builder.func = currentFunc;
  Expected<Op *> made = builder.create(
      op.kind, op.operands, std::move(op.attrs), std::move(op.region));
  if (!made)
    return cursor.failWith(op.begin, mnemonic + ": ", made.takeError());
  unsigned count = (*made)->numResults();
  if (op.results.size() != count || op.types.size() != count)
    return cursor.failAt(op.begin, mnemonic + ": has " + Twine(count) +
                                       " results, but the text names " +
                                       Twine(op.results.size()) +
                                       " and gives types for " +
                                       Twine(op.types.size()));
  for (unsigned i = 0; i < count; ++i) {
    Value *value = (*made)->result(i);
    if (value->type != op.types[i]) {
      std::string text;
      raw_string_ostream(text) << mnemonic << ": the text says " << op.types[i]
                               << ", but the result is " << value->type;
      return cursor.failAt(op.typesBegin, text);
    }
    if (!define(scope, op.results[i], value))
      return false;
  }
  declareSymbolsOf(**made);
  return true;
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

/// Lines that are a `// run:` comment and nothing else.
std::vector<RunLine> findRunLines(StringRef text) {
  std::vector<RunLine> lines;
  for (unsigned number = 1; !text.empty(); ++number) {
    auto [line, rest] = text.split('\n');
    line = line.trim();
    if (line.consume_front("// run:"))
      lines.push_back({line.trim().str(), number});
    text = rest;
  }
  return lines;
}

Expected<ParsedFile> Parser::run() {
  bool ok = header();
  while (ok && cursor.token().kind != Token::End)
    ok = function();
  if (ok && module->funcs.empty())
    ok = cursor.expected("'func'");
  if (!ok)
    return cursor.takeError();
  return ParsedFile{std::move(module), findRunLines(buffer.getBuffer())};
}

} // namespace

Expected<ParsedFile> parse(MemoryBufferRef buffer, ConstantLookup lookup) {
  return Parser(buffer, lookup).run();
}

} // namespace tenon::ir
