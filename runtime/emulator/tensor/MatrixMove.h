//===- MatrixMove.h - ldmatrix, stmatrix, movmatrix ----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_EMULATOR_TENSOR_MATRIXMOVE_H
#define TENON_RUNTIME_EMULATOR_TENSOR_MATRIXMOVE_H

#include "runtime/emulator/tensor/Memory.h"

namespace tenon::emu::tensor {

/// The shapes of ldmatrix and stmatrix. `.trans` is a part of the 8-bit ones.
enum class MatrixShape : uint8_t {
  M8N8,   ///< .m8n8.b16: 8 rows of 16 bytes
  M16N16, ///< ldmatrix.m16n16.trans.b8: 16 rows of 16 bytes
  M16N8,  ///< stmatrix.m16n8.trans.b8: 8 rows of 16 bytes
};

/// One ldmatrix or stmatrix instruction.
struct MatrixMove {
  MatrixShape shape = MatrixShape::M8N8;
  uint8_t count = 1; ///< .x1, .x2, .x4 (m16n16: .x1, .x2)
  bool transposed = false;
};

/// Whether the instruction exists as a load, as a store.
bool isLoadMatrix(const MatrixMove &op);
bool isStoreMatrix(const MatrixMove &op);

/// Registers that a load writes or a store reads.
unsigned registersOf(const MatrixMove &op);

/// ldmatrix. `addresses[l]` is lane l's row address; lanes beyond the rows
/// that `op` needs are ignored, as on the hardware. Each matrix is one group
/// of accesses. False when an access was refused: no register is written.
bool loadMatrix(const MatrixMove &op, const uint32_t *addresses,
                SharedMemory &memory, RegsOut destination);

/// stmatrix, the same the other way.
bool storeMatrix(const MatrixMove &op, const uint32_t *addresses,
                 SharedMemory &memory, RegsIn source);

/// movmatrix.sync.aligned.m8n8.trans.b16
void moveMatrix(const uint32_t *source, uint32_t *destination);

} // namespace tenon::emu::tensor

#endif // TENON_RUNTIME_EMULATOR_TENSOR_MATRIXMOVE_H
