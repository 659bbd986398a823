//===- WeightMemory.h - memory for the bytes of big constants ------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_IR_SUPPORT_WEIGHTMEMORY_H
#define TENON_IR_SUPPORT_WEIGHTMEMORY_H

#include "llvm/ADT/ArrayRef.h"
#include <cstdint>
#include <memory>

namespace tenon::ir {

/// Bytes and what keeps them alive.
struct WeightMemory {
  llvm::MutableArrayRef<uint8_t> bytes;
  std::shared_ptr<const void> owner;
};

/// Zeroed memory of \p size bytes. Much of it is a mapping of an unlinked
/// temporary file, which the kernel can write out, so that the compiler's own
/// memory does not grow with the model.
WeightMemory allocateWeight(uint64_t size);

} // namespace tenon::ir

#endif // TENON_IR_SUPPORT_WEIGHTMEMORY_H
