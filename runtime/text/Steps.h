//===- Steps.h - normalizing, pre-tokenizing and decoding, step by step ---===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_TEXT_STEPS_H
#define TENON_RUNTIME_TEXT_STEPS_H

#include "runtime/text/Charsmap.h"
#include "runtime/text/Regex.h"
#include "runtime/text/TextTable.h"

#include <string>
#include <vector>

namespace tenon::rt {

/// The character that stands for each byte where text is "byte level": a
/// printable one, all below U+0180.
uint32_t byteLevelCharacter(uint8_t byte);
/// The byte that `character` stands for, or -1.
int byteOfCharacter(uint32_t character);
/// Appends `text` byte by byte in those characters.
void appendByteLevel(std::string &out, std::string_view text);

/// Appends `text` with the matches `found` replaced.
void appendReplaced(std::string &out, std::string_view text,
                    const std::vector<Match> &found,
                    std::string_view replacement);
/// Appends all occurrences of `what`, which is not empty, in `text`.
void findText(std::string_view text, std::string_view what,
              std::vector<Match> &out);

/// The tokenizer's normalizers.
class NormalizerList {
public:
  /// Compiles patterns and checks tables of `table`, which must outlive it.
  static Result<NormalizerList> create(const TextTable &table);
  bool empty() const { return steps.empty(); }
  Status normalize(std::string &text);

private:
  struct Step {
    TextStep step;
    std::optional<Regex> regex;
    std::optional<Charsmap> charsmap;
  };
  Status apply(Step &step, std::string &text);

  const TextTable *table = nullptr;
  std::vector<Step> steps;
  std::vector<Match> found;
  std::string buffer;
};

/// Text cut into pieces, which follow each other but may leave gaps. `text` is
/// referred to until a step must change it.
struct Pieces {
  std::string_view text;
  std::string own;
  std::vector<Match> list;
  bool atStart = false; ///< whether the first piece begins the whole input
};

/// The tokenizer's pre-tokenizers.
class PreTokenizerList {
public:
  static Result<PreTokenizerList> create(const TextTable &table);
  /// Cuts `text`; the pieces may refer to it.
  Status split(std::string_view text, bool atStart, Pieces &out);

private:
  struct Step {
    TextStep step;
    std::optional<Regex> regex;
  };
  Status apply(Step &step, Pieces &pieces);
  Status splitPieces(Step &step, Pieces &pieces);
  Status findMatches(Step &step, std::string_view text);
  void cut(const TextStep &step, Match piece);
  void change(const TextStep &step, Pieces &pieces);

  const TextTable *table = nullptr;
  std::vector<Step> steps;
  struct Part {
    Match range;
    bool matched;
  };
  std::vector<Match> found, cuts;
  std::vector<Part> parts;
  std::string buffer;
};

/// The tokenizer's decoders.
class DecoderList {
public:
  static Result<DecoderList> create(const TextTable &table);
  /// Turns tokens into text.
  Status decode(std::vector<std::string> &tokens, std::string &out);

private:
  struct Step {
    TextStep step;
    std::optional<Regex> regex;
  };
  Status apply(Step &step, std::vector<std::string> &tokens);
  void apply(const TextStep &step, std::string &token, bool first, bool last);

  const TextTable *table = nullptr;
  std::vector<Step> steps;
  std::vector<Match> found;
};

} // namespace tenon::rt

#endif // TENON_RUNTIME_TEXT_STEPS_H
