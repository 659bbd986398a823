//===- AttrsParser.cpp - reading `{axis = 1, k = 4}` ---------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/text/AttrsParser.h"
#include "ir/text/Literals.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace tenon::ir {

namespace {

/// More than any op has; duplicates are searched for in quadratic time.
constexpr size_t maxAttributes = 64;

/// Where the value of one attribute stands in the text.
struct Entry {
  StringRef name;
  const char *nameBegin, *begin, *end;
  bool used = false;
};

/// Reads each member that it visits from where its name was found.
class AttrsParser final : public FieldVisitor {
public:
  AttrsParser(Cursor &cursor, StringRef mnemonic)
      : cursor(cursor), mnemonic(mnemonic), at(cursor.token().begin) {}

  bool parse(Attrs &attrs);

  void nextIsOptional(bool) override { optional = true; }
  void visit(StringRef name, int64_t &value) override {
    read(name, [&] { return cursor.integer(value); });
  }
  void visit(StringRef name, bool &value) override {
    read(name, [&] {
      value = cursor.token().isKeyword("true");
      return cursor.consumeKeyword("true") || cursor.consumeKeyword("false") ||
             cursor.expected("'true' or 'false'");
    });
  }
  void visit(StringRef name, double &value) override {
    read(name, [&] { return parseDouble(cursor, value); });
  }
  void visit(StringRef name, Ints &value) override {
    read(name, [&] {
      value.clear();
      return cursor.list([&] { return cursor.integer(value.emplace_back()); });
    });
  }
  void visit(StringRef name, Dim &value) override {
    read(name, [&] { return cursor.dim(value); });
  }
  void visit(StringRef name, Dims &value) override {
    read(name, [&] {
      value.clear();
      return cursor.list([&] { return cursor.dim(value.emplace_back()); });
    });
  }
  void visit(StringRef name, ElementType &value) override {
    read(name, [&] { return cursor.elementType(value); });
  }
  /// A constant has its own place in the text.
  void visit(StringRef, ConstantRef &) override {}
  void visit(StringRef name, EnumRef value) override;

private:
  bool scan();
  void read(StringRef name, function_ref<bool()> parseValue);

  Cursor &cursor;
  StringRef mnemonic;
  const char *at;
  SmallVector<Entry, 8> entries;
  std::string known;
  bool optional = false, ok = true;
};

/// Finds the names and the extent of the values.
bool AttrsParser::scan() {
  if (!cursor.consumeIf("{"))
    return true;
  do {
    Entry entry;
    entry.nameBegin = cursor.token().begin;
    if (cursor.token().kind != Token::Identifier)
      return cursor.expected("the name of an attribute");
    entry.name = cursor.token().text;
    if (is_contained(map_range(entries, [](Entry &e) { return e.name; }),
                     entry.name))
      return cursor.fail("attribute '" + entry.name + "' is given twice");
    if (entries.size() == maxAttributes)
      return cursor.fail("too many attributes");
    cursor.advance();
    if (!cursor.expect("=", "after the name of an attribute"))
      return false;
    entry.begin = cursor.token().begin;
    if (!cursor.skipTo(
            [](const Token &token) { return token.is(",") || token.is("}"); }))
      return false;
    entry.end = cursor.token().begin;
    entries.push_back(entry);
  } while (cursor.consumeIf(","));
  return cursor.expect("}", "at the end of the attributes");
}

void AttrsParser::read(StringRef name, function_ref<bool()> parseValue) {
  bool mayBeLeftOut = std::exchange(optional, false);
  if (!ok)
    return;
  known += (known.empty() ? "" : ", ") + name.str();
  Entry *entry = find_if(entries, [&](Entry &e) { return e.name == name; });
  if (entry == entries.end()) {
    if (!mayBeLeftOut)
      ok = cursor.failAt(at, "attribute '" + name + "' of '" + mnemonic +
                                 "' is missing");
    return;
  }
  entry->used = true;
  cursor.moveTo(entry->begin);
  ok = parseValue();
  if (ok && cursor.token().begin != entry->end)
    ok = cursor.expected("',' or '}' after the value of '" + name + "'");
}

void AttrsParser::visit(StringRef name, EnumRef value) {
  read(name, [&] {
    const auto *spelling = find(value.names, cursor.token().text);
    if (cursor.token().kind != Token::Identifier ||
        spelling == value.names.end())
      return cursor.expected("one of " + join(value.names, ", "));
    *value.value = int(spelling - value.names.begin());
    cursor.advance();
    return true;
  });
}

bool AttrsParser::parse(Attrs &attrs) {
  if (!scan())
    return false;
  const char *end = cursor.token().begin;
  attrs.fields(*this);
  if (!ok)
    return false;
  for (const Entry &entry : entries)
    if (!entry.used)
      return cursor.failAt(entry.nameBegin,
                           "'" + mnemonic + "' has no attribute '" +
                               entry.name + "'" +
                               (known.empty() ? "" : "; it has " + known));
  cursor.moveTo(end);
  return true;
}

} // namespace

bool parseAttrs(Cursor &cursor, StringRef mnemonic, Attrs &attrs) {
  return AttrsParser(cursor, mnemonic).parse(attrs);
}

} // namespace tenon::ir
