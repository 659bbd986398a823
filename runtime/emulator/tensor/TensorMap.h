//===- TensorMap.h - the emulator's own CUtensorMap -----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_EMULATOR_TENSOR_TENSORMAP_H
#define TENON_RUNTIME_EMULATOR_TENSOR_TENSORMAP_H

#include "runtime/emulator/tensor/Memory.h"

#include <cstdint>
#include <span>

namespace tenon::emu::tensor {

/// The values of the driver's enums, CU_TENSOR_MAP_*.
enum class TensorData : uint8_t {
  U8,
  U16,
  U32,
  S32,
  U64,
  S64,
  F16,
  F32,
  F64,
  BF16,
  F32Ftz,
  TF32,
  TF32Ftz,
};
enum class TensorSwizzle : uint8_t { None, B32, B64, B128 };

/// The arguments of cuTensorMapEncodeTiled, with the driver's enum values.
struct TiledArguments {
  uint32_t dataType = 0;
  uint32_t rank = 0;
  uint64_t globalAddress = 0;
  const uint64_t *globalDim = nullptr;
  const uint64_t *globalStrides = nullptr; ///< bytes; rank - 1 of them
  const uint32_t *boxDim = nullptr;
  const uint32_t *elementStrides = nullptr;
  uint32_t interleave = 0;
  uint32_t swizzle = 0;
  uint32_t l2Promotion = 0;
  uint32_t oobFill = 0;
};

/// What the emulator's driver writes into the 128 opaque bytes of a
/// CUtensorMap, and its bulk tensor copies read.
struct TensorMap {
  static constexpr uint64_t magic = 0x50414d544e4e4554; // "TENNTMAP"

  uint64_t mark;
  uint64_t address;
  uint64_t dim[5];
  uint64_t stride[4];
  uint16_t box[5];
  uint8_t elementStride[5];
  uint8_t rank;
  TensorData data;
  TensorSwizzle swizzle;
  uint8_t fillNaN;
  uint8_t unused[21];

  /// Encodes `args` into `map`. Null, or why the driver would refuse them:
  /// a lower-case sentence without a final period. The limits are those of
  /// the driver's documentation. Refused though the hardware has them: 16-byte
  /// and 32-byte interleaved layouts, packed 4-bit and 6-bit types, TFLOAT32,
  /// swizzles of larger atoms or wider than the box's rows.
  static const char *encodeTiled(const TiledArguments &args, TensorMap &map);

  /// Reads the map in the 128 bytes at `bytes`; false if they hold none (never
  /// encoded, or overwritten).
  static bool decode(const void *bytes, TensorMap &map);

  unsigned elementBytes() const;
  /// Elements of a box along dimension d: ceil(box / element stride).
  unsigned boxElements(unsigned d) const;
  /// Bytes that a copy of one box moves, parts outside the tensor included:
  /// what it adds to an mbarrier by complete_tx.
  uint64_t boxBytes() const;
};
static_assert(sizeof(TensorMap) == 128);

/// 16-byte pieces of a box move within their row of 128 bytes: the address at
/// which the piece that belongs at `address` lies.
constexpr uint32_t swizzleAddress(uint32_t address, TensorSwizzle swizzle) {
  uint32_t mask = (1u << unsigned(swizzle)) - 1;
  return address ^ ((address >> 7 & mask) << 4);
}

} // namespace tenon::emu::tensor

#endif // TENON_RUNTIME_EMULATOR_TENSOR_TENSORMAP_H
