//===- Tokenizer.cpp - tokenizer.json to the table an artifact carries ---===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/tokenizer/Tokenizer.h"

#include "codegen/tokenizer/TokenizerParts.h"
#include "ir/support/Diag.h"
#include "runtime/text/Tokenizer.h"
#include "llvm/ADT/STLExtras.h"

namespace tenon::codegen {

namespace {

/// Stop ids, by number and by name, and the chat's texts.
void addGeneration(const GenerationConfig &config, const Vocabulary &vocabulary,
                   TableWriter &table) {
  table.header.defaults = config.defaults;
  table.stops = config.stopIds;
  for (const std::string &name : config.stopTokens) {
    auto found = vocabulary.find(name);
    if (found != vocabulary.end() &&
        !llvm::is_contained(table.stops, found->second))
      table.stops.push_back(found->second);
  }
  llvm::erase_if(table.stops,
                 [](uint32_t id) { return id >= rt::maxTokenIds; });
  table.header.chat = {table.add(config.begin), table.add(config.userBegin),
                       table.add(config.userEnd),
                       table.add(config.assistantBegin),
                       table.add(config.assistantEnd)};
}

} // namespace

llvm::Expected<std::vector<uint8_t>>
compileTokenizer(llvm::StringRef json, llvm::StringRef name,
                 const GenerationConfig &config) {
  llvm::Expected<JsonDocument> document = JsonDocument::parse(json, name);
  if (!document)
    return document.takeError();
  JsonNode root(*document);
  TableWriter table;
  Vocabulary vocabulary;
  if (root.object()) {
    llvm::StringRef version = root["version"].string("1.0");
    if (version != "1.0")
      root["version"].fail("found '" + version + "', expected 1.0");
    readModel(root["model"], table, vocabulary);
    readAddedTokens(root["added_tokens"], table, vocabulary);
    readNormalizer(root["normalizer"], table);
    readPreTokenizer(root["pre_tokenizer"], table);
    readDecoder(root["decoder"], table);
    readPostProcessor(root["post_processor"], vocabulary, table);
    markSeams(table);
    addGeneration(config, vocabulary, table);
  }
  if (llvm::Error error = document->takeError())
    return error;
  // Unigram scores go by id; added tokens have none.
  if (table.header.model == rt::TextModel::Unigram)
    table.scores.resize(table.tokens.size(), 0);
  std::vector<uint8_t> bytes = table.finish();
  // What the runtime will check, patterns among it, is known now.
  auto made = rt::Tokenizer::create({bytes.data(), bytes.size()});
  if (!made.ok())
    return userError("{0}: error: {1}", name, made.message());
  return bytes;
}

uint32_t tokenizerIdCount(llvm::ArrayRef<uint8_t> table) {
  auto loaded = rt::TextTable::load({table.data(), table.size()});
  return loaded.ok() ? uint32_t(loaded->tokens().size()) : 0;
}

} // namespace tenon::codegen
