//===- MatrixMove.cpp - ldmatrix, stmatrix, movmatrix ---------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/emulator/tensor/MatrixMove.h"

#include <array>
#include <cstring>

namespace tenon::emu::tensor {
namespace {

/// An 8 x 8 matrix of 16-bit elements. A register of a fragment holds it row
/// by row: lane l has row l / 4, columns 2 * (l % 4) and the next, so 32 lanes
/// in order are the matrix in order.
using Matrix = uint16_t[8][8];
static_assert(sizeof(Matrix) == lanes * sizeof(uint32_t));

void transpose(Matrix &m) {
  for (unsigned r = 1; r < 8; ++r)
    for (unsigned c = 0; c < r; ++c)
      std::swap(m[r][c], m[c][r]);
}

/// Announces the rows of every matrix, before any byte moves.
bool announce(const MatrixMove &op, const uint32_t *addresses,
              SharedMemory &memory, AccessKind kind) {
  for (unsigned i = 0; i < op.count; ++i) {
    std::array<LaneAccess, 8> rows;
    for (unsigned r = 0; r < 8; ++r)
      rows[r] = {addresses[8 * i + r], 16, 8 * i + r};
    if (!memory.access(kind, Proxy::Generic, rows))
      return false;
  }
  return true;
}

} // namespace

bool loadMatrix(const MatrixMove &op, const uint32_t *addresses,
                SharedMemory &memory, RegsOut destination) {
  if (!announce(op, addresses, memory, AccessKind::Read))
    return false;
  Matrix matrices[4];
  for (unsigned i = 0; i < op.count; ++i) {
    for (unsigned r = 0; r < 8; ++r)
      std::memcpy(matrices[i][r], memory.at(addresses[8 * i + r]), 16);
    if (op.transposed)
      transpose(matrices[i]);
  }
  // The addresses may lie in a destination register.
  for (unsigned i = 0; i < op.count; ++i)
    std::memcpy(destination[i], matrices[i], sizeof(Matrix));
  return true;
}

bool storeMatrix(const MatrixMove &op, const uint32_t *addresses,
                 SharedMemory &memory, RegsIn source) {
  if (!announce(op, addresses, memory, AccessKind::Write))
    return false;
  for (unsigned i = 0; i < op.count; ++i) {
    Matrix matrix;
    std::memcpy(matrix, source[i], sizeof(Matrix));
    if (op.transposed)
      transpose(matrix);
    for (unsigned r = 0; r < 8; ++r)
      std::memcpy(memory.at(addresses[8 * i + r]), matrix[r], 16);
  }
  return true;
}

void moveMatrix(const uint32_t *source, uint32_t *destination) {
  Matrix matrix;
  std::memcpy(matrix, source, sizeof(Matrix));
  transpose(matrix);
  std::memcpy(destination, matrix, sizeof(Matrix));
}

} // namespace tenon::emu::tensor
