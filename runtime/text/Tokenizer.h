//===- Tokenizer.h - text to ids and back --------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_TEXT_TOKENIZER_H
#define TENON_RUNTIME_TEXT_TOKENIZER_H

#include "runtime/TextCodec.h"
#include "runtime/text/AddedTokens.h"
#include "runtime/text/Steps.h"
#include "runtime/text/WordModel.h"

namespace tenon::rt {

/// A tokenizer that gives the ids and texts that Hugging Face's `tokenizers`
/// gives for the tokenizer.json its table was made from.
class Tokenizer final : public TextCodec {
public:
  /// Checks `table`, which must outlive the result, and compiles its patterns.
  static Result<std::unique_ptr<Tokenizer>> create(Bytes table);

  Status encode(std::string_view text, bool addSpecial,
                std::vector<uint32_t> &ids) override;
  Result<std::string> decode(std::span<const uint32_t> ids,
                             bool skipSpecial) override;
  uint32_t idCount() const override { return uint32_t(table.tokens().size()); }
  std::string tokenText(uint32_t id) const override;
  bool isSpecial(uint32_t id) const override;
  std::span<const uint32_t> stopIds() const override { return table.stops(); }
  const GenerationDefaults &defaults() const override {
    return table.header().defaults;
  }
  ChatTexts chat() const override;

private:
  explicit Tokenizer(const TextTable &table) : table(table) {}
  Status makeAdded();
  Status encodeSection(std::string_view text, bool atStart,
                       std::vector<uint32_t> &ids);
  Status encodePlain(std::string_view text, bool atStart,
                     std::vector<uint32_t> &ids);
  void applyTemplate(std::vector<uint32_t> &ids, size_t begin) const;

  TextTable table;
  std::optional<NormalizerList> normalizers;
  std::optional<PreTokenizerList> preTokenizers;
  std::optional<DecoderList> decoders;
  std::unique_ptr<WordModel> model;
  AddedTokens plainAdded, normalizedAdded;
  /// What an added token decodes to where that is not its content, by id.
  std::vector<std::pair<uint32_t, std::string>> normalizedTexts;
  WordCache cache;
  Pieces pieces;
};

} // namespace tenon::rt

#endif // TENON_RUNTIME_TEXT_TOKENIZER_H
