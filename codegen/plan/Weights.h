//===- Weights.h - weights as an artifact stores them ---------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_CODEGEN_PLAN_WEIGHTS_H
#define TENON_CODEGEN_PLAN_WEIGHTS_H

#include "ir/kernel/Program.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace tenon::codegen {

/// Hands the bytes of \p weight as stored to \p write, piece by piece in order,
/// `weight.bytes` in all. Mapped weights are read in place and packed a few
/// panels at a time, so memory stays small at any model size. Stops at the
/// first error of \p write and returns it.
llvm::Error storeWeight(
    const kernel::Weight &weight,
    llvm::function_ref<llvm::Error(llvm::ArrayRef<uint8_t>)> write);

} // namespace tenon::codegen

#endif // TENON_CODEGEN_PLAN_WEIGHTS_H
