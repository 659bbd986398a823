//===- Lexer.h - tokens of the text form ---------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_IR_TEXT_LEXER_H
#define TENON_IR_TEXT_LEXER_H

#include "llvm/ADT/StringRef.h"

namespace tenon::ir {

struct Token {
  enum Kind {
    End,
    Invalid,    ///< a byte or an unfinished string that starts no token
    Identifier, ///< [A-Za-z_][A-Za-z0-9_]*
    Value,      ///< %name; `text` is the name
    Function,   ///< @name, @"any text"; `text` is what follows the @
    String,     ///< "text"; `text` includes the quotes
    Number,     ///< 12, 0.5, 1e-12, 0x1f: no sign
    Punctuation ///< -> == ... .. and single characters
  };
  Kind kind = End;
  llvm::StringRef text;
  /// Where it starts.
  const char *begin = nullptr;

  bool is(llvm::StringRef punctuation) const {
    return kind == Punctuation && text == punctuation;
  }
  bool isKeyword(llvm::StringRef word) const {
    return kind == Identifier && text == word;
  }
};

/// Whether \p c may stand in a value's name after the `%`.
bool isValueNameChar(char c);

/// Takes the first token off \p rest, skipping space and `//` comments.
Token lexToken(llvm::StringRef &rest);

} // namespace tenon::ir

#endif // TENON_IR_TEXT_LEXER_H
