//===- BulkCopy.h - cp.async.bulk and cp.async.bulk.tensor ----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_EMULATOR_TENSOR_BULKCOPY_H
#define TENON_RUNTIME_EMULATOR_TENSOR_BULKCOPY_H

#include "runtime/emulator/tensor/Formats.h"
#include "runtime/emulator/tensor/Memory.h"
#include "runtime/emulator/tensor/TensorMap.h"

#include <cstdint>
#include <span>

namespace tenon::emu::tensor {

/// What a bulk operation reports. Accesses that were refused have been
/// reported by the memory itself.
enum class BulkError : uint8_t {
  None,
  Refused,         ///< an access was refused by a memory's checks
  Misaligned,      ///< shared or global address not as aligned as it must be
  SizeNotMultiple, ///< a size that is no multiple of 16 bytes
  TooLarge,        ///< a box of more bytes than a block's shared memory
  ReduceType,      ///< an operation that the element type does not have
};

/// A lower-case sentence without a final period; "" for None and Refused.
const char *describe(BulkError error);

/// The operations of cp.reduce.async.bulk.
enum class ReduceOp : uint8_t { Add, Min, Max, Inc, Dec, And, Or, Xor };

/// Element of a cp.reduce.async.bulk without a tensor map.
enum class ReduceType : uint8_t {
  F16,
  BF16,
  F32,
  F64,
  S32,
  U32,
  S64,
  U64,
  B32,
  B64
};

// Every function here does the whole copy at once; when that happens is the
// caller's choice (at the wait, so that a missing wait is seen).

/// cp.async.bulk.shared::cluster.global: `bytes` bytes to `address` of each of
/// `destinations` (several with .multicast::cluster).
BulkError bulkLoad(std::span<SharedMemory *const> destinations,
                   uint32_t address, GlobalMemory &global, uint64_t source,
                   uint32_t bytes);
/// cp.async.bulk.global.shared::cta
BulkError bulkStore(GlobalMemory &global, uint64_t destination,
                    SharedMemory &shared, uint32_t address, uint32_t bytes);
/// cp.async.bulk.shared::cluster.shared::cta
BulkError bulkMove(SharedMemory &destination, uint32_t to, SharedMemory &source,
                   uint32_t from, uint32_t bytes);
/// cp.reduce.async.bulk.global.shared::cta
BulkError bulkReduce(GlobalMemory &global, uint64_t destination,
                     SharedMemory &shared, uint32_t address, uint32_t bytes,
                     ReduceOp op, ReduceType type);

/// cp.async.bulk.tensor.shared::cluster.global.tile: the box whose first
/// element has coordinates `coords` (map.rank of them, the innermost first),
/// densely packed and swizzled at `address`. What lies outside the tensor is
/// filled with zeros, or NaN.
BulkError loadBox(const TensorMap &map, const int32_t *coords,
                  GlobalMemory &global,
                  std::span<SharedMemory *const> destinations,
                  uint32_t address);
/// cp.async.bulk.tensor.global.shared::cta.tile; what lies outside the tensor
/// is not written.
BulkError storeBox(const TensorMap &map, const int32_t *coords,
                   SharedMemory &shared, uint32_t address,
                   GlobalMemory &global);
/// cp.reduce.async.bulk.tensor.global.shared::cta.tile
BulkError reduceBox(const TensorMap &map, const int32_t *coords, ReduceOp op,
                    SharedMemory &shared, uint32_t address,
                    GlobalMemory &global);

} // namespace tenon::emu::tensor

#endif // TENON_RUNTIME_EMULATOR_TENSOR_BULKCOPY_H
