//===- Normalizers.cpp - text before it is cut into pieces ---------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/text/Steps.h"
#include "runtime/text/Unicode.h"
#include "runtime/text/Utf8.h"

namespace tenon::rt {
namespace {

/// Calls `change(out, codePoint)` for each character of `text`.
template <typename F>
void mapCharacters(std::string &text, std::string &out, F change) {
  out.clear();
  out.reserve(text.size() + text.size() / 8);
  const char *at = text.data(), *end = at + text.size();
  while (at < end)
    change(out, nextCodePoint(at, end));
  text.swap(out);
}

bool isIdeograph(uint32_t c) {
  static constexpr uint32_t ranges[][2] = {
      {0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},
      {0x20000, 0x2a6df}, {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f},
      {0x2b920, 0x2ceaf}, {0x2f800, 0x2fa1f}};
  if (c < ranges[0][0])
    return false;
  for (auto [low, high] : ranges)
    if (c >= low && c <= high)
      return true;
  return false;
}

void cleanText(std::string &out, uint32_t c) {
  if (c == '\t' || c == '\n' || c == '\r')
    out += ' ';
  else if (c != 0 && c != 0xfffd && !isControlOrFormat(c)) {
    if (isWhiteSpace(c))
      out += ' ';
    else
      appendUtf8(out, c);
  }
}

void neuralTranslation(std::string &out, uint32_t c) {
  if ((c >= 1 && c <= 8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f ||
      c == 0x8f || c == 0x9f)
    return;
  if (c == '\t' || c == '\n' || c == 0xc || c == '\r' || c == 0x1680 ||
      (c >= 0x200b && c <= 0x200f) || c == 0x2028 || c == 0x2029 ||
      c == 0x2581 || c == 0xfeff || c == 0xfffd)
    c = ' ';
  appendUtf8(out, c);
}

void strip(std::string &text, bool left, bool right) {
  const char *begin = text.data(), *end = begin + text.size();
  while (left && begin < end) {
    const char *next = begin;
    if (!isWhiteSpace(nextCodePoint(next, end)))
      break;
    begin = next;
  }
  while (right && begin < end) {
    const char *last = previousCodePoint(begin, end), *at = last;
    if (!isWhiteSpace(nextCodePoint(at, end)))
      break;
    end = last;
  }
  text = std::string(begin, size_t(end - begin));
}

std::optional<NormalForm> formOf(Normalizer kind) {
  switch (kind) {
  case Normalizer::Nfc:
    return NormalForm::Nfc;
  case Normalizer::Nfd:
    return NormalForm::Nfd;
  case Normalizer::Nfkc:
    return NormalForm::Nfkc;
  case Normalizer::Nfkd:
    return NormalForm::Nfkd;
  default:
    return std::nullopt;
  }
}

/// The steps that look at one character at a time.
bool mapByCharacter(Normalizer kind, std::string &text, std::string &buffer) {
  switch (kind) {
  case Normalizer::Lowercase:
    mapCharacters(text, buffer, appendLowercase);
    return true;
  case Normalizer::StripAccents:
    mapCharacters(text, buffer, [](std::string &out, uint32_t c) {
      if (!isMark(c))
        appendUtf8(out, c);
    });
    return true;
  case Normalizer::StripMn:
    mapCharacters(text, buffer, [](std::string &out, uint32_t c) {
      if (!isNonspacingMark(c))
        appendUtf8(out, c);
    });
    return true;
  case Normalizer::Nmt:
    mapCharacters(text, buffer, neuralTranslation);
    return true;
  case Normalizer::CleanText:
    mapCharacters(text, buffer, cleanText);
    return true;
  case Normalizer::SpaceChinese:
    mapCharacters(text, buffer, [](std::string &out, uint32_t c) {
      bool spaced = isIdeograph(c);
      if (spaced)
        out += ' ';
      appendUtf8(out, c);
      if (spaced)
        out += ' ';
    });
    return true;
  default:
    return false;
  }
}

} // namespace

void appendReplaced(std::string &out, std::string_view text,
                    const std::vector<Match> &found,
                    std::string_view replacement) {
  size_t at = 0;
  for (Match match : found) {
    out.append(text.substr(at, match.begin - at));
    out.append(replacement);
    at = match.end;
  }
  out.append(text.substr(at));
}

void findText(std::string_view text, std::string_view what,
              std::vector<Match> &out) {
  for (size_t at = 0;;) {
    size_t found = text.find(what, at);
    if (found == std::string_view::npos)
      return;
    at = found + what.size();
    out.push_back({uint32_t(found), uint32_t(at)});
  }
}

Result<NormalizerList> NormalizerList::create(const TextTable &table) {
  NormalizerList list;
  list.table = &table;
  for (const TextStep &step : table.normalizers()) {
    Step made{step, {}, {}};
    auto kind = Normalizer(step.kind);
    if (kind == Normalizer::ReplaceRegex) {
      auto regex = Regex::compile(table.text(step.a));
      if (!regex.ok())
        return regex.status();
      made.regex = std::move(*regex);
    } else if (kind == Normalizer::Precompiled) {
      auto map = Charsmap::load(table.text(step.a));
      if (!map.ok())
        return map.status();
      made.charsmap = *map;
    } else if (kind == Normalizer::Replace && step.a.length == 0) {
      return TN_ERROR("a normalizer replaces an empty text");
    }
    list.steps.push_back(std::move(made));
  }
  return list;
}

Status NormalizerList::normalize(std::string &text) {
  // No character grows this much; a hostile list of replacements could.
  size_t limit = text.size() * 64 + (size_t(1) << 20);
  for (Step &step : steps) {
    if (Status status = apply(step, text); !status.ok())
      return status;
    if (text.size() > limit)
      return TN_ERROR("the tokenizer's normalizers make the text %zu bytes "
                      "long, expected at most %zu",
                      text.size(), limit);
  }
  return {};
}

Status NormalizerList::apply(Step &step, std::string &text) {
  auto kind = Normalizer(step.step.kind);
  if (mapByCharacter(kind, text, buffer))
    return {};
  std::string_view a = table->text(step.step.a), b = table->text(step.step.b);
  buffer.clear();
  if (auto form = formOf(kind)) {
    appendNormalized(buffer, text, *form);
  } else if (kind == Normalizer::Prepend) {
    if (!text.empty())
      text.insert(0, a);
    return {};
  } else if (kind == Normalizer::Strip) {
    strip(text, step.step.flags & 1, step.step.flags & 2);
    return {};
  } else if (kind == Normalizer::Precompiled) {
    step.charsmap->append(buffer, text);
  } else if (kind == Normalizer::ByteLevel) {
    appendByteLevel(buffer, text);
  } else {
    found.clear();
    if (step.regex) {
      if (Status status = step.regex->findAll(text, found); !status.ok())
        return status;
    } else {
      findText(text, a, found);
    }
    appendReplaced(buffer, text, found, b);
  }
  text.swap(buffer);
  return {};
}

} // namespace tenon::rt
