//===- Jinja.h - chat templates -------------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_CODEGEN_TOKENIZER_JINJA_H
#define TENON_CODEGEN_TOKENIZER_JINJA_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tenon::codegen {

/// A value of a template: as Python has it, by reference where that shows.
struct JinjaValue {
  enum Kind { Undefined, None, Bool, Int, Text, List, Dict };
  using Items = std::vector<JinjaValue>;
  using Fields = std::vector<std::pair<std::string, JinjaValue>>;

  Kind kind = Undefined;
  int64_t number = 0; ///< of a bool too
  std::string text;
  std::shared_ptr<Items> items;
  std::shared_ptr<Fields> fields;

  static JinjaValue boolean(bool value);
  static JinjaValue integer(int64_t value);
  static JinjaValue string(llvm::StringRef value);
  static JinjaValue list(Items values);
  static JinjaValue dict(Fields values);

  bool isTrue() const;
  bool operator==(const JinjaValue &other) const;
  /// Of a dict; undefined when it is not there.
  JinjaValue get(llvm::StringRef name) const;
  void set(llvm::StringRef name, JinjaValue value);
};

/// What the Jinja template \p source gives with \p variables, in the
/// environment that Hugging Face gives chat templates (blocks are trimmed and
/// stripped; raise_exception, namespace, loop controls). The part of the
/// language that chat templates use: if, for, set, macro, the usual tests,
/// filters and methods. Bounded in depth, steps and output. An error says what
/// is not understood, or what the template raised.
llvm::Expected<std::string> renderJinja(llvm::StringRef source,
                                        const JinjaValue::Fields &variables);

} // namespace tenon::codegen

#endif // TENON_CODEGEN_TOKENIZER_JINJA_H
