//===- VerifyNumerics.h - the same results before and after --------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_PASSES_VERIFYNUMERICS_H
#define TENON_PASSES_VERIFYNUMERICS_H

#include "ir/Op.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace tenon::passes {

/// Evaluates the entry of both modules with the reference evaluator, on random
/// and adversarial inputs of a few small shapes, and compares: NaN with NaN,
/// infinities exactly, the rest within the precision of the element type
/// relative to the largest value of the output. Inputs that \p before itself
/// refuses (an index out of range) are left out; so are functions too big for
/// the reference, with a note to \p log.
llvm::Error verifyNumerics(const ir::Module &before, const ir::Module &after,
                           llvm::raw_ostream &log);

} // namespace tenon::passes

#endif // TENON_PASSES_VERIFYNUMERICS_H
