//===- Tokenizer.cpp - text to ids and back ------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/text/Tokenizer.h"

#include "runtime/text/Utf8.h"

namespace tenon::rt {

Result<std::unique_ptr<Tokenizer>> Tokenizer::create(Bytes bytes) {
  auto table = TextTable::load(bytes);
  if (!table.ok())
    return table.status();
  std::unique_ptr<Tokenizer> made(new Tokenizer(*table));
  auto normalizers = NormalizerList::create(made->table);
  if (!normalizers.ok())
    return normalizers.status();
  made->normalizers = std::move(*normalizers);
  auto preTokenizers = PreTokenizerList::create(made->table);
  if (!preTokenizers.ok())
    return preTokenizers.status();
  made->preTokenizers = std::move(*preTokenizers);
  auto decoders = DecoderList::create(made->table);
  if (!decoders.ok())
    return decoders.status();
  made->decoders = std::move(*decoders);
  made->model = makeWordModel(made->table);
  if (Status status = made->makeAdded(); !status.ok())
    return status;
  return made;
}

/// Tokens that are looked for in normalized text are normalized themselves.
Status Tokenizer::makeAdded() {
  for (const AddedEntry &entry : table.added()) {
    std::string content(table.text(entry.content));
    if (!(entry.flags & AddedNormalized)) {
      plainAdded.add(std::move(content), entry.id, entry.flags);
      continue;
    }
    std::string normal = content;
    if (Status status = normalizers->normalize(normal); !status.ok())
      return status;
    if (normal != content)
      normalizedTexts.emplace_back(entry.id, normal);
    normalizedAdded.add(std::move(normal), entry.id, entry.flags);
  }
  plainAdded.finish();
  normalizedAdded.finish();
  return {};
}

Status Tokenizer::encode(std::string_view text, bool addSpecial,
                         std::vector<uint32_t> &ids) {
  if (text.size() >= (size_t(1) << 30))
    return TN_ERROR("a text of %zu bytes, expected at most 1 GiB", text.size());
  std::string repaired;
  if (validUtf8Prefix(text) != text.size()) {
    repaired = repairUtf8(text);
    text = repaired;
  }
  size_t before = ids.size();
  std::vector<AddedTokens::Section> sections;
  plainAdded.split(text, sections);
  for (const AddedTokens::Section &section : sections) {
    if (section.id != none) {
      ids.push_back(section.id);
      continue;
    }
    std::string_view part =
        text.substr(section.begin, section.end - section.begin);
    if (Status status = encodeSection(part, section.begin == 0, ids);
        !status.ok())
      return status;
  }
  if (addSpecial)
    applyTemplate(ids, before);
  return {};
}

/// Text between two added tokens.
Status Tokenizer::encodeSection(std::string_view text, bool atStart,
                                std::vector<uint32_t> &ids) {
  std::string normal;
  if (!normalizers->empty()) {
    normal = text;
    if (Status status = normalizers->normalize(normal); !status.ok())
      return status;
    text = normal;
  }
  std::vector<AddedTokens::Section> sections;
  normalizedAdded.split(text, sections);
  for (const AddedTokens::Section &section : sections) {
    if (section.id != none) {
      ids.push_back(section.id);
      continue;
    }
    Status status =
        encodePlain(text.substr(section.begin, section.end - section.begin),
                    atStart && section.begin == 0, ids);
    if (!status.ok())
      return status;
  }
  return {};
}

/// Normalized text without added tokens.
Status Tokenizer::encodePlain(std::string_view text, bool atStart,
                              std::vector<uint32_t> &ids) {
  if (Status status = preTokenizers->split(text, atStart, pieces); !status.ok())
    return status;
  for (Match piece : pieces.list) {
    std::string_view word =
        pieces.text.substr(piece.begin, piece.end - piece.begin);
    bool remember = word.size() <= WordCache::maxWord;
    if (remember && cache.append(word, ids))
      continue;
    size_t before = ids.size();
    if (Status status = model->encode(word, ids); !status.ok())
      return status;
    if (remember)
      cache.store(word, std::span(ids).subspan(before));
  }
  return {};
}

void Tokenizer::applyTemplate(std::vector<uint32_t> &ids, size_t begin) const {
  if (table.post().empty())
    return;
  std::vector<uint32_t> text(ids.begin() + ptrdiff_t(begin), ids.end());
  ids.resize(begin);
  for (uint32_t id : table.post())
    if (id == none)
      ids.insert(ids.end(), text.begin(), text.end());
    else
      ids.push_back(id);
}

std::string Tokenizer::tokenText(uint32_t id) const {
  return id < table.tokens().size()
             ? std::string(table.text(table.tokens()[id].text))
             : std::string();
}

bool Tokenizer::isSpecial(uint32_t id) const {
  return id < table.tokens().size() &&
         (table.tokens()[id].flags & TokenSpecial);
}

Result<std::string> Tokenizer::decode(std::span<const uint32_t> ids,
                                      bool skipSpecial) {
  std::vector<std::string> tokens;
  for (uint32_t id : ids) {
    if (id >= table.tokens().size() || table.tokens()[id].flags == 0)
      continue;
    std::string text = tokenText(id);
    bool special = isSpecial(id);
    for (const auto &[known, normal] : normalizedTexts)
      if (known == id) {
        // As in `tokenizers`, which knows special tokens by their content.
        special = false;
        text = normal;
      }
    if (!skipSpecial || !special)
      tokens.push_back(std::move(text));
  }
  std::string out;
  if (tokens.empty())
    return out;
  if (Status status = decoders->decode(tokens, out); !status.ok())
    return status;
  return out;
}

ChatTexts Tokenizer::chat() const {
  const ChatFormat &format = table.header().chat;
  auto text = [&](TextString string) {
    return std::string(table.text(string));
  };
  return {text(format.begin), text(format.userBegin), text(format.userEnd),
          text(format.assistantBegin), text(format.assistantEnd)};
}

} // namespace tenon::rt

extern "C" tenon::rt::Result<std::unique_ptr<tenon::rt::TextCodec>>
tenon_make_text_codec(tenon::rt::Bytes table) {
  auto made = tenon::rt::Tokenizer::create(table);
  if (!made.ok())
    return made.status();
  return std::unique_ptr<tenon::rt::TextCodec>(std::move(*made));
}
