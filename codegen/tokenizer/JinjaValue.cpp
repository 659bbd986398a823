//===- JinjaValue.cpp - values of chat templates
//----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/tokenizer/Jinja.h"

namespace tenon::codegen {

using llvm::StringRef;

JinjaValue JinjaValue::boolean(bool value) {
  JinjaValue v;
  v.kind = Bool;
  v.number = value;
  return v;
}
JinjaValue JinjaValue::integer(int64_t value) {
  JinjaValue v;
  v.kind = Int;
  v.number = value;
  return v;
}
JinjaValue JinjaValue::string(StringRef value) {
  JinjaValue v;
  v.kind = Text;
  v.text = value.str();
  return v;
}
JinjaValue JinjaValue::list(Items values) {
  JinjaValue v;
  v.kind = List;
  v.items = std::make_shared<Items>(std::move(values));
  return v;
}
JinjaValue JinjaValue::dict(Fields values) {
  JinjaValue v;
  v.kind = Dict;
  v.fields = std::make_shared<Fields>(std::move(values));
  return v;
}

bool JinjaValue::isTrue() const {
  switch (kind) {
  case Undefined:
  case None:
    return false;
  case Bool:
  case Int:
    return number != 0;
  case Text:
    return !text.empty();
  case List:
    return !items->empty();
  case Dict:
    return !fields->empty();
  }
  return false;
}

bool JinjaValue::operator==(const JinjaValue &other) const {
  bool numbers = (kind == Int || kind == Bool) &&
                 (other.kind == Int || other.kind == Bool);
  if (numbers)
    return number == other.number;
  if (kind != other.kind)
    return false;
  if (kind == Text)
    return text == other.text;
  if (kind == List)
    return items == other.items || *items == *other.items;
  if (kind == Dict)
    return fields == other.fields;
  return true;
}

JinjaValue JinjaValue::get(StringRef name) const {
  if (kind == Dict)
    for (const auto &[key, value] : *fields)
      if (key == name)
        return value;
  return {};
}

void JinjaValue::set(StringRef name, JinjaValue value) {
  for (auto &[key, old] : *fields)
    if (key == name) {
      old = std::move(value);
      return;
    }
  fields->push_back({name.str(), std::move(value)});
}

} // namespace tenon::codegen
