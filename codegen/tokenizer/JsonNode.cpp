//===- JsonNode.cpp - checked access to a JSON document ------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/tokenizer/JsonNode.h"

#include "ir/support/Diag.h"

namespace tenon::codegen {

namespace {

/// The parser recurses: how deep it may.
constexpr unsigned maxDepth = 100;

bool tooDeep(llvm::StringRef text) {
  unsigned depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (quoted) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > maxDepth)
        return true;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return false;
}

llvm::StringRef kindName(const llvm::json::Value *value) {
  if (!value)
    return "nothing";
  switch (value->kind()) {
  case llvm::json::Value::Null:
    return "null";
  case llvm::json::Value::Boolean:
    return "a boolean";
  case llvm::json::Value::Number:
    return "a number";
  case llvm::json::Value::String:
    return "a string";
  case llvm::json::Value::Array:
    return "an array";
  case llvm::json::Value::Object:
    return "an object";
  }
  return "something else";
}

} // namespace

llvm::Expected<JsonDocument> JsonDocument::parse(llvm::StringRef text,
                                                 llvm::StringRef name) {
  if (tooDeep(text))
    return userError("{0}: error: nested more than {1} levels deep", name,
                     maxDepth);
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(text);
  if (!value)
    return userError("{0}: error: not valid JSON: {1}", name,
                     llvm::toString(value.takeError()));
  return JsonDocument(std::move(*value), name.str());
}

void JsonDocument::fail(llvm::StringRef path,
                        const llvm::Twine &message) const {
  if (problem.empty())
    problem = (path + (path.empty() ? "" : ": ") + message).str();
}

llvm::Error JsonDocument::takeError() const {
  return problem.empty() ? llvm::Error::success()
                         : userError("{0}: error: {1}", name, problem);
}

JsonNode JsonNode::operator[](llvm::StringRef key) const {
  const llvm::json::Object *fields = value ? value->getAsObject() : nullptr;
  return JsonNode(*document, fields ? fields->get(key) : nullptr,
                  path.empty() ? key.str() : path + "." + key.str());
}

void JsonNode::failKind(llvm::StringRef expected) const {
  fail("found " + kindName(value) + ", expected " + expected);
}

std::vector<JsonNode> JsonNode::elements() const {
  std::vector<JsonNode> out;
  if (const llvm::json::Array *items = array())
    for (size_t i = 0; i < items->size(); ++i)
      out.emplace_back(*document, &(*items)[i],
                       path + "[" + std::to_string(i) + "]");
  return out;
}

const llvm::json::Object *JsonNode::object() const {
  const llvm::json::Object *found = value ? value->getAsObject() : nullptr;
  if (!found)
    failKind("an object");
  return found;
}

const llvm::json::Array *JsonNode::array() const {
  const llvm::json::Array *found = value ? value->getAsArray() : nullptr;
  if (!found)
    failKind("an array");
  return found;
}

llvm::StringRef JsonNode::string(std::optional<llvm::StringRef> missing) const {
  if (!*this && missing)
    return *missing;
  if (value)
    if (auto text = value->getAsString())
      return *text;
  failKind("a string");
  return "";
}

bool JsonNode::boolean(std::optional<bool> missing) const {
  if (!*this && missing)
    return *missing;
  if (value)
    if (auto found = value->getAsBoolean())
      return *found;
  failKind("true or false");
  return false;
}

uint64_t JsonNode::number(std::optional<uint64_t> missing) const {
  if (!*this && missing)
    return *missing;
  if (value)
    if (auto found = value->getAsInteger(); found && *found >= 0)
      return uint64_t(*found);
  failKind("a whole number that is not negative");
  return 0;
}

double JsonNode::real(std::optional<double> missing) const {
  if (!*this && missing)
    return *missing;
  if (value)
    if (auto found = value->getAsNumber())
      return *found;
  failKind("a number");
  return 0;
}

} // namespace tenon::codegen
