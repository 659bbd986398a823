//===- TextGenerator.h - continues a text, token by token ----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_TEXTGENERATOR_H
#define TENON_RUNTIME_TEXTGENERATOR_H

#include "runtime/LanguageModel.h"
#include "runtime/Sampler.h"
#include "runtime/TextCodec.h"

namespace tenon::rt {

/// What a generation took.
struct GenerationStats {
  size_t promptTokens = 0, newTokens = 0, decodeSteps = 0;
  double prefillSeconds = 0, decodeSeconds = 0, sampleSeconds = 0;
  int64_t decodeBytes = 0; ///< that the decode steps read and wrote at least
};

enum class StopReason { Length, Token, String, Context };

/// Continues texts with a model, a tokenizer and a sampler. What was fed stays
/// in the model's memory from one call to the next, as a chat needs it.
class TextGenerator {
public:
  /// Checks that the three fit; all must outlive the result.
  static Result<TextGenerator> create(LanguageModel &model, TextCodec &codec,
                                      const SamplingOptions &sampling);

  struct Limits {
    size_t maxTokens = 256;
    std::vector<std::string> stopStrings; ///< none of them empty
  };
  /// Gives out text as it becomes certain; the texts joined are the answer.
  using Emit = void (*)(void *context, std::string_view text);

  /// Feeds `prompt` and generates until a stop. The ids that were generated,
  /// without a stop id, are in `ids`.
  Result<StopReason> generate(std::span<const uint32_t> prompt,
                              const Limits &limits, Emit emit, void *context,
                              std::vector<uint32_t> &ids);

  /// Feeds tokens without generating.
  Status feed(std::span<const uint32_t> tokens);
  /// Forgets all.
  void reset();

  /// How many tokens fit in all, and are there.
  int64_t contextLength() const { return limit; }
  int64_t position() const { return model->position(); }
  const GenerationStats &stats() const { return numbers; }
  LanguageModel &languageModel() { return *model; }

private:
  TextGenerator(LanguageModel &model, TextCodec &codec,
                const SamplingOptions &sampling);
  bool isStop(uint32_t id) const;

  LanguageModel *model;
  TextCodec *codec;
  Sampler sampler;
  int64_t limit;
  std::vector<uint32_t> history;
  GenerationStats numbers;
};

} // namespace tenon::rt

#endif // TENON_RUNTIME_TEXTGENERATOR_H
