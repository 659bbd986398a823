//===- TextCodec.cpp - text to ids and back, behind an interface ---------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/TextCodec.h"

namespace tenon::rt {
namespace {

constexpr std::string_view replacement = "\xef\xbf\xbd";

} // namespace

Result<std::string> StreamDecoder::add(uint32_t id) {
  ids.push_back(id);
  auto text = codec.decode(ids, true);
  if (!text.ok())
    return text;
  // A trailing U+FFFD may be the first part of a character.
  if (text->ends_with(replacement) || text->size() <= prefix.size() ||
      !text->starts_with(prefix))
    return std::string();
  std::string added = text->substr(prefix.size());
  // Keep the ids of this step: the next token's text may depend on them.
  ids.erase(ids.begin(), ids.begin() + ptrdiff_t(known));
  known = ids.size();
  auto again = codec.decode(ids, true);
  if (!again.ok())
    return again;
  prefix = std::move(*again);
  return added;
}

Result<std::string> StreamDecoder::finish() {
  auto text = codec.decode(ids, true);
  if (!text.ok())
    return text;
  std::string rest =
      text->starts_with(prefix) ? text->substr(prefix.size()) : "";
  ids.clear();
  known = 0;
  prefix.clear();
  return rest;
}

} // namespace tenon::rt
