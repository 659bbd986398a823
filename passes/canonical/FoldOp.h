//===- FoldOp.h - computing an op on constants -------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_PASSES_CANONICAL_FOLDOP_H
#define TENON_PASSES_CANONICAL_FOLDOP_H

#include "ir/Op.h"

namespace tenon::passes {

/// The value of \p op's only result when all its operands are constants, or
/// null when they are not or it would be too big:
/// - up to 1 MiB, any op, through the reference evaluator;
/// - of any size: elementwise ops on splats (the result is a splat); reshape
///   (shares the bytes); transpose, slice and concat of weights, which copy
///   bytes. Results above 16 MiB live in an unlinked temporary file, so that
///   the pages of big weights stay the file system's.
ir::ConstantRef foldOp(const ir::Op &op);

/// \p constant under another shape with as many elements, sharing its bytes.
ir::ConstantRef reshapeConstant(const ir::ConstantRef &constant,
                                llvm::ArrayRef<int64_t> shape);

} // namespace tenon::passes

#endif // TENON_PASSES_CANONICAL_FOLDOP_H
