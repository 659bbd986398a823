//===- RowUse.h - which rows of its operands an op's rows need -----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_IR_ROWUSE_H
#define TENON_IR_ROWUSE_H

#include "ir/Op.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace tenon::ir {

/// What an op needs of an operand to compute row t of its result: row t along
/// `axis`, or all of it.
struct RowUse {
  std::optional<unsigned> axis;
  bool isWhole() const { return !axis; }
};

/// What \p op needs of each operand so that row t, along \p axis, of its
/// results depends on row t of these operands alone. Nothing when it mixes rows
/// (a softmax or a reduction along the axis, attention) or when that cannot be
/// told. Operands that are left out are whole.
std::optional<llvm::SmallVector<RowUse, 4>> rowUses(const Op &op,
                                                    unsigned axis);

/// Replaces every dimension that the attributes of \p op hold.
void rewriteAttrDims(Op &op, llvm::function_ref<Dim(Dim)> rewrite);

/// Whether \p dim has \p symbol in it.
bool mentions(Dim dim, llvm::StringRef symbol);

} // namespace tenon::ir

#endif // TENON_IR_ROWUSE_H
