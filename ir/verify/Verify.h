//===- Verify.h - the invariants of the IR -------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_IR_VERIFY_VERIFY_H
#define TENON_IR_VERIFY_VERIFY_H

#include "ir/Op.h"
#include "llvm/Support/Error.h"

namespace tenon::ir {

/// Checks every invariant (the list is in Verify.cpp): operands dominate uses,
/// use lists agree, types equal inference, regions are scalar and closed, ports
/// match, symbols are declared.
llvm::Error verify(const Module &module);
llvm::Error verify(const Module &module, const Func &func);

} // namespace tenon::ir

#endif // TENON_IR_VERIFY_VERIFY_H
