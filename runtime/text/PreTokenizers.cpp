//===- PreTokenizers.cpp - text cut into pieces --------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/text/Steps.h"
#include "runtime/text/Unicode.h"
#include "runtime/text/Utf8.h"

#include <utility>

namespace tenon::rt {
namespace {

/// Each maximal run of one matching character is a match of its own, as with
/// Hugging Face's predicates.
template <typename F>
void findCharacters(std::string_view text, F wanted, std::vector<Match> &out) {
  const char *begin = text.data(), *at = begin, *end = begin + text.size();
  while (at < end) {
    const char *from = at;
    if (wanted(nextCodePoint(at, end)))
      out.push_back({uint32_t(from - begin), uint32_t(at - begin)});
  }
}

/// Pieces of `count` characters.
void cutLengths(std::string_view text, uint32_t count,
                std::vector<Match> &out) {
  const char *begin = text.data(), *at = begin, *end = begin + text.size();
  while (at < end) {
    const char *from = at;
    for (uint32_t i = 0; i < count && at < end; ++i)
      nextCodePoint(at, end);
    out.push_back({uint32_t(from - begin), uint32_t(at - begin)});
  }
}

bool changesText(PreTokenizer kind) {
  return kind == PreTokenizer::PrefixSpace || kind == PreTokenizer::ByteLevel ||
         kind == PreTokenizer::Metaspace;
}

/// The printable characters of byte-level text, and the way back.
struct ByteLevelTable {
  uint16_t character[256];
  int16_t byte[512];

