//===- MatrixMove.h - ldmatrix, stmatrix, movmatrix -----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_EMULATOR_TENSOR_MATRIXMOVE_H
#define TENON_RUNTIME_EMULATOR_TENSOR_MATRIXMOVE_H

#include "runtime/emulator/tensor/Memory.h"

namespace tenon::emu::tensor {

/// One ldmatrix or stmatrix instruction of shape .m8n8 and type .b16: `count`
/// (1, 2 or 4) matrices of eight rows of 16 bytes, a register for each. The
/// 8-bit and narrower shapes of sm_100a are not among them.
struct MatrixMove {
  uint8_t count = 1;
  bool transposed = false;
};

/// ldmatrix. Lane 8 * i + r of `addresses` holds the address of row r of
/// matrix i; further lanes are ignored, as on the hardware. Each matrix is one
/// group of accesses. Lane l gets the elements 2 * (l % 4) and the next of row
/// l / 4, or of column l / 4 when transposed. False when an access was refused:
/// no register is written.
bool loadMatrix(const MatrixMove &op, const uint32_t *addresses,
                SharedMemory &memory, RegsOut destination);

/// stmatrix, the same the other way.
bool storeMatrix(const MatrixMove &op, const uint32_t *addresses,
                 SharedMemory &memory, RegsIn source);

/// movmatrix.sync.aligned.m8n8.trans.b16
void moveMatrix(const uint32_t *source, uint32_t *destination);

} // namespace tenon::emu::tensor

#endif // TENON_RUNTIME_EMULATOR_TENSOR_MATRIXMOVE_H
