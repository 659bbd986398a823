//===- ChatTemplate.cpp - what stands around the turns of a chat ----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/tokenizer/ChatTemplate.h"

#include "codegen/tokenizer/Jinja.h"
#include "ir/support/Diag.h"

namespace tenon::codegen {

using llvm::StringRef;

namespace {

/// Texts that no template writes itself.
constexpr llvm::StringLiteral marks[] = {"TeNoN1uSeR", "TeNoN1mOdEl",
                                         "TeNoN2uSeR"};

/// The chat of the first \p turns marks, and the beginning of an answer if
/// \p prompt.
llvm::Expected<std::string> render(StringRef source, StringRef bos,
                                   StringRef eos, unsigned turns, bool prompt) {
  JinjaValue::Items messages;
  for (unsigned i = 0; i < turns; ++i)
    messages.push_back(JinjaValue::dict(
        {{"role", JinjaValue::string(i % 2 ? "assistant" : "user")},
         {"content", JinjaValue::string(marks[i])}}));
  return renderJinja(source,
                     {{"messages", JinjaValue::list(std::move(messages))},
                      {"bos_token", JinjaValue::string(bos)},
                      {"eos_token", JinjaValue::string(eos)},
                      {"add_generation_prompt", JinjaValue::boolean(prompt)}});
}

} // namespace

llvm::Expected<ChatParts> readChatTemplate(StringRef source, StringRef bos,
                                           StringRef eos) {
  auto one = render(source, bos, eos, 1, true);
  if (!one)
    return one.takeError();
  auto plain = render(source, bos, eos, 1, false);
  if (!plain)
    return plain.takeError();
  auto answered = render(source, bos, eos, 2, false);
  if (!answered)
    return answered.takeError();
  auto two = render(source, bos, eos, 3, true);
  if (!two)
    return two.takeError();

  auto notByTurns = [] {
    return userError("the chat template does not go on turn by turn");
  };
  // one: head user1 asked; answered: one model1 end; two: answered next user2
  // asked.
  auto [head, asked] = StringRef(*one).split(marks[0]);
  StringRef rest = *two;
  if (asked.empty() && !one->ends_with(marks[0]))
    return notByTurns();
  if (!rest.consume_front(*one) || !rest.consume_front(marks[1]))
    return notByTurns();
  StringRef end = *answered;
  if (!end.consume_front(*one) || !end.consume_front(marks[1]) ||
      !rest.consume_front(end))
    return notByTurns();
  auto [next, askedAgain] = rest.split(marks[2]);
  if (asked != askedAgain || !head.ends_with(next))
    return notByTurns();
  ChatParts parts;
  parts.begin = head.drop_back(next.size()).str();
  parts.userBegin = next.str();
  parts.assistantEnd = end.str();
  // What the prompt for an answer adds is the assistant's.
  StringRef userEnd = *plain;
  if (!userEnd.consume_front((head + marks[0]).str()) ||
      !asked.starts_with(userEnd))
    userEnd = "";
  parts.userEnd = userEnd.str();
  parts.assistantBegin = asked.drop_front(userEnd.size()).str();
  return parts;
}

} // namespace tenon::codegen
