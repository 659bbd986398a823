//===- Tokenizer.h - tokenizer.json to the table an artifact carries -----===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_CODEGEN_TOKENIZER_TOKENIZER_H
#define TENON_CODEGEN_TOKENIZER_TOKENIZER_H

/// \file
/// A Hugging Face tokenizer.json is read when a model is compiled: what the
/// runtime needs of it becomes one block (runtime/format/tokenizer.h), what it
/// cannot do is refused by name. Truncation and padding are settings of callers
/// and are left out.

#include "runtime/format/tokenizer.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace tenon::codegen {

/// What the files beside a model say about generating text, as far as they are
/// there: generation_config.json, config.json, tokenizer_config.json and
/// chat_template.jinja.
struct GenerationConfig {
  rt::GenerationDefaults defaults = {0, 1, 0, 1, 0, 0};
  std::vector<uint32_t> stopIds;
  /// Names of stop tokens ("eos_token" of tokenizer_config.json).
  std::vector<std::string> stopTokens;
  /// The turns of a chat, as the model's template writes them.
  std::string begin, userBegin, userEnd, assistantBegin, assistantEnd;
};

/// Reads the files in \p folder (empty: the current one). Missing files say
/// nothing; broken ones are errors.
llvm::Expected<GenerationConfig> readGenerationConfig(llvm::StringRef folder);

/// Compiles \p json, a tokenizer.json; errors begin with \p name.
llvm::Expected<std::vector<uint8_t>>
compileTokenizer(llvm::StringRef json, llvm::StringRef name,
                 const GenerationConfig &config = {});

/// One more than the greatest id of \p table, which compileTokenizer made.
uint32_t tokenizerIdCount(llvm::ArrayRef<uint8_t> table);

/// The regular expression \p pattern of Oniguruma's (Ruby's) syntax, which
/// tokenizer.json uses, in PCRE2's. The two differ in what \s, \w, \d and some
/// flags and quantifiers mean.
llvm::Expected<std::string> translatePattern(llvm::StringRef pattern);

} // namespace tenon::codegen

#endif // TENON_CODEGEN_TOKENIZER_TOKENIZER_H
