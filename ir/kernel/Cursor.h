//===- Cursor.h - reads a line of a .tnk file ----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_IR_KERNEL_CURSOR_H
#define TENON_IR_KERNEL_CURSOR_H

#include "ir/kernel/Program.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include <cstdlib>
#include <string>

namespace tenon::kernel {

/// A failure is remembered once and makes everything after it fail quietly, so
/// that reading code stays straight; it is asked for after each line.
class Cursor {
public:
  explicit Cursor(llvm::StringRef text) : rest(text) { skip(); }

  bool failed() const { return !message.empty(); }
  bool atEnd() const { return rest.empty(); }
  void fail(const llvm::Twine &what) {
    if (message.empty())
      message = what.str();
    rest = "";
  }
  bool eat(llvm::StringRef token) {
    if (!rest.starts_with(token))
      return false;
    rest = rest.drop_front(token.size());
    skip();
    return true;
  }
  void expect(llvm::StringRef token) {
    if (!eat(token))
      fail("expected '" + token + "' before '" + rest.take_front(20) + "'");
  }
  llvm::StringRef word() {
    llvm::StringRef word = rest.take_while([](char c) {
      return llvm::isAlnum(c) || c == '_' || c == '-' || c == '.';
    });
    if (word.empty())
      fail("expected a word before '" + rest.take_front(20) + "'");
    rest = rest.drop_front(word.size());
    skip();
    return word;
  }
  int64_t integer() {
    int64_t value = 0;
    if (rest.consumeInteger(10, value))
      fail("expected an integer before '" + rest.take_front(20) + "'");
    skip();
    return value;
  }
  std::string quoted() {
    expect("\"");
    std::string out;
    while (!rest.empty() && rest.front() != '"') {
      if (rest.front() == '\\' && rest.size() >= 3) {
        unsigned byte = 0;
        if (rest.substr(1, 2).getAsInteger(16, byte)) {
          out += rest[1];
          rest = rest.drop_front(2);
          continue;
        }
        out += char(byte);
        rest = rest.drop_front(3);
        continue;
      }
      out += rest.front();
      rest = rest.drop_front();
    }
    expect("\"");
    return out;
  }
  /// Text up to one of \p stops outside of parentheses, brackets and quotes.
  llvm::StringRef until(llvm::ArrayRef<llvm::StringRef> stops) {
    int depth = 0;
    bool quote = false;
    for (size_t i = 0; i <= rest.size(); ++i) {
      bool stop = llvm::any_of(stops, [&](llvm::StringRef s) {
        return rest.substr(i).starts_with(s);
      });
      if (i == rest.size() || (depth == 0 && !quote && stop)) {
        llvm::StringRef text = rest.take_front(i).trim();
        rest = rest.drop_front(i);
        skip();
        return text;
      }
      char c = rest[i];
      if (c == '"')
        quote = !quote;
      if (!quote)
        depth += (c == '(' || c == '[') - (c == ')' || c == ']');
    }
    return "";
  }
  Dim dim(llvm::ArrayRef<llvm::StringRef> stops) {
    llvm::StringRef text = until(stops);
    std::optional<Dim> value = ir::parseDim(text);
    if (!value)
      fail("'" + text + "' is not an expression");
    return value.value_or(Dim(0));
  }
  Dims dims() {
    Dims list;
    expect("[");
    while (!failed() && !eat("]")) {
      list.push_back(dim({",", "]"}));
      eat(",");
    }
    return list;
  }
  ElementType element() {
    llvm::StringRef name = word();
    std::optional<ElementType> type = ir::parseElementType(name);
    if (!type)
      fail("'" + name + "' is not an element type");
    return type.value_or(ElementType::F32);
  }
  std::string message;
  llvm::StringRef rest;

private:
  void skip() { rest = rest.ltrim(" \t\r"); }
};

} // namespace tenon::kernel

#endif // TENON_IR_KERNEL_CURSOR_H
