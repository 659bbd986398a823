//===- ChatTemplate.h - what stands around the turns of a chat ------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_CODEGEN_TOKENIZER_CHATTEMPLATE_H
#define TENON_CODEGEN_TOKENIZER_CHATTEMPLATE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace tenon::codegen {

/// A chat is begin, then for each exchange userBegin, what the person says,
/// userEnd, assistantBegin, what the model says, assistantEnd.
struct ChatParts {
  std::string begin, userBegin, userEnd, assistantBegin, assistantEnd;
};

/// What the Jinja template \p source writes around turns, found by rendering
/// chats with marks as texts. An error says what is not understood, or that
/// the template is none that goes on turn by turn (what was written changes
/// when more is said, or the first turn differs from the others).
llvm::Expected<ChatParts> readChatTemplate(llvm::StringRef source,
                                           llvm::StringRef bosToken,
                                           llvm::StringRef eosToken);

} // namespace tenon::codegen

#endif // TENON_CODEGEN_TOKENIZER_CHATTEMPLATE_H
