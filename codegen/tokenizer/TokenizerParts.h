//===- TokenizerParts.h - the parts of tokenizer.json --------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_CODEGEN_TOKENIZER_TOKENIZERPARTS_H
#define TENON_CODEGEN_TOKENIZER_TOKENIZERPARTS_H

#include "codegen/tokenizer/JsonNode.h"
#include "codegen/tokenizer/TableWriter.h"

namespace tenon::codegen {

/// Ids by token.
using Vocabulary = llvm::StringMap<uint32_t>;

// Each reads one part into the table; what is wrong is noted in the document.

/// The model with its vocabulary; \p vocabulary gets its tokens.
void readModel(const JsonNode &model, TableWriter &table,
               Vocabulary &vocabulary);
/// Added tokens; \p vocabulary gets those that are new.
void readAddedTokens(const JsonNode &tokens, TableWriter &table,
                     Vocabulary &vocabulary);
void readNormalizer(const JsonNode &node, TableWriter &table);
void readPreTokenizer(const JsonNode &node, TableWriter &table);
void readDecoder(const JsonNode &node, TableWriter &table);
void readPostProcessor(const JsonNode &node, const Vocabulary &vocabulary,
                       TableWriter &table);
/// Sets what lets BPE cut long words, where it is right to; to be called last.
void markSeams(TableWriter &table);

} // namespace tenon::codegen

#endif // TENON_CODEGEN_TOKENIZER_TOKENIZERPARTS_H
