//===- Padding.h - where padding between tokens changes nothing -----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_CODEGEN_SELECT_PADDING_H
#define TENON_CODEGEN_SELECT_PADDING_H

#include "ir/Op.h"
#include "ir/kernel/Program.h"

namespace tenon::codegen {

/// A language model with caches has a *slot* for each token, padding too, and
/// `attention_mask` says which slots hold tokens. Padding changes nothing where
/// the number of a token's slot is used
///
///   - by nothing but causality, as where `position_ids` are an input or are
///     counted from the mask: anywhere;
///   - by windows and rotary embedding too, to which only distances matter: in
///     front of all tokens;
///   - otherwise (a table of positions is added): nowhere.
///
/// Proved by following what tells slots apart (ranges, slices of tables) to
/// where it meets values of tokens. Ops that mix tokens and are no attention
/// count as the last case, as does whatever is no language model.
kernel::Padding paddingAllowed(const ir::Func &func);

} // namespace tenon::codegen

#endif // TENON_CODEGEN_SELECT_PADDING_H
