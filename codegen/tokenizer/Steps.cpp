//===- Steps.cpp - normalizers, pre-tokenizers, decoders, templates ------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/tokenizer/Tokenizer.h"
#include "codegen/tokenizer/TokenizerParts.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Base64.h"

namespace tenon::codegen {

namespace {

/// What ByteLevel splits with when it does.
constexpr llvm::StringLiteral byteLevelPattern =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|"
    "\\s+(?!\\S)|\\s+";
/// What Whitespace takes as words, and the rest that isn't space.
constexpr llvm::StringLiteral wordPattern =
    "[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200c}\\x{200d}]+|"
    "[^\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200c}\\x{200d}\\s]+";

template <typename Kind> rt::TextStep makeStep(Kind kind) {
  rt::TextStep step = {};
  step.kind = uint8_t(kind);
  step.behavior = rt::SplitBehavior::Isolated;
  return step;
}

rt::TextString addPattern(const JsonNode &node, llvm::StringRef pattern,
                          TableWriter &table) {
  llvm::Expected<std::string> translated = translatePattern(pattern);
  if (translated)
    return table.add(*translated);
  node.fail(llvm::toString(translated.takeError()));
  return {};
}

/// {"String": "text"} or {"Regex": "pattern"} (or a string as it stands) into
/// `a`; true if it is a regular expression.
bool readPattern(const JsonNode &node, rt::TextStep &step, TableWriter &table) {
  if (node["Regex"]) {
    step.a = addPattern(node, node["Regex"].string(), table);
    return true;
  }
  const JsonNode text = node["String"] ? node["String"] : node;
  step.a = table.add(text.string());
  return false;
}

rt::SplitBehavior readBehavior(const JsonNode &node, llvm::StringRef missing) {
  llvm::StringRef name = node.string(missing);
  auto found =
      llvm::StringSwitch<std::optional<rt::SplitBehavior>>(name)
          .CaseLower("removed", rt::SplitBehavior::Removed)
          .CaseLower("isolated", rt::SplitBehavior::Isolated)
          .CaseLower("mergedwithprevious",
                     rt::SplitBehavior::MergedWithPrevious)
          .CaseLower("mergedwithnext", rt::SplitBehavior::MergedWithNext)
          .CaseLower("contiguous", rt::SplitBehavior::Contiguous)
          .Default(std::nullopt);
  if (found)
    return *found;
  node.fail("found '" + name +
            "', expected Removed, Isolated, MergedWithPrevious, "
            "MergedWithNext or Contiguous");
  return rt::SplitBehavior::Isolated;
}

/// Calls \p read for \p node, or for each of a sequence's steps in \p list. The
/// depth of nesting is that of the JSON, which is limited.
void forEachStep(
    const JsonNode &node, llvm::StringRef list,
    llvm::function_ref<void(const JsonNode &, llvm::StringRef)> read) {
  if (!node)
    return;
  llvm::StringRef type = node["type"].string();
  if (type != "Sequence")
    return read(node, type);
  for (const JsonNode &inner : node[list].elements())
    forEachStep(inner, list, read);
}

void failType(const JsonNode &node, llvm::StringRef type,
              llvm::StringRef part) {
  node["type"].fail("found '" + type + "', which is not a " + part +
                    " that Tenon knows");
}

// --- normalizers -------------------------------------------------------------

void readBertNormalizer(const JsonNode &node, TableWriter &table) {
  auto push = [&](rt::Normalizer kind) {
    table.normalizers.push_back(makeStep(kind));
  };
  bool lowercase = node["lowercase"].boolean(true);
  if (node["clean_text"].boolean(true))
    push(rt::Normalizer::CleanText);
  if (node["handle_chinese_chars"].boolean(true))
    push(rt::Normalizer::SpaceChinese);
  if (node["strip_accents"].boolean(lowercase)) {
    push(rt::Normalizer::Nfd);
    push(rt::Normalizer::StripMn);
  }
  if (lowercase)
    push(rt::Normalizer::Lowercase);
}

void readPrecompiled(const JsonNode &node, TableWriter &table) {
  JsonNode map = node["precompiled_charsmap"];
  std::vector<char> bytes;
  if (!map)
    return; // nothing to do, as in some files
  if (llvm::Error error = llvm::decodeBase64(map.string(), bytes))
    return map.fail(llvm::toString(std::move(error)));
  rt::TextStep step = makeStep(rt::Normalizer::Precompiled);
  step.a = table.add({bytes.data(), bytes.size()});
  table.normalizers.push_back(step);
}

void readNormalizerStep(const JsonNode &node, llvm::StringRef type,
                        TableWriter &table) {
  if (type == "BertNormalizer")
    return readBertNormalizer(node, table);
  if (type == "Precompiled")
    return readPrecompiled(node, table);
  auto kind = llvm::StringSwitch<std::optional<rt::Normalizer>>(type)
                  .Case("NFC", rt::Normalizer::Nfc)
                  .Case("NFD", rt::Normalizer::Nfd)
                  .Case("NFKC", rt::Normalizer::Nfkc)
                  .Case("NFKD", rt::Normalizer::Nfkd)
                  .Case("Lowercase", rt::Normalizer::Lowercase)
                  .Case("StripAccents", rt::Normalizer::StripAccents)
                  .Case("Replace", rt::Normalizer::Replace)
                  .Case("Prepend", rt::Normalizer::Prepend)
                  .Case("Strip", rt::Normalizer::Strip)
                  .Case("Nmt", rt::Normalizer::Nmt)
                  .Case("ByteLevel", rt::Normalizer::ByteLevel)
                  .Default(std::nullopt);
  if (!kind)
    return failType(node, type, "normalizer");
  rt::TextStep step = makeStep(*kind);
  if (*kind == rt::Normalizer::Replace) {
    if (readPattern(node["pattern"], step, table))
      step.kind = uint8_t(rt::Normalizer::ReplaceRegex);
    else if (step.a.length == 0)
      return; // nothing is ever replaced
    step.b = table.add(node["content"].string());
  } else if (*kind == rt::Normalizer::Prepend) {
    step.a = table.add(node["prepend"].string());
  } else if (*kind == rt::Normalizer::Strip) {
    step.flags = (node["strip_left"].boolean(true) ? 1u : 0u) |
                 (node["strip_right"].boolean(true) ? 2u : 0u);
  }
  table.normalizers.push_back(step);
}

// --- pre-tokenizers ----------------------------------------------------------

void readByteLevel(const JsonNode &node, TableWriter &table) {
  if (node["add_prefix_space"].boolean(true))
    table.preTokenizers.push_back(makeStep(rt::PreTokenizer::PrefixSpace));
  if (node["use_regex"].boolean(true)) {
    rt::TextStep step = makeStep(rt::PreTokenizer::SplitRegex);
    step.a = addPattern(node, byteLevelPattern, table);
    table.preTokenizers.push_back(step);
  }
  table.preTokenizers.push_back(makeStep(rt::PreTokenizer::ByteLevel));
}

/// "always", "first" or "never", under its new and its old name.
llvm::StringRef prependScheme(const JsonNode &node) {
  if (node["prepend_scheme"])
    return node["prepend_scheme"].string();
  return node["add_prefix_space"].boolean(true) ? "always" : "never";
}

void readMetaspace(const JsonNode &node, TableWriter &table) {
  rt::TextStep step = makeStep(rt::PreTokenizer::Metaspace);
  step.a = table.add(node["replacement"].string("\xe2\x96\x81"));
  step.behavior = rt::SplitBehavior::MergedWithNext;
  llvm::StringRef scheme = prependScheme(node);
  if (scheme == "always")
    step.flags |= 1;
  else if (scheme == "first")
    step.flags |= 2;
  else if (scheme != "never")
    return node["prepend_scheme"].fail("found '" + scheme +
                                       "', expected always, first or never");
  if (node["split"].boolean(true))
    step.flags |= 4;
  table.preTokenizers.push_back(step);
}

/// The pre-tokenizers that are one split.
void readSplit(const JsonNode &node, llvm::StringRef type, TableWriter &table) {
  rt::TextStep step = makeStep(rt::PreTokenizer::SplitSpace);
  step.behavior = rt::SplitBehavior::Removed;
  if (type == "Whitespace") {
    step.kind = uint8_t(rt::PreTokenizer::SplitRegex);
    step.a = addPattern(node, wordPattern, table);
    step.invert = 1;
  } else if (type == "Split") {
    bool regex = readPattern(node["pattern"], step, table);
    step.kind = uint8_t(regex ? rt::PreTokenizer::SplitRegex
                              : rt::PreTokenizer::SplitText);
    step.behavior = readBehavior(node["behavior"], "Isolated");
    step.invert = node["invert"].boolean(false);
  } else if (type == "Punctuation") {
    step.kind = uint8_t(rt::PreTokenizer::SplitPunctuation);
    step.behavior = readBehavior(node["behavior"], "Isolated");
  } else if (type == "Digits") {
    step.kind = uint8_t(rt::PreTokenizer::SplitDigits);
    step.behavior = node["individual_digits"].boolean(false)
                        ? rt::SplitBehavior::Isolated
                        : rt::SplitBehavior::Contiguous;
  } else if (type == "CharDelimiterSplit") {
    step.kind = uint8_t(rt::PreTokenizer::SplitText);
    step.a = table.add(node["delimiter"].string());
  } else if (type == "FixedLength") {
    step.kind = uint8_t(rt::PreTokenizer::FixedLength);
    step.behavior = rt::SplitBehavior::Isolated;
    step.value = uint32_t(node["length"].number(5));
  } else if (type != "WhitespaceSplit") {
    return failType(node, type, "pre-tokenizer");
  }
  table.preTokenizers.push_back(step);
}

void readPreTokenizerStep(const JsonNode &node, llvm::StringRef type,
                          TableWriter &table) {
  if (type == "ByteLevel")
    return readByteLevel(node, table);
  if (type == "Metaspace")
    return readMetaspace(node, table);
  if (type == "BertPreTokenizer") {
    rt::TextStep step = makeStep(rt::PreTokenizer::SplitSpace);
    step.behavior = rt::SplitBehavior::Removed;
    table.preTokenizers.push_back(step);
    table.preTokenizers.push_back(makeStep(rt::PreTokenizer::SplitPunctuation));
    return;
  }
  readSplit(node, type, table);
}

// --- decoders ----------------------------------------------------------------

void readDecoderStep(const JsonNode &node, llvm::StringRef type,
                     TableWriter &table) {
  auto kind = llvm::StringSwitch<std::optional<rt::TokenDecoder>>(type)
                  .Case("ByteLevel", rt::TokenDecoder::ByteLevel)
                  .Case("WordPiece", rt::TokenDecoder::WordPiece)
                  .Case("Metaspace", rt::TokenDecoder::Metaspace)
                  .Case("BPEDecoder", rt::TokenDecoder::Bpe)
                  .Case("ByteFallback", rt::TokenDecoder::ByteFallback)
                  .Case("Fuse", rt::TokenDecoder::Fuse)
                  .Case("Strip", rt::TokenDecoder::Strip)
                  .Case("Replace", rt::TokenDecoder::Replace)
                  .Default(std::nullopt);
  if (!kind)
    return failType(node, type, "decoder");
  rt::TextStep step = makeStep(*kind);
  if (*kind == rt::TokenDecoder::WordPiece) {
    step.a = table.add(node["prefix"].string("##"));
    step.flags = node["cleanup"].boolean(true);
  } else if (*kind == rt::TokenDecoder::Metaspace) {
    step.a = table.add(node["replacement"].string("\xe2\x96\x81"));
    step.flags = prependScheme(node) != "never";
  } else if (*kind == rt::TokenDecoder::Bpe) {
    step.a = table.add(node["suffix"].string("</w>"));
  } else if (*kind == rt::TokenDecoder::Strip) {
    step.a = table.add(node["content"].string());
    uint64_t front = node["start"].number(0), back = node["stop"].number(0);
    if (front > 0xffff || back > 0xffff)
      return node.fail("found more than 65535 characters to strip");
    step.flags = uint32_t(front | back << 16);
  } else if (*kind == rt::TokenDecoder::Replace) {
    if (readPattern(node["pattern"], step, table))
      step.kind = uint8_t(rt::TokenDecoder::ReplaceRegex);
    step.b = table.add(node["content"].string());
  }
  table.decoders.push_back(step);
}

// --- post-processors ---------------------------------------------------------

/// Puts \p around, whose `none` stands for the text, around what is there.
void nest(std::vector<uint32_t> &post, llvm::ArrayRef<uint32_t> around) {
  std::vector<uint32_t> inner = post;
  if (inner.empty())
    inner.push_back(rt::none);
  post.clear();
  for (uint32_t id : around)
    if (id == rt::none)
      post.insert(post.end(), inner.begin(), inner.end());
    else
      post.push_back(id);
}

void readTemplate(const JsonNode &node, TableWriter &table) {
  std::vector<uint32_t> ids;
  for (const JsonNode &piece : node["single"].elements()) {
    if (piece["Sequence"]) {
      if (piece["Sequence"]["id"].string("A") != "A")
        return piece.fail("the template of one text asks for a second");
      ids.push_back(rt::none);
      continue;
    }
    llvm::StringRef name = piece["SpecialToken"]["id"].string();
    for (const JsonNode &id : node["special_tokens"][name]["ids"].elements()) {
      uint64_t value = id.number();
      if (value >= table.tokens.size() || !table.tokens[value].flags)
        return id.fail("token " + llvm::Twine(value) + " does not exist");
      ids.push_back(uint32_t(value));
    }
  }
  nest(table.post, ids);
}

void readPostStep(const JsonNode &node, llvm::StringRef type,
                  const Vocabulary &vocabulary, TableWriter &table) {
  if (type == "ByteLevel")
    return; // it corrects offsets, not ids
  if (type == "TemplateProcessing")
    return readTemplate(node, table);
  if (type != "BertProcessing" && type != "RobertaProcessing")
    return failType(node, type, "post-processor");
  uint32_t ids[2] = {rt::none, rt::none};
  llvm::StringRef fields[2] = {"cls", "sep"};
  for (int i = 0; i < 2; ++i) {
    std::vector<JsonNode> pair = node[fields[i]].elements();
    if (pair.size() != 2)
      return node[fields[i]].fail("expected a token and its id");
    uint64_t id = pair[1].number();
    if (id >= table.tokens.size() || !table.tokens[id].flags)
      return pair[1].fail("token " + llvm::Twine(id) + " does not exist");
    ids[i] = uint32_t(id);
  }
  nest(table.post, {ids[0], rt::none, ids[1]});
}

} // namespace

void readNormalizer(const JsonNode &node, TableWriter &table) {
  forEachStep(node, "normalizers",
              [&](const JsonNode &step, llvm::StringRef type) {
                readNormalizerStep(step, type, table);
              });
}

void readPreTokenizer(const JsonNode &node, TableWriter &table) {
  forEachStep(node, "pretokenizers",
              [&](const JsonNode &step, llvm::StringRef type) {
                readPreTokenizerStep(step, type, table);
              });
}

void readDecoder(const JsonNode &node, TableWriter &table) {
  if (!node)
    table.header.flags |= rt::TextJoinWithSpace;
  forEachStep(node, "decoders",
              [&](const JsonNode &step, llvm::StringRef type) {
                readDecoderStep(step, type, table);
              });
}

void readPostProcessor(const JsonNode &node, const Vocabulary &vocabulary,
                       TableWriter &table) {
  forEachStep(node, "processors",
              [&](const JsonNode &step, llvm::StringRef type) {
                readPostStep(step, type, vocabulary, table);
              });
}

} // namespace tenon::codegen
