//===- ChatTemplateTest.cpp -----------------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/tokenizer/ChatTemplate.h"
#include "codegen/tokenizer/Jinja.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"

using namespace tenon::codegen;

namespace {

std::string field(const llvm::json::Object &object, llvm::StringRef name) {
  return object.getString(name).value_or("").str();
}

/// chat_templates.json: templates and what Jinja makes of chats with them.
llvm::json::Array readCases() {
  auto file = llvm::MemoryBuffer::getFile(TN_CHAT_TEMPLATES);
  if (!file)
    return {};
  auto parsed = llvm::json::parse((*file)->getBuffer());
  return parsed ? std::move(*parsed->getAsArray()) : llvm::json::Array();
}

JinjaValue messagesOf(const llvm::json::Object &chat) {
  JinjaValue::Items messages;
  for (const llvm::json::Value &value : *chat.getArray("messages")) {
    const llvm::json::Object &m = *value.getAsObject();
    messages.push_back(JinjaValue::dict(
        {{"role", JinjaValue::string(field(m, "role"))},
         {"content", JinjaValue::string(field(m, "content"))}}));
  }
  return JinjaValue::list(std::move(messages));
}

std::string render(const std::string &source) {
  auto text = renderJinja(source, {{"x", JinjaValue::integer(3)}});
  return text ? *text : "error: " + llvm::toString(text.takeError());
}

TEST(ChatTemplate, RendersWhatJinjaRenders) {
  llvm::json::Array cases = readCases();
  ASSERT_FALSE(cases.empty());
  for (const llvm::json::Value &value : cases) {
    const llvm::json::Object &c = *value.getAsObject();
    for (const llvm::json::Value &chatValue : *c.getArray("chats")) {
      const llvm::json::Object &chat = *chatValue.getAsObject();
      auto text =
          renderJinja(field(c, "template"),
                      {{"messages", messagesOf(chat)},
                       {"bos_token", JinjaValue::string(field(c, "bos"))},
                       {"eos_token", JinjaValue::string(field(c, "eos"))},
                       {"add_generation_prompt", JinjaValue::boolean(true)}});
      std::optional<llvm::StringRef> expected = chat.getString("text");
      ASSERT_EQ(bool(text), expected.has_value())
          << field(c, "name") << ": "
          << (text ? "" : llvm::toString(text.takeError()));
      if (text)
        EXPECT_EQ(*text, expected->str()) << field(c, "name");
      else
        llvm::consumeError(text.takeError());
    }
  }
}

TEST(ChatTemplate, SaysWhatStandsAroundTurns) {
  for (const llvm::json::Value &value : readCases()) {
    const llvm::json::Object &c = *value.getAsObject();
    auto parts = readChatTemplate(field(c, "template"), field(c, "bos"),
                                  field(c, "eos"));
    if (!*c.getBoolean("turns")) {
      EXPECT_FALSE(parts);
      llvm::consumeError(parts.takeError());
      continue;
    }
    ASSERT_TRUE(bool(parts)) << llvm::toString(parts.takeError());
    const llvm::json::Object &chat = *(*c.getArray("chats"))[1].getAsObject();
    const llvm::json::Array &messages = *chat.getArray("messages");
    std::string text = parts->begin;
    for (unsigned i = 0; i < 3; ++i) {
      std::string said = field(*messages[i].getAsObject(), "content");
      text += i % 2 ? said + parts->assistantEnd
                    : parts->userBegin + said + parts->userEnd +
                          parts->assistantBegin;
    }
    EXPECT_EQ(text, field(chat, "text")) << field(c, "name");
  }
}

TEST(ChatTemplate, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(render("{{ x | pprint }}"),
            "error: the filter 'pprint' is not supported");
  EXPECT_EQ(render("{% include 'a' %}"),
            "error: the tag 'include' is not supported");
  EXPECT_EQ(render("{{ raise_exception('no ' + 'tools') }}"),
            "error: the template raises: no tools");
  EXPECT_EQ(render("{{ x "), "error: a tag does not end");
  EXPECT_EQ(render("{% if x %}"), "error: expected 'endif'");
  EXPECT_EQ(render("{% for i in range(1000000000) %}{% endfor %}"),
            "error: a range is too long");
  EXPECT_EQ(render("{% for i in range(9999) %}{% for j in range(9999) %}"
                   "{% endfor %}{% endfor %}"),
            "error: it does not come to an end");
  std::string deep;
  for (int i = 0; i < 100000; ++i)
    deep += "(";
  EXPECT_EQ(render("{{" + deep + "}}"), "error: an expression is too deep");
  EXPECT_EQ(render("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"),
            "error: macros call each other too deep");
}

} // namespace
