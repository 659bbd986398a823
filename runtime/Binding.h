//===- Binding.h - symbols from the shapes of inputs --------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_BINDING_H
#define TENON_RUNTIME_BINDING_H

#include "runtime/Plan.h"

namespace tenon::rt {

/// An input as the caller gave it; `data` is null until it is set, but for an
/// empty one.
struct InputValue {
  bool set = false;
  std::vector<int64_t> shape;
  const void *data = nullptr;
};

/// "input 'ids'".
std::string describeInput(const Plan &plan, size_t index);

/// Checks dtype and rank of input `index`, and sizes that the model fixes.
Status checkInput(const Plan &plan, size_t index, DType dtype,
                  std::span<const int64_t> shape);

/// Gives every symbol that inputs define its value, checking that they agree
/// and lie in the symbols' ranges. Other symbols keep theirs. An input that is
/// a state need not be set: then `length` is how long it is. Symbols that a
/// session chooses are as large as they may be, but not above `chosen`.
Status bindSymbols(const Plan &plan, std::span<const InputValue> inputs,
                   int64_t length, int64_t chosen, std::span<int64_t> symbols);

/// Checks that the inputs' dimensions that are formulas ("past + seq") have
/// the values that `values`, an entry for each expression, gives them.
Status checkDerivedDims(const Plan &plan, std::span<const InputValue> inputs,
                        std::span<const int64_t> values);

/// "batch = 2, seq = 5".
std::string describeSymbols(const Plan &plan, std::span<const int64_t> symbols);

/// Checks `value` against the range of symbol `index`; `where` begins the
/// message.
Status checkRange(const Plan &plan, size_t index, int64_t value,
                  const std::string &where);

} // namespace tenon::rt

#endif // TENON_RUNTIME_BINDING_H
