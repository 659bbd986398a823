//===- Reduce.h - the operations of cp.reduce.async.bulk ------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_EMULATOR_TENSOR_REDUCE_H
#define TENON_RUNTIME_EMULATOR_TENSOR_REDUCE_H

#include "runtime/emulator/tensor/BulkCopy.h"

#include <cstdint>

namespace tenon::emu::tensor {

/// Combines `count` elements: to[i] = op(to[i], from[i]). Neither side need be
/// aligned.
using Combine = void (*)(uint8_t *to, const uint8_t *from, uint64_t count);

/// The function for an operation, null when the type does not have it.
Combine combinerOf(ReduceOp op, ReduceType type);

unsigned bytesOf(ReduceType type);

} // namespace tenon::emu::tensor

#endif // TENON_RUNTIME_EMULATOR_TENSOR_REDUCE_H
