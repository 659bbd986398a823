//===- ByteProducts.h - products of 8-bit numbers --------------*- C++ -*-===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_PASSES_ANALYSIS_BYTEPRODUCTS_H
#define TENON_PASSES_ANALYSIS_BYTEPRODUCTS_H

#include "ir/Op.h"

namespace tenon::passes {

/// Whether \p op is a step from u8 numbers to the first operand of matmuls by
/// constants of i8, as fuse-byte-products leaves it: a cast to f32, or minus a
/// zero point. Such steps are left for the kernel, which reads the bytes;
/// clustering them with what makes the bytes would hide them from it.
bool widensBytes(const ir::Op &op);

} // namespace tenon::passes

#endif // TENON_PASSES_ANALYSIS_BYTEPRODUCTS_H
