//===- Edits.h - ways to make a graph smaller ----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_TOOLS_TENON_REDUCE_EDITS_H
#define TENON_TOOLS_TENON_REDUCE_EDITS_H

#include "ir/Op.h"
#include <functional>
#include <vector>

namespace tenon::reduce {

/// One way to make a module smaller. Changes a clone of the module that it was
/// listed for; false where it can't. What it leaves is to be verified.
using Edit = std::function<bool(ir::Module &)>;
/// The edits of one kind for a module, those that take most away first.
using EditList = std::function<std::vector<Edit>(const ir::Module &)>;

/// All kinds of edits, those that take most away first. Each edit lessens the
/// number of functions, outputs, ops that are no constants, inputs, symbols, or
/// elements, so that applying them ends.
llvm::ArrayRef<EditList> allEdits();

/// Sizes made smaller: of all tensors that have them, with what depends on
/// them.
std::vector<Edit> shrinkEdits(const ir::Module &module);

/// Erases what nothing uses: ops, and inputs whose symbols others have.
void removeUnused(ir::Module &module);

} // namespace tenon::reduce

#endif // TENON_TOOLS_TENON_REDUCE_EDITS_H
