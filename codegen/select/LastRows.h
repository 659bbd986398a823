//===- LastRows.h - logits of the last tokens alone ----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_CODEGEN_SELECT_LASTROWS_H
#define TENON_CODEGEN_SELECT_LASTROWS_H

#include "ir/Op.h"
#include "llvm/ADT/StringRef.h"

namespace tenon::codegen {

/// The symbol that narrowLogits() makes, and the one whose value it has unless
/// a session asks for fewer rows.
struct LastRows {
  std::string rows, tokens;
};

/// A language model from input_ids[batch, n] to logits[batch, n, vocabulary]
/// whose user needs the last rows of the logits only: the last op that mixes
/// tokens computes all rows, and from there on ops that work row by row take
/// `rows` of them, counted from the end:
///
///   f(x[batch, n, ..]) -> f(slice(x, n - rows, rows))
///
/// `rows` is a new symbol; with \p onlyLast it is 1. Products at the beginning
/// stay whole, as their operands would have to be copied, and casts, which are
/// a part of the kernel in front of them. Nothing, and \p
/// module unchanged, when \p func is no such model.
std::optional<LastRows> narrowLogits(ir::Module &module, ir::Func &func,
                                     bool onlyLast);

} // namespace tenon::codegen

#endif // TENON_CODEGEN_SELECT_LASTROWS_H
