//===- CodesOperand.h - a matrix of codes as graphs have it --------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_PASSES_PRECISION_CODESOPERAND_H
#define TENON_PASSES_PRECISION_CODESOPERAND_H

#include "ir/Builder.h"

namespace tenon::passes {

/// B[k, n] = scale[n, k / block] * (code[n, k] - zero[n, k / block]).
struct CodesOperand {
  int64_t k = 0, n = 0;
  ir::ConstantRef codes;  ///< u2, u4 or u8[n, blocks, block]
  ir::ConstantRef scales; ///< f32[n, blocks, 1]
  ir::ConstantRef zeros;  ///< f32[n, blocks, 1]; null: all are `zero`
  double zero = 0;
};

/// B as f32[k, n]:
///   transpose([slice] reshape((cast(codes) - zeros) * scales))
/// which kernels of products read off again, and which is computed by nobody
/// else (analysis/PackedWeights).
ir::Value *buildCodes(ir::Builder &builder, const CodesOperand &operand);

} // namespace tenon::passes

#endif // TENON_PASSES_PRECISION_CODESOPERAND_H
