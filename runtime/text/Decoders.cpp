//===- Decoders.cpp - tokens as text -------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/text/Steps.h"
#include "runtime/text/Utf8.h"

#include <algorithm>

namespace tenon::rt {
namespace {

void replaceAll(std::string &text, std::string_view what,
                std::string_view with) {
  if (what.empty() || text.find(what) == std::string::npos)
    return;
  std::vector<Match> found;
  findText(text, what, found);
  std::string out;
  appendReplaced(out, text, found, with);
  text = std::move(out);
}

/// English punctuation without the spaces that WordPiece put before it.
void cleanUp(std::string &text) {
  static constexpr const char *rules[][2] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},     {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},   {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
  };
  for (auto &[what, with] : rules)
    replaceAll(text, what, with);
}

/// All tokens as the bytes that their printable characters stand for.
void decodeByteLevel(std::vector<std::string> &tokens) {
  std::string bytes;
  for (const std::string &token : tokens) {
    size_t before = bytes.size();
    const char *at = token.data(), *end = at + token.size();
    while (at < end) {
      int byte = byteOfCharacter(nextCodePoint(at, end));
      if (byte < 0) { // not byte level: the token as it is
        bytes.resize(before);
        bytes += token;
        break;
      }
      bytes += char(byte);
    }
  }
  tokens.assign(1, repairUtf8(bytes));
}

/// The byte of "<0x0A>", or -1.
int byteOfToken(const std::string &token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>')
    return -1;
  int value = 0;
  for (char c : {token[3], token[4]}) {
    int digit = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                       : -1;
    if (digit < 0)
      return -1;
    value = value * 16 + digit;
  }
  return value;
}

/// Runs of byte tokens become one token if they are valid UTF-8, else a U+FFFD
/// for each byte.
void decodeByteFallback(std::vector<std::string> &tokens) {
  std::vector<std::string> out;
  std::string bytes;
  auto flush = [&] {
    if (bytes.empty())
      return;
    if (validUtf8Prefix(bytes) == bytes.size())
      out.push_back(bytes);
    else
      out.insert(out.end(), bytes.size(), "\xef\xbf\xbd");
    bytes.clear();
  };
  for (std::string &token : tokens) {
    int byte = byteOfToken(token);
    if (byte >= 0) {
      bytes += char(byte);
      continue;
    }
    flush();
    out.push_back(std::move(token));
  }
  flush();
  tokens = std::move(out);
}

void fuse(std::vector<std::string> &tokens) {
  std::string all;
  for (const std::string &token : tokens)
    all += token;
  tokens.assign(1, std::move(all));
}

void strip(std::string &token, std::string_view what, uint32_t front,
           uint32_t back) {
  std::string_view rest = token;
  for (uint32_t i = 0; i < front && rest.starts_with(what); ++i)
    rest.remove_prefix(what.size());
  for (uint32_t i = 0; i < back && rest.ends_with(what); ++i)
    rest.remove_suffix(what.size());
  token = std::string(rest);
}

} // namespace

Result<DecoderList> DecoderList::create(const TextTable &table) {
  DecoderList list;
  list.table = &table;
  for (const TextStep &step : table.decoders()) {
    Step made{step, {}};
    auto kind = TokenDecoder(step.kind);
    if (kind == TokenDecoder::ReplaceRegex) {
      auto regex = Regex::compile(table.text(step.a));
      if (!regex.ok())
        return regex.status();
      made.regex = std::move(*regex);
    }
    if ((kind == TokenDecoder::Strip || kind == TokenDecoder::Metaspace) &&
        step.a.length == 0)
      return TN_ERROR("a decoder has an empty argument");
    list.steps.push_back(std::move(made));
  }
  return list;
}

Status DecoderList::decode(std::vector<std::string> &tokens, std::string &out) {
  for (Step &step : steps)
    if (Status status = apply(step, tokens); !status.ok())
      return status;
  bool spaced = table->has(TextJoinWithSpace);
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (spaced && i != 0)
      out += ' ';
    out += tokens[i];
  }
  return {};
}

Status DecoderList::apply(Step &step, std::vector<std::string> &tokens) {
  switch (TokenDecoder(step.step.kind)) {
  case TokenDecoder::ByteLevel:
    decodeByteLevel(tokens);
    return {};
  case TokenDecoder::ByteFallback:
    decodeByteFallback(tokens);
    return {};
  case TokenDecoder::Fuse:
    fuse(tokens);
    return {};
  case TokenDecoder::ReplaceRegex:
    for (std::string &token : tokens) {
      found.clear();
      if (validUtf8Prefix(token) != token.size())
        token = repairUtf8(token);
      if (Status status = step.regex->findAll(token, found); !status.ok())
        return status;
      std::string out;
      appendReplaced(out, token, found, table->text(step.step.b));
      token = std::move(out);
    }
    return {};
  default:
    for (size_t i = 0; i < tokens.size(); ++i)
      apply(step.step, tokens[i], i == 0, i + 1 == tokens.size());
    return {};
  }
}

/// The steps that look at one token at a time.
void DecoderList::apply(const TextStep &step, std::string &token, bool first,
                        bool last) {
  std::string_view a = table->text(step.a), b = table->text(step.b);
  switch (TokenDecoder(step.kind)) {
  case TokenDecoder::WordPiece:
    if (!first) {
      if (std::string_view(token).starts_with(a))
        token.erase(0, a.size());
      else
        token.insert(0, 1, ' ');
    }
    if (step.flags & 1)
      cleanUp(token);
    return;
  case TokenDecoder::Metaspace:
    replaceAll(token, a, first && (step.flags & 1) ? "" : " ");
    return;
  case TokenDecoder::Bpe:
    replaceAll(token, a, last ? "" : " ");
    return;
  case TokenDecoder::Strip:
    strip(token, a, step.flags & 0xffff, step.flags >> 16);
    return;
  case TokenDecoder::Replace:
    replaceAll(token, a, b);
    return;
  default:
    return;
  }
}

} // namespace tenon::rt
