//===- ByteProducts.h - products of 8-bit numbers --------------*- C++ -*-===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_PASSES_ANALYSIS_BYTEPRODUCTS_H
#define TENON_PASSES_ANALYSIS_BYTEPRODUCTS_H

#include "ir/Op.h"
#include <optional>

namespace tenon::passes {

/// Sums of 32 bits hold 255 * 128 * 2^15, whatever the zero point.
constexpr int64_t mostByteRows = (1 << 15) - 1;

/// cast<i32>(a) - zero, a of u8 or i8, zero one number of the same type.
struct ByteRows {
  ir::Value *a = nullptr;
  ir::Value *zero = nullptr; ///< in i32; null where it is `number`
  int64_t number = 0;
};
std::optional<ByteRows> byteRows(const ir::Value *value);

/// Whether \p product, in i32, may multiply bytes if its second operand is a
/// constant of them: byte rows, few enough to sum, and f32 made of the sums.
bool sumsBytes(const ir::Op &product);

/// Whether \p op widens a constant matrix of i8 for such products alone. It is
/// not folded.
bool widensByteMatrix(const ir::Op &op);

/// Whether \p op is a step from u8 numbers to the first operand of matmuls by
/// constants of i8, as fuse-byte-products leaves it: a cast to f32 (of the
/// zero point too), or minus a zero point. Such steps are left for the kernel,
/// which reads the bytes; clustering them with what makes the bytes would hide
/// them from it.
bool widensBytes(const ir::Op &op);

} // namespace tenon::passes

#endif // TENON_PASSES_ANALYSIS_BYTEPRODUCTS_H
