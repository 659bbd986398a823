//===- Branches.h - ops that may not be wanted -----------------*- C++ -*-===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_FRONTEND_IMPORTERS_BRANCHES_H
#define TENON_FRONTEND_IMPORTERS_BRANCHES_H

#include "frontend/Emitter.h"
#include "llvm/ADT/ArrayRef.h"

namespace tenon::frontend {

/// What is unrolled has no more steps.
constexpr int64_t unrollLimit = 1 << 14;

/// What bodies or branches gave becomes the node's outputs; there may be more
/// of it. Gives the first; null if there is none.
ir::Value *giveOutputs(NodeView &node, llvm::ArrayRef<ir::Value *> results);

/// Whether an op after \p last (null: any) must run whatever becomes of its
/// results, so that it cannot stand in a branch that may not be taken.
bool hasSideEffectAfter(const ir::Block &block, ir::Op *last);

/// What may not be wanted runs all the same, but only what is \p taken may find
/// its indices wrong: those of the ops after \p last are 0 unless it holds. (An
/// index into nothing stays wrong.)
void guardIndices(Emitter &emit, ir::Op *last, ir::Value *taken);

/// Null for an empty block.
ir::Op *lastOf(ir::Block &block);

} // namespace tenon::frontend

#endif // TENON_FRONTEND_IMPORTERS_BRANCHES_H
