//===- Quantised.h - constant matrices of codes --------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_CODEGEN_SELECT_QUANTISED_H
#define TENON_CODEGEN_SELECT_QUANTISED_H

#include "ir/Op.h"
#include "ir/kernel/Program.h"
#include <optional>

namespace tenon::codegen {

/// B[k, n] = scale[k / block, n] * (code[k, n] - zero[k / block, n]).
struct QuantisedMatrix {
  /// u2, u4 or u8; the codes of column n lie together, `columnStride` of them.
  ir::ConstantRef codes;
  int64_t k = 0, n = 0, block = 0, columnStride = 0;
  /// f32[n, blocks]; zeros may be null: then all are `zero`.
  ir::ConstantRef scales, zeros;
  double zero = 0;
  /// What computes B, which the kernel does instead.
  llvm::SmallVector<const ir::Op *, 6> steps;

  /// How codes, and scales and zeros, are packed.
  kernel::Weight::Matrix codeMatrix() const;
  kernel::Weight::Matrix blockMatrix() const;
};

/// Zero points as GPUs have them: u8[n, ceil(blocks / 2)], two to a byte, where
/// all are whole numbers from 0 to 15; else f32[n, blocks]; null where there is
/// one for all.
ir::ConstantRef packedZeros(const QuantisedMatrix &matrix);

/// The matrix that \p product multiplies by, if nothing else uses what computes
/// it and the kernels can: f32, blocks of multiples of 16.
std::optional<QuantisedMatrix> quantisedMatrix(const ir::Op &product);

/// B = a constant of f16 or bf16 of rank 2, perhaps transposed, in f32.
struct HalfMatrix {
  ir::ConstantRef value;
  kernel::Weight::Matrix matrix;
  const ir::Op *cast = nullptr; ///< what the kernel does instead
};

/// The matrix that \p product multiplies by, if nothing but products uses it.
std::optional<HalfMatrix> halfMatrix(const ir::Op &product);

/// A product of whole numbers, a - zero of u8 by a constant b[k, n] of i8.
struct ByteProduct {
  const ir::Value *a = nullptr;
  const ir::Value *zero = nullptr; ///< f32, one element; may be null
  ir::ConstantRef b;
  /// What widens a and b, which the kernel does instead.
  llvm::SmallVector<const ir::Op *, 3> steps;

  kernel::Weight::Matrix matrix() const;
  /// b as raw bytes, and f32[1, n]: the sums of its columns.
  ir::ConstantRef bytes() const, columnSums() const;
};

/// \p product as one, if nothing else uses what widens its operands.
std::optional<ByteProduct> byteProduct(const ir::Op &product);

/// What kernels do instead for all such products of \p func; with \p zeros, for
/// kernels that read zero points as bytes, also what widens those.
llvm::SmallVector<const ir::Op *, 16> byteProductSteps(const ir::Func &func,
                                                       bool zeros);

} // namespace tenon::codegen

#endif // TENON_CODEGEN_SELECT_QUANTISED_H