  ByteLevelTable() {
    for (int16_t &b : byte)
      b = -1;
    uint16_t next = 256;
    for (unsigned b = 0; b < 256; ++b) {
      bool printable = (b >= '!' && b <= '~') || (b >= 0xa1 && b != 0xad);
      character[b] = printable ? uint16_t(b) : next++;
      byte[character[b]] = int16_t(b);
    }
  }
};

const ByteLevelTable &byteLevelTable() {
  static const ByteLevelTable table;
  return table;
}

} // namespace

uint32_t byteLevelCharacter(uint8_t byte) {
  return byteLevelTable().character[byte];
}

int byteOfCharacter(uint32_t character) {
  return character < 512 ? byteLevelTable().byte[character] : -1;
}

void appendByteLevel(std::string &out, std::string_view text) {
  const ByteLevelTable &table = byteLevelTable();
  for (char c : text) {
    uint16_t character = table.character[static_cast<unsigned char>(c)];
    if (character < 0x80) {
      out += char(character);
    } else {
      out += char(0xc0 | character >> 6);
      out += char(0x80 | (character & 0x3f));
    }
  }
}

Result<PreTokenizerList> PreTokenizerList::create(const TextTable &table) {
  PreTokenizerList list;
  list.table = &table;
  for (const TextStep &step : table.preTokenizers()) {
    Step made{step, {}};
    auto kind = PreTokenizer(step.kind);
    if (kind == PreTokenizer::SplitRegex) {
      auto regex = Regex::compile(table.text(step.a));
      if (!regex.ok())
        return regex.status();
      made.regex = std::move(*regex);
    }
    if ((kind == PreTokenizer::Metaspace && step.a.length == 0) ||
        (kind == PreTokenizer::FixedLength && step.value == 0))
      return TN_ERROR("a pre-tokenizer has an empty argument");
    list.steps.push_back(std::move(made));
  }
  return list;
}

Status PreTokenizerList::split(std::string_view text, bool atStart,
                               Pieces &out) {
  out.text = text;
  out.atStart = atStart;
  out.list.clear();
  if (!text.empty())
    out.list.push_back({0, uint32_t(text.size())});
  for (Step &step : steps)
    if (Status status = apply(step, out); !status.ok())
      return status;
  return {};
}

Status PreTokenizerList::apply(Step &step, Pieces &pieces) {
  auto kind = PreTokenizer(step.step.kind);
  if (changesText(kind))
    change(step.step, pieces);
  if (changesText(kind) &&
      !(kind == PreTokenizer::Metaspace && (step.step.flags & 4)))
    return {};
  return splitPieces(step, pieces);
}

/// Rewrites the pieces' text.
void PreTokenizerList::change(const TextStep &step, Pieces &pieces) {
  auto kind = PreTokenizer(step.kind);
  std::string_view mark = table->text(step.a);
  buffer.clear();
  buffer.reserve(pieces.text.size() + pieces.text.size() / 4);
  bool first = pieces.atStart;
  for (Match &piece : pieces.list) {
    std::string_view text =
        pieces.text.substr(piece.begin, piece.end - piece.begin);
    uint32_t begin = uint32_t(buffer.size());
    if (kind == PreTokenizer::ByteLevel) {
      appendByteLevel(buffer, text);
    } else if (kind == PreTokenizer::PrefixSpace) {
      if (text[0] != ' ')
        buffer += ' ';
      buffer.append(text);
    } else {
      bool prepend = (step.flags & 1) || ((step.flags & 2) && first);
      if (prepend && text[0] != ' ' && !text.starts_with(mark))
        buffer.append(mark);
      for (size_t at = 0;;) {
        size_t space = text.find(' ', at);
        buffer.append(text.substr(at, space - at));
        if (space == std::string_view::npos)
          break;
        buffer.append(mark);
        at = space + 1;
      }
    }
    piece = {begin, uint32_t(buffer.size())};
    first = false;
  }
  pieces.own.swap(buffer);
  pieces.text = pieces.own;
}

Status PreTokenizerList::findMatches(Step &step, std::string_view text) {
  found.clear();
  switch (PreTokenizer(step.step.kind)) {
  case PreTokenizer::SplitRegex:
    return step.regex->findAll(text, found);
  case PreTokenizer::SplitText:
  case PreTokenizer::Metaspace:
    if (step.step.a.length != 0)
      findText(text, table->text(step.step.a), found);
    break;
  case PreTokenizer::SplitSpace:
    findCharacters(text, isWhiteSpace, found);
    break;
  case PreTokenizer::SplitPunctuation:
    findCharacters(text, isPunctuation, found);
    break;
  case PreTokenizer::SplitDigits:
    findCharacters(text, isNumeric, found);
    break;
  case PreTokenizer::FixedLength:
    cutLengths(text, step.step.value, found);
    break;
  case PreTokenizer::PrefixSpace:
  case PreTokenizer::ByteLevel:
    break;
  }
  return {};
}

Status PreTokenizerList::splitPieces(Step &step, Pieces &pieces) {
  cuts.clear();
  bool keepsFirst = true;
  for (size_t i = 0; i < pieces.list.size(); ++i) {
    Match piece = pieces.list[i];
    std::string_view text =
        pieces.text.substr(piece.begin, piece.end - piece.begin);
    if (Status status = findMatches(step, text); !status.ok())
      return status;
    cut(step.step, piece);
    if (i == 0)
      keepsFirst = !cuts.empty() && cuts[0].begin == piece.begin;
  }
  pieces.atStart = pieces.atStart && keepsFirst;
  pieces.list.swap(cuts);
  return {};
}

/// Cuts `piece` at the matches in `found`, which count from its start.
void PreTokenizerList::cut(const TextStep &step, Match piece) {
  parts.clear();
  uint32_t length = piece.end - piece.begin, at = 0;
  bool inverted = step.invert != 0;
  for (Match match : found) {
    if (at != match.begin)
      parts.push_back({{at, match.begin}, inverted});
    parts.push_back({match, !inverted});
    at = match.end;
  }
  if (at != length)
    parts.push_back({{at, length}, inverted});

  SplitBehavior behavior = step.behavior;
  size_t begin = cuts.size();
  bool previous = false;
  auto push = [&](const Part &part) {
    cuts.push_back({part.range.begin, part.range.end});
  };
  if (behavior == SplitBehavior::MergedWithNext) {
    // From the back, as the one before: a match joins what follows it.
    for (size_t i = parts.size(); i-- > 0;) {
      if (parts[i].matched && !previous && cuts.size() > begin)
        cuts.back().begin = parts[i].range.begin;
      else
        push(parts[i]);
      previous = parts[i].matched;
    }
    for (size_t low = begin, high = cuts.size(); low + 1 < high; ++low)
      std::swap(cuts[low], cuts[--high]);
  } else {
    for (const Part &part : parts) {
      bool joins = behavior == SplitBehavior::Contiguous
                       ? part.matched == previous
                       : behavior == SplitBehavior::MergedWithPrevious &&
                             part.matched && !previous;
      if (behavior == SplitBehavior::Removed && part.matched)
        continue;
      if (joins && cuts.size() > begin)
        cuts.back().end = part.range.end;
      else
        push(part);
      previous = part.matched;
    }
  }
  // Counted from the text's start; empty ones go.
  size_t to = begin;
  for (size_t i = begin; i < cuts.size(); ++i)
    if (cuts[i].begin != cuts[i].end)
      cuts[to++] = {cuts[i].begin + piece.begin, cuts[i].end + piece.begin};
  cuts.resize(to);
}

} // namespace tenon::rt
