//===- FoldOp.h - computing an op on constants
//-------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_PASSES_CANONICAL_FOLDOP_H
#define TENON_PASSES_CANONICAL_FOLDOP_H

#include "ir/Op.h"
#include "llvm/Support/MathExtras.h"

namespace tenon::passes {

/// How much folding may still do. Small files can ask for any amount of it: a
/// list that is appended to itself forty times, a product of two filled
/// matrices. What the budget does not cover is left for the artifact to
/// compute.
struct FoldBudget {
  /// For a module whose constants have \p constantBytes: each may be copied a
  /// few times (transposed, cut, put together).
  explicit FoldBudget(uint64_t constantBytes)
      : bytes(llvm::SaturatingMultiplyAdd<uint64_t>(constantBytes, 4,
                                                    256 << 20)) {}
  uint64_t bytes;
  /// Multiplications, additions and the like; about a second.
  uint64_t steps = uint64_t(1) << 27;

  /// False, and nothing taken, when that is more than what is left.
  bool take(uint64_t moreBytes, uint64_t moreSteps);
};

/// The value of \p op's only result when all its operands are constants, or
/// null when they are not, it would be too big or \p budget does not cover it:
/// - up to 1 MiB, any op, through the reference evaluator;
/// - of any size: elementwise ops on splats (the result is a splat); reshape
///   (shares the bytes); transpose, slice and concat of weights, which copy
///   bytes. Results above 16 MiB live in an unlinked temporary file, so that
///   the pages of big weights stay the file system's.
ir::ConstantRef foldOp(const ir::Op &op, FoldBudget &budget);

/// \p constant under another shape with as many elements, sharing its bytes.
ir::ConstantRef reshapeConstant(const ir::ConstantRef &constant,
                                llvm::ArrayRef<int64_t> shape);

} // namespace tenon::passes

#endif // TENON_PASSES_CANONICAL_FOLDOP_H
