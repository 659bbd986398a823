//===- PackedWeights.h - weights that stay packed ------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_PASSES_ANALYSIS_PACKEDWEIGHTS_H
#define TENON_PASSES_ANALYSIS_PACKEDWEIGHTS_H

#include "ir/Op.h"

namespace tenon::passes {

/// Whether \p op is a step from a constant of 4-bit codes to the second operand
/// of a matmul: cast, minus a zero point, times a scale, movement. Such steps
/// are left for the kernel that multiplies by the codes, which reads an eighth
/// of the bytes; folding or clustering them would hide them from it.
bool unpacksWeight(const ir::Op &op);

} // namespace tenon::passes

#endif // TENON_PASSES_ANALYSIS_PACKEDWEIGHTS_H
