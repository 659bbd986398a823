//===- Cursor.h - a position in a text, with errors ----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_IR_TEXT_CURSOR_H
#define TENON_IR_TEXT_CURSOR_H

#include "ir/Attrs.h"
#include "ir/text/Lexer.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBufferRef.h"
#include <string>

namespace tenon::ir {

/// Reads the small things that the text form is made of. Functions that return
/// bool give false after an error, which is kept here; the first one counts.
class Cursor {
public:
  explicit Cursor(llvm::MemoryBufferRef buffer);

  const Token &token() const { return current; }
  void advance();
  /// Moves to the token at \p position, which a token began at before.
  void moveTo(const char *position);

  bool is(llvm::StringRef punctuation) const { return current.is(punctuation); }
  bool consumeIf(llvm::StringRef punctuation);
  bool consumeKeyword(llvm::StringRef word);
  /// \p where reads on from "expected ':' ": "after the attributes".
  bool expect(llvm::StringRef punctuation, llvm::StringRef where);

  /// An integer with an optional `-`.
  bool integer(int64_t &value);
  /// "text", with its escapes resolved.
  bool string(std::string &value);
  /// An identifier or a string.
  bool name(std::string &value, llvm::StringRef what);
  bool dim(Dim &value);
  bool elementType(ElementType &value);
  /// f32[batch, 768]
  bool type(TensorType &value);
  /// `[` item `,` item ... `]`
  bool list(llvm::function_ref<bool()> item);
  /// Skips tokens, with whole brackets, until one that \p stop accepts outside
  /// brackets.
  bool skipTo(llvm::function_ref<bool(const Token &)> stop);

  /// Records an error at the current token (or at \p where) unless there is one
  /// already. Always false.
  bool fail(const llvm::Twine &message) {
    return failAt(current.begin, message);
  }
  bool failAt(const char *where, const llvm::Twine &message);
  /// As fail, for errors that others return.
  bool failWith(const char *where, const llvm::Twine &prefix,
                llvm::Error error);
  /// "expected ..., found 'token'".
  bool expected(const llvm::Twine &what);

  /// `file:line:column: error: ...`.
  llvm::Error takeError();

private:
  llvm::MemoryBufferRef buffer;
  llvm::StringRef rest;
  Token current;
  std::string message;
  const char *errorAt = nullptr;
};

} // namespace tenon::ir

#endif // TENON_IR_TEXT_CURSOR_H
