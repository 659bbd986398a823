//===- JinjaParser.h - the syntax of chat templates -----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_CODEGEN_TOKENIZER_JINJAPARSER_H
#define TENON_CODEGEN_TOKENIZER_JINJAPARSER_H

#include "codegen/tokenizer/Jinja.h"

namespace tenon::codegen::jinja {

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;
struct Argument {
  std::string name; ///< empty: by position
  ExprPtr value;
};

struct Expr {
  enum Kind {
    Literal,
    Name,      ///< text
    MakeList,  ///< parts
    MakeDict,  ///< arguments: text keys
    Attribute, ///< parts[0].text
    Index,     ///< parts[0][parts[1]]
    Slice,     ///< parts[0][parts[1]:parts[2]:parts[3]], null where left out
    Call,      ///< parts[0](arguments)
    Filter,    ///< parts[0] | text(arguments)
    Test,      ///< parts[0] is text(arguments)
    Unary,     ///< text parts[0]
    Binary,    ///< parts[0] text parts[1]
    Choose,    ///< parts[0] if parts[1] else parts[2]
  };
  Kind kind = Literal;
  std::string text;
  JinjaValue value;
  std::vector<ExprPtr> parts;
  std::vector<Argument> arguments;
};

struct Node {
  enum Kind {
    Text,     ///< text
    Output,   ///< {{ value }}
    If,       ///< value, body, otherwise
    For,      ///< names in value if condition: body, else otherwise
    Set,      ///< names[0](.text) = value, or = body when there is no value
    Macro,    ///< text(names = defaults): body
    Break,    ///< of the innermost loop
    Continue, ///< of the innermost loop
  };
  Kind kind = Text;
  std::string text;
  std::vector<std::string> names;
  ExprPtr value, condition;
  std::vector<ExprPtr> defaults;
  std::vector<Node> body, otherwise;
};

/// The template's nodes, or what is not understood.
llvm::Expected<std::vector<Node>> parse(llvm::StringRef source);

} // namespace tenon::codegen::jinja

#endif // TENON_CODEGEN_TOKENIZER_JINJAPARSER_H
