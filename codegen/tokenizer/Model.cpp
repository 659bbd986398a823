//===- Model.cpp - the model and vocabulary of tokenizer.json ------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/tokenizer/TokenizerParts.h"
#include "runtime/text/Steps.h"
#include "runtime/text/Utf8.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace tenon::codegen {

namespace {

/// Adds a token of the model.
bool addToken(const JsonNode &where, llvm::StringRef token, uint64_t id,
              TableWriter &table, Vocabulary &vocabulary) {
  if (!table.setToken(id, token, rt::TokenInModel)) {
    where.fail("token '" + token + "' has id " + llvm::Twine(id) +
               ", expected below " + llvm::Twine(rt::maxTokenIds));
    return false;
  }
  vocabulary[token] = uint32_t(id);
  return true;
}

/// {"token": id, ...}
void readVocabulary(const JsonNode &node, TableWriter &table,
                    Vocabulary &vocabulary) {
  const llvm::json::Object *entries = node.object();
  if (!entries)
    return;
  // The JSON object has no order of its own, the table must.
  std::vector<std::pair<int64_t, llvm::StringRef>> sorted;
  for (const auto &[token, value] : *entries) {
    auto id = value.getAsInteger();
    if (!id || *id < 0)
      return node.fail("token '" + llvm::StringRef(token) +
                       "': found no id, expected a whole number");
    sorted.emplace_back(*id, token);
  }
  llvm::sort(sorted);
  for (const auto &[before, entry] :
       llvm::zip(sorted, llvm::drop_begin(sorted)))
    if (before.first == entry.first)
      return node.fail("tokens '" + before.second + "' and '" + entry.second +
                       "' have the same id " + llvm::Twine(entry.first));
  for (const auto &[id, token] : sorted)
    if (!addToken(node, token, uint64_t(id), table, vocabulary))
      return;
}

/// Id of a token that a field names, or none.
uint32_t namedToken(const JsonNode &node, const Vocabulary &vocabulary) {
  if (!node)
    return rt::none;
  auto found = vocabulary.find(node.string());
  return found == vocabulary.end() ? rt::none : found->second;
}

void addByteTokens(TableWriter &table, const Vocabulary &vocabulary) {
  table.header.flags |= rt::TextByteFallback;
  for (unsigned byte = 0; byte < 256; ++byte) {
    std::string name = llvm::formatv("<0x{0:X-2}>", byte);
    auto found = vocabulary.find(name);
    table.byteTokens.push_back(found == vocabulary.end() ? rt::none
                                                         : found->second);
  }
}

/// "a b" or ["a", "b"].
bool splitMerge(const llvm::json::Value &value, llvm::StringRef &left,
                llvm::StringRef &right) {
  if (auto text = value.getAsString()) {
    std::tie(left, right) = text->split(' ');
    return text->count(' ') == 1;
  }
  const llvm::json::Array *pair = value.getAsArray();
  if (!pair || pair->size() != 2 || !(*pair)[0].getAsString() ||
      !(*pair)[1].getAsString())
    return false;
  left = *(*pair)[0].getAsString();
  right = *(*pair)[1].getAsString();
  return true;
}

void readMerges(const JsonNode &node, llvm::StringRef prefix,
                TableWriter &table, const Vocabulary &vocabulary) {
  const llvm::json::Array *entries = node.array();
  if (!entries)
    return;
  for (size_t i = 0; i < entries->size(); ++i) {
    llvm::StringRef left, right;
    auto fail = [&](const llvm::Twine &message) {
      node.fail("merge " + llvm::Twine(i) + ": " + message);
    };
    if (!splitMerge((*entries)[i], left, right))
      return fail("found something else, expected two tokens");
    llvm::StringRef tail = right;
    if (!prefix.empty() && !tail.consume_front(prefix))
      return fail("'" + right + "' does not begin with '" + prefix + "'");
    std::string merged = (left + tail).str();
    uint32_t ids[3];
    llvm::StringRef names[3] = {left, right, merged};
    for (int k = 0; k < 3; ++k) {
      auto found = vocabulary.find(names[k]);
      if (found == vocabulary.end())
        return fail("token '" + names[k] + "' is not in the vocabulary");
      ids[k] = found->second;
    }
    table.merges.push_back({ids[0], ids[1], uint32_t(i), ids[2]});
  }
}

void readBpe(const JsonNode &model, TableWriter &table,
             Vocabulary &vocabulary) {
  if (model["dropout"].real(0.0) != 0)
    model["dropout"].fail("found a dropout, expected none: encoding must not "
                          "be random");
  llvm::StringRef prefix = model["continuing_subword_prefix"].string("");
  readVocabulary(model["vocab"], table, vocabulary);
  readMerges(model["merges"], prefix, table, vocabulary);
  table.header.continuingPrefix = table.add(prefix);
  table.header.wordSuffix = table.add(model["end_of_word_suffix"].string(""));
  table.header.unkId = namedToken(model["unk_token"], vocabulary);
  if (model["unk_token"] && table.header.unkId == rt::none)
    model["unk_token"].fail("token '" + model["unk_token"].string() +
                            "' is not in the vocabulary");
  if (model["fuse_unk"].boolean(false))
    table.header.flags |= rt::TextFuseUnk;
  if (model["ignore_merges"].boolean(false))
    table.header.flags |= rt::TextIgnoreMerges;
  if (model["byte_fallback"].boolean(false))
    addByteTokens(table, vocabulary);
}

void readWordPiece(const JsonNode &model, TableWriter &table,
                   Vocabulary &vocabulary) {
  readVocabulary(model["vocab"], table, vocabulary);
  table.header.continuingPrefix =
      table.add(model["continuing_subword_prefix"].string("##"));
  table.header.maxInputChars = uint32_t(std::min<uint64_t>(
      model["max_input_chars_per_word"].number(100), UINT32_MAX));
  table.header.unkId = namedToken(model["unk_token"], vocabulary);
}

void readWordLevel(const JsonNode &model, TableWriter &table,
                   Vocabulary &vocabulary) {
  readVocabulary(model["vocab"], table, vocabulary);
  table.header.unkId = namedToken(model["unk_token"], vocabulary);
}

/// \p exact as Rust's serde_json reads its decimal digits, with one rounding
/// too many: between segmentations of equal probability the last bit decides.
double asTokenizersRead(double exact) {
  char text[40];
  auto end = std::to_chars(text, text + sizeof(text), std::fabs(exact),
                           std::chars_format::scientific);
  llvm::StringRef digits(text, size_t(end.ptr - text)), exponentText;
  std::tie(digits, exponentText) = digits.split('e');
  auto [whole, fraction] = digits.split('.');
  int64_t exponent = 0;
  uint64_t significand = 0;
  exponentText.consume_front("+");
  if (exponentText.getAsInteger(10, exponent) ||
      llvm::StringRef((whole + fraction).str()).getAsInteger(10, significand))
    return exact;
  exponent -= int64_t(fraction.size());
  if (exponent < -22 || exponent > 22) // powers beyond are not exact
    return exact;
  double power = std::pow(10.0, double(std::abs(exponent)));
  double value =
      exponent < 0 ? double(significand) / power : double(significand) * power;
  return exact < 0 ? -value : value;
}

void readUnigram(const JsonNode &model, TableWriter &table,
                 Vocabulary &vocabulary) {
  const llvm::json::Array *entries = model["vocab"].array();
  if (!entries)
    return;
  double least = INFINITY;
  for (size_t id = 0; id < entries->size(); ++id) {
    const llvm::json::Array *entry = (*entries)[id].getAsArray();
    auto token =
        entry && entry->size() == 2 ? (*entry)[0].getAsString() : std::nullopt;
    auto score = token ? (*entry)[1].getAsNumber() : std::nullopt;
    if (!score || !std::isfinite(*score))
      return model["vocab"].fail("entry " + llvm::Twine(id) +
                                 ": found something else, expected a token "
                                 "and its score");
    if (!addToken(model["vocab"], *token, id, table, vocabulary))
      return;
    table.scores.push_back(asTokenizersRead(*score));
    least = std::min(least, table.scores.back());
  }
  table.header.unkId = rt::none;
  if (model["unk_id"]) {
    uint64_t id = model["unk_id"].number();
    if (id >= entries->size())
      return model["unk_id"].fail("found " + llvm::Twine(id) +
                                  ", expected an id below " +
                                  llvm::Twine(entries->size()));
    table.header.unkId = uint32_t(id);
  }
  if (entries->empty())
    least = 0;
  table.header.unkScore = least - 10;
  if (model["byte_fallback"].boolean(false))
    addByteTokens(table, vocabulary);
  std::vector<std::pair<llvm::StringRef, uint32_t>> keys;
  for (const auto &entry : vocabulary)
    if (!entry.getKey().empty())
      keys.emplace_back(entry.getKey(), entry.getValue());
  llvm::sort(keys);
  table.trie = TrieBuilder::build(keys);
}

llvm::StringRef modelType(const JsonNode &model) {
  if (model["type"])
    return model["type"].string();
  // Old files do not say.
  if (model["merges"])
    return "BPE";
  if (model["unk_id"])
    return "Unigram";
  return model["continuing_subword_prefix"] ? "WordPiece" : "WordLevel";
}

/// Whether every text becomes symbols one character at a time, none dropped and
/// none fused, so that parts of a word cannot influence each other.
bool symbolsAreIndependent(const TableWriter &table) {
  const rt::TextHeader &header = table.header;
  if (header.continuingPrefix.length || header.wordSuffix.length)
    return false;
  for (const rt::MergeSlot &merge : table.merges)
    if (llvm::is_contained(table.byteTokens, merge.left) ||
        llvm::is_contained(table.byteTokens, merge.right) ||
        merge.left == header.unkId || merge.right == header.unkId)
      return false;
  if (header.unkId != rt::none && !(header.flags & rt::TextFuseUnk))
    return true;
  if (!table.byteTokens.empty() &&
      !llvm::is_contained(table.byteTokens, rt::none))
    return true;
  // Byte-level text whose 256 characters all have tokens.
  unsigned covered = 0;
  for (const rt::TokenEntry &token : table.tokens) {
    llvm::StringRef text = table.text(token.text);
    const char *at = text.begin();
    covered += (token.flags & rt::TokenInModel) && !text.empty() &&
               rt::byteOfCharacter(rt::nextCodePoint(at, text.end())) >= 0 &&
               at == text.end();
  }
  return covered == 256 && !table.preTokenizers.empty() &&
         rt::PreTokenizer(table.preTokenizers.back().kind) ==
             rt::PreTokenizer::ByteLevel;
}

} // namespace

