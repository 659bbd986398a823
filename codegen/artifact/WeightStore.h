//===- WeightStore.h - streams a program's weights ----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_CODEGEN_ARTIFACT_WEIGHTSTORE_H
#define TENON_CODEGEN_ARTIFACT_WEIGHTSTORE_H

#include "ir/kernel/Program.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace tenon::codegen {

/// Hands the stored bytes of all weights to \p write(offset, bytes), from up to
/// \p jobs threads at once, weights being independent; \p offsets say where
/// each begins. What lies between them is not written.
llvm::Error storeWeights(
    llvm::ArrayRef<kernel::Weight> weights, llvm::ArrayRef<uint64_t> offsets,
    unsigned jobs,
    llvm::function_ref<llvm::Error(uint64_t, llvm::ArrayRef<uint8_t>)> write);

} // namespace tenon::codegen

#endif // TENON_CODEGEN_ARTIFACT_WEIGHTSTORE_H
