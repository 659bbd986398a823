//===- Cursor.cpp - a position in a text, with errors --------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/text/Cursor.h"
#include "ir/support/Diag.h"
#include "ir/support/Quote.h"

using namespace llvm;

namespace tenon::ir {

namespace {
/// Far above any model's; side files store a rank in one byte.
constexpr size_t maxRank = 64;
} // namespace

Cursor::Cursor(MemoryBufferRef buffer)
    : buffer(buffer), rest(buffer.getBuffer()) {
  advance();
}

void Cursor::advance() { current = lexToken(rest); }

void Cursor::moveTo(const char *position) {
  StringRef all = buffer.getBuffer();
  rest = all.drop_front(position - all.data());
  advance();
}

bool Cursor::consumeIf(StringRef punctuation) {
  if (!is(punctuation))
    return false;
  advance();
  return true;
}

bool Cursor::consumeKeyword(StringRef word) {
  if (!current.isKeyword(word))
    return false;
  advance();
  return true;
}

bool Cursor::expect(StringRef punctuation, StringRef where) {
  return consumeIf(punctuation) || expected("'" + punctuation + "' " + where);
}

bool Cursor::integer(int64_t &value) {
  const char *begin = current.begin;
  bool negative = consumeIf("-");
  if (current.kind != Token::Number)
    return expected("an integer");
  uint64_t magnitude;
  if (current.text.getAsInteger(10, magnitude) ||
      magnitude > uint64_t(INT64_MAX) + negative)
    return failAt(begin, "'" + current.text + "' is not a 64-bit integer");
  value = int64_t(negative ? -magnitude : magnitude);
  advance();
  return true;
}

bool Cursor::string(std::string &value) {
  if (current.kind != Token::String)
    return expected("a string in quotes");
  StringRef text = current.text;
  value = consumeQuoted(text).value_or("");
  advance();
  return true;
}

bool Cursor::name(std::string &value, StringRef what) {
  if (current.kind == Token::String)
    return string(value);
  if (current.kind != Token::Identifier)
    return expected(what + " (an identifier or a string)");
  value = current.text.str();
  advance();
  return true;
}

bool Cursor::dim(Dim &value) {
  StringRef text(current.begin, buffer.getBufferEnd() - current.begin);
  std::optional<Dim> parsed = parseDimPrefix(text);
  const char *begin = current.begin;
  moveTo(text.data());
  if (!parsed) {
    if (current.kind == Token::End || text.data() == begin)
      return expected("a dimension");
    return failAt(begin,
                  "not a dimension expression, or one that is too large");
  }
  value = *parsed;
  return true;
}

bool Cursor::elementType(ElementType &value) {
  std::optional<ElementType> parsed = current.kind == Token::Identifier
                                          ? parseElementType(current.text)
                                          : std::nullopt;
  if (!parsed)
    return expected("an element type such as f32 or i64");
  value = *parsed;
  advance();
  return true;
}

bool Cursor::type(TensorType &value) {
  if (!elementType(value.element))
    return false;
  value.shape.clear();
  if (!is("["))
    return true;
  return list([&] {
    if (value.shape.size() == maxRank)
      return fail("a tensor has at most " + Twine(maxRank) + " dimensions");
    return dim(value.shape.emplace_back());
  });
}

bool Cursor::list(function_ref<bool()> item) {
  if (!consumeIf("["))
    return expected("'['");
  if (consumeIf("]"))
    return true;
  do {
    if (!item())
      return false;
  } while (consumeIf(","));
  return expect("]", "at the end of the list");
}

bool Cursor::skipTo(function_ref<bool(const Token &)> stop) {
  unsigned depth = 0;
  while (depth != 0 || !stop(current)) {
    if (current.kind == Token::End || current.kind == Token::Invalid)
      return expected("the rest of the op");
    if (is("(") || is("[") || is("{"))
      ++depth;
    else if ((is(")") || is("]") || is("}")) && depth-- == 0)
      return fail("'" + current.text + "' closes nothing");
    advance();
  }
  return true;
}

bool Cursor::failAt(const char *where, const Twine &text) {
  if (!errorAt) {
    errorAt = where;
    message = text.str();
  }
  return false;
}

bool Cursor::failWith(const char *where, const Twine &prefix, Error error) {
  return failAt(where, prefix + toString(std::move(error)));
}

bool Cursor::expected(const Twine &what) {
  if (current.kind == Token::End)
    return fail("expected " + what + ", found the end of the file");
  if (current.kind == Token::Invalid && current.text == "\"")
    return fail("a string that does not end, or has a wrong escape");
  std::string shown;
  raw_string_ostream os(shown);
  StringRef text = current.text;
  if (current.kind == Token::Value)
    os << '%';
  if (current.kind == Token::Function)
    os << '@';
  os.write_escaped(text.take_front(40));
  return fail("expected " + what + ", found '" + os.str() + "'");
}

Error Cursor::takeError() {
  StringRef before = buffer.getBuffer().take_front(
      errorAt ? errorAt - buffer.getBufferStart() : 0);
  size_t line = before.count('\n') + 1;
  size_t lineStart = before.rfind('\n') + 1; // npos + 1 is 0
  return userError("{0}:{1}:{2}: error: {3}", buffer.getBufferIdentifier(),
                   line, before.size() - lineStart + 1, message);
}

} // namespace tenon::ir