void readModel(const JsonNode &model, TableWriter &table,
               Vocabulary &vocabulary) {
  if (!model.object())
    return;
  table.header.unkId = rt::none;
  llvm::StringRef type = modelType(model);
  if (type == "BPE") {
    table.header.model = rt::TextModel::Bpe;
    readBpe(model, table, vocabulary);
  } else if (type == "WordPiece") {
    table.header.model = rt::TextModel::WordPiece;
    readWordPiece(model, table, vocabulary);
  } else if (type == "Unigram") {
    table.header.model = rt::TextModel::Unigram;
    readUnigram(model, table, vocabulary);
  } else if (type == "WordLevel") {
    table.header.model = rt::TextModel::WordLevel;
    readWordLevel(model, table, vocabulary);
  } else {
    model["type"].fail("found '" + type +
                       "', expected BPE, WordPiece, Unigram or WordLevel");
  }
}

void readAddedTokens(const JsonNode &tokens, TableWriter &table,
                     Vocabulary &vocabulary) {
  if (!tokens)
    return;
  // As in `tokenizers`, a token that the model has keeps its id and the others
  // are numbered on from the vocabulary's size.
  uint64_t next = vocabulary.size();
  for (const JsonNode &node : tokens.elements()) {
    llvm::StringRef content = node["content"].string();
    if (content.empty())
      continue;
    auto [known, isNew] = vocabulary.try_emplace(content, uint32_t(next));
    if (isNew)
      ++next;
    uint32_t id = known->second;
    if (isNew && id < table.tokens.size() && table.tokens[id].flags != 0)
      return node.fail("token '" + content + "' would get id " +
                       llvm::Twine(id) +
                       ", which another has: the vocabulary's ids have gaps");
    bool special = node["special"].boolean(false);
    uint32_t flags = rt::TokenAdded;
    if (special)
      flags |= rt::TokenSpecial;
    if (!table.setToken(id, content, flags))
      return node.fail("more ids than are possible");
    uint32_t how = 0;
    if (node["single_word"].boolean(false))
      how |= rt::AddedSingleWord;
    if (node["lstrip"].boolean(false))
      how |= rt::AddedStripLeft;
    if (node["rstrip"].boolean(false))
      how |= rt::AddedStripRight;
    if (node["normalized"].boolean(!special))
      how |= rt::AddedNormalized;
    table.added.push_back({table.add(content), id, how});
  }
}

void markSeams(TableWriter &table) {
  if (table.header.model != rt::TextModel::Bpe || !symbolsAreIndependent(table))
    return;
  table.header.flags |= rt::TextSeams;
  table.seams.assign(1024, 0);
  for (const rt::MergeSlot &merge : table.merges) {
    llvm::StringRef text = table.text(table.tokens[merge.merged].text);
    const char *at = text.begin(), *end = text.end();
    uint32_t last = at < end ? rt::nextCodePoint(at, end) : 0;
    while (at < end) {
      uint32_t code = rt::nextCodePoint(at, end);
      uint32_t bit = rt::seamHash(last, code);
      table.seams[bit / 64] |= uint64_t(1) << (bit % 64);
      last = code;
    }
  }
}

} // namespace tenon::codegen
