//===- JinjaLexer.h - the words of chat templates
//---------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_CODEGEN_TOKENIZER_JINJALEXER_H
#define TENON_CODEGEN_TOKENIZER_JINJALEXER_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace tenon::codegen::jinja {

struct Token {
  enum Kind {
    Text,
    BeginOutput,
    BeginBlock,
    End,
    Name,
    Number,
    String,
    Symbol
  };
  Kind kind;
  std::string text;
};

/// The tokens of a template; whitespace around tags goes as trim_blocks and
/// lstrip_blocks have it.
llvm::Expected<std::vector<Token>> lex(llvm::StringRef source);

} // namespace tenon::codegen::jinja

#endif // TENON_CODEGEN_TOKENIZER_JINJALEXER_H
