//===- Laws.h - the themes of canonicalize -----------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_PASSES_CANONICAL_LAWS_H
#define TENON_PASSES_CANONICAL_LAWS_H

/// \file
/// The canonical forms, on which every later pass may rely:
///
/// - Of a commutative op's operands, a constant is the second.
/// - Scalar constants in elementwise ops have rank 0, and constants no leading
///   dimensions of 1, where the shape of the result does not need them.
/// - x - c is x + (-c); x / c is x * (1 / c) where 1 / c is as good (always in
///   f32 and f64); products of scalars are one; scalar factors of a matmul's
///   operands are behind the matmul.
/// - 1 / x is reciprocal, 1 / sqrt(x) is rsqrt, y / sqrt(x) is y * rsqrt(x).
/// - pow by 2, 3, 0.5, -0.5, -1 is mul, sqrt, rsqrt, reciprocal.
/// - `where` has no negated condition; x == 0 of integers is not(cast(x)).
/// - Elementwise ops broadcast implicitly; what is left of `broadcast` stands
///   behind them.
/// - Chains of reshape, transpose, broadcast and slice are one op each; a
///   transpose that moves only dimensions of 1 is a reshape; a reshape that
///   merges dimensions is behind a transpose, and one that merges or splits
///   leading dimensions is behind elementwise ops and products with a matrix.
/// - gather at a known position is slice and reshape.

#include "ir/match/Rewriter.h"

namespace tenon::passes {

void addArithmeticLaws(ir::PeepholeSet &laws);  // CanonicalizeArith.cpp
void addLogicLaws(ir::PeepholeSet &laws);       // CanonicalizeLogic.cpp
void addScaleLaws(ir::PeepholeSet &laws);       // CanonicalizeScale.cpp
void addBroadcastLaws(ir::PeepholeSet &laws);   // CanonicalizeBroadcast.cpp
void addMovementLaws(ir::PeepholeSet &laws);    // CanonicalizeMovement.cpp
/// Of the movement laws: two transposes are one, one that moves nothing is none.
void addTransposeLaws(ir::PeepholeSet &laws);
void addReshapeLaws(ir::PeepholeSet &laws);     // CanonicalizeReshape.cpp
void addSliceLaws(ir::PeepholeSet &laws);       // CanonicalizeSlice.cpp

} // namespace tenon::passes

#endif // TENON_PASSES_CANONICAL_LAWS_H
