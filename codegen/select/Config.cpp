//===- Config.cpp - compile-time members of units ------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/emit/CppText.h"
#include "codegen/select/Lowering.h"

namespace tenon::codegen {

Config &Config::raw(llvm::StringRef type, llvm::StringRef name,
                    llvm::StringRef value) {
  members.push_back({type.str(), name.str(), value.str()});
  return *this;
}

Config &Config::integer(llvm::StringRef name, int64_t value) {
  return raw("int64_t", name, std::to_string(value));
}

Config &Config::rank(llvm::StringRef name, int64_t value) {
  return raw("int", name, std::to_string(value));
}

Config &Config::array(llvm::StringRef name, llvm::ArrayRef<int64_t> values) {
  std::string list;
  for (int64_t value : values)
    list += (list.empty() ? "" : ", ") + std::to_string(value);
  std::string type = (name + "[" + llvm::Twine(values.size()) + "]").str();
  return raw("int64_t", type, "{" + list + "}");
}

Config &Config::size(llvm::StringRef name, Dim value) {
  std::optional<int64_t> constant = value.constant();
  return raw("int64_t", name,
             constant ? std::to_string(*constant) : "tn::dynamic");
}

Config &Config::flag(llvm::StringRef name, bool value) {
  return raw("bool", name, value ? "true" : "false");
}

Config &Config::number(llvm::StringRef name, double value) {
  return raw("float", name, floatLiteral(value, /*isDouble=*/false));
}

Config &Config::type(llvm::StringRef name, ir::ElementType element) {
  return raw("using", name, storageType(element));
}

Config &Config::types(llvm::StringRef name,
                      llvm::ArrayRef<ir::ElementType> elements) {
  std::string list = "tn::types<";
  for (ir::ElementType element : elements) {
    if (list.back() != '<')
      list += ", ";
    list += storageType(element);
  }
  return raw("using", name, list + ">");
}

} // namespace tenon::codegen
