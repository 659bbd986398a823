//===- JsonNode.h - checked access to a JSON document --------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_CODEGEN_TOKENIZER_JSONNODE_H
#define TENON_CODEGEN_TOKENIZER_JSONNODE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <optional>
#include <string>
#include <vector>

namespace tenon::codegen {

/// A document with the first thing that was wrong with it: reading goes on with
/// defaults, and the reader asks once at the end.
class JsonDocument {
public:
  /// Parses \p text; errors begin with \p name. Nesting is limited.
  static llvm::Expected<JsonDocument> parse(llvm::StringRef text,
                                            llvm::StringRef name);

  const llvm::json::Value &root() const { return value; }
  const std::string &fileName() const { return name; }
  void fail(llvm::StringRef path, const llvm::Twine &message) const;
  bool failed() const { return !problem.empty(); }
  /// The first failure, or success.
  llvm::Error takeError() const;

private:
  JsonDocument(llvm::json::Value value, std::string name)
      : value(std::move(value)), name(std::move(name)) {}
  llvm::json::Value value;
  std::string name;
  mutable std::string problem;
};

/// A value of a document and how to find it; the value may be missing.
class JsonNode {
public:
  explicit JsonNode(const JsonDocument &document)
      : document(&document), value(&document.root()) {}
  JsonNode(const JsonDocument &document, const llvm::json::Value *value,
           std::string path)
      : document(&document), value(value), path(std::move(path)) {}

  /// There, and not null.
  explicit operator bool() const {
    return value && value->kind() != llvm::json::Value::Null;
  }
  JsonNode operator[](llvm::StringRef key) const;
  /// The elements of an array; fails on anything else.
  std::vector<JsonNode> elements() const;
  const llvm::json::Object *object() const;
  const llvm::json::Array *array() const;

  /// The value of the type asked for; without a default it must be there.
  llvm::StringRef string(std::optional<llvm::StringRef> missing = {}) const;
  bool boolean(std::optional<bool> missing = {}) const;
  uint64_t number(std::optional<uint64_t> missing = {}) const;
  double real(std::optional<double> missing = {}) const;
  bool isArray() const { return value && value->getAsArray(); }
  bool isString() const { return value && value->getAsString().has_value(); }

  void fail(const llvm::Twine &message) const { document->fail(path, message); }
  const std::string &where() const { return path; }

private:
  void failKind(llvm::StringRef expected) const;

  const JsonDocument *document;
  const llvm::json::Value *value;
  std::string path;
};

} // namespace tenon::codegen

#endif // TENON_CODEGEN_TOKENIZER_JSONNODE_H
