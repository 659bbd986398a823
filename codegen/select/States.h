//===- States.h - caches become state ------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_CODEGEN_SELECT_STATES_H
#define TENON_CODEGEN_SELECT_STATES_H

#include "ir/Op.h"
#include "ir/kernel/Program.h"
#include "llvm/Support/Error.h"

namespace tenon::codegen {

/// The laws, with --max-context=N, past an input and present an output:
///
///   present = concat(past, new)
///   present = scatter_elements(pad(past), rows, new)
///     -> one memory with room for N along the axis that grows
///
/// The graph goes on to say what is computed; the past is where the present
/// wants it, so only the new part is written. After a concat that is safe
/// whoever reads the past, because its elements never change; a scatter must be
/// the only reader. What pads is whatever is behind the past: the graph may not
/// look at it, as no attention looks behind its keys. Not promoted: caches
/// whose length is no size of its own, or another than that of the first cache;
/// caches with sizes that no other input tells. An error, with the reason, when
/// \p func has no cache that can be promoted, or when one may not become so
/// long.
llvm::Expected<std::vector<kernel::State>>
findStates(const ir::Module &module, const ir::Func &func, int64_t capacity);

/// The pad in front of the scatter that makes output \p state.output; null
/// where it is a concat.
const ir::Op *padOf(const ir::Func &func, const kernel::State &state);

} // namespace tenon::codegen

#endif // TENON_CODEGEN_SELECT_STATES_H
