//===- AttrsParser.h - reading `{axis = 1, k = 4}` -----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_IR_TEXT_ATTRSPARSER_H
#define TENON_IR_TEXT_ATTRSPARSER_H

#include "ir/text/Cursor.h"

namespace tenon::ir {

/// Parses the attributes of op \p mnemonic, in any order, into \p attrs; there
/// may be no braces when every member has a default.
bool parseAttrs(Cursor &cursor, llvm::StringRef mnemonic, Attrs &attrs);

} // namespace tenon::ir

#endif // TENON_IR_TEXT_ATTRSPARSER_H
