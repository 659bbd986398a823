//===- TextCodec.h - text to ids and back, behind an interface -----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_TEXTCODEC_H
#define TENON_RUNTIME_TEXTCODEC_H

#include "runtime/format/tokenizer.h"
#include "runtime/support/Bytes.h"
#include "runtime/support/Status.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::rt {

/// The texts around the turns of a chat (see ChatFormat).
struct ChatTexts {
  std::string begin, userBegin, userEnd, assistantBegin, assistantEnd;
  bool empty() const { return userBegin.empty() && assistantBegin.empty(); }
};

/// What the runtime needs of a tokenizer. The one implementation is linked only
/// into artifacts that carry a tokenizer.
class TextCodec {
public:
  virtual ~TextCodec() = default;

  /// Appends the ids of `text`, with the template's special tokens around them
  /// if wished. Ill-formed UTF-8 counts as U+FFFD.
  virtual Status encode(std::string_view text, bool addSpecial,
                        std::vector<uint32_t> &ids) = 0;
  /// The text of `ids`; ids that do not exist are left out.
  virtual Result<std::string> decode(std::span<const uint32_t> ids,
                                     bool skipSpecial) = 0;
  /// One more than the greatest id.
  virtual uint32_t idCount() const = 0;
  /// The token of an id as the vocabulary has it; empty if there is none.
  virtual std::string tokenText(uint32_t id) const = 0;
  virtual bool isSpecial(uint32_t id) const = 0;
  /// Ids that end a generated text.
  virtual std::span<const uint32_t> stopIds() const = 0;
  virtual const GenerationDefaults &defaults() const = 0;
  virtual ChatTexts chat() const = 0;
};

/// Text of ids that come one at a time. What a token means may depend on those
/// before it, and characters may be spread over tokens, so a few ids are
/// decoded again each time and text appears once it is whole.
class StreamDecoder {
public:
  explicit StreamDecoder(TextCodec &codec) : codec(codec) {}
  /// The text that became certain with `id`; often empty.
  Result<std::string> add(uint32_t id);
  /// What is left, with U+FFFD for characters that never became whole.
  Result<std::string> finish();

private:
  TextCodec &codec;
  std::vector<uint32_t> ids;
  size_t known = 0;   ///< ids[0, known) decode to `prefix`
  std::string prefix; ///< has been given out already
};

} // namespace tenon::rt

extern "C" {
/// Makes the tokenizer of a table. Null in an artifact without one: the archive
/// that defines it is linked only where it is asked for.
__attribute__((weak, visibility("hidden")))
tenon::rt::Result<std::unique_ptr<tenon::rt::TextCodec>>
tenon_make_text_codec(tenon::rt::Bytes table);
}

#endif // TENON_RUNTIME_TEXTCODEC_H
