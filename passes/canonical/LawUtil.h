//===- LawUtil.h - what the laws share ---------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_PASSES_CANONICAL_LAWUTIL_H
#define TENON_PASSES_CANONICAL_LAWUTIL_H

#include "ir/match/Rewriter.h"
#include <optional>

namespace tenon::passes {

/// The contents of a constant, or null.
const ir::Constant *constantOf(const ir::Value *value);
/// The one value of all elements of a constant.
std::optional<double> splatOf(const ir::Value *value);
/// The value of a constant with a single element.
std::optional<double> scalarOf(const ir::Value *value);

/// \p op with other operands, made before it.
ir::Value *rebuild(ir::Op &op, llvm::ArrayRef<ir::Value *> operands,
                   ir::Rewriter &rewriter);

ir::Value *buildReshape(ir::Builder &builder, ir::Value *x, ir::ShapeRef shape);
ir::Value *buildTranspose(ir::Builder &builder, ir::Value *x,
                          llvm::ArrayRef<int64_t> perm);
ir::Value *buildBroadcast(ir::Builder &builder, ir::Value *x,
                          ir::ShapeRef shape);
ir::Value *buildCast(ir::Builder &builder, ir::Value *x, ir::ElementType to);

/// Whether \p from broadcasts to \p to without anything to check at run time:
/// each of its dimensions is 1 or the very same.
bool broadcastsSurely(ir::ShapeRef from, ir::ShapeRef to);

/// Adjacent dimensions of a reshape's operand that become adjacent dimensions
/// of its result: [inBegin, inEnd) to [outBegin, outEnd). One side is empty
/// where a dimension of 1 goes or comes.
struct DimGroup {
  unsigned inBegin, inEnd, outBegin, outEnd;
  unsigned numIn() const { return inEnd - inBegin; }
  unsigned numOut() const { return outEnd - outBegin; }
};
/// A reshape from \p in to \p out in the smallest groups, in order; nullopt when
/// the sizes cannot be told apart symbolically.
std::optional<llvm::SmallVector<DimGroup, 4>> groupDims(ir::ShapeRef in,
                                                        ir::ShapeRef out);
/// Whether a reshape from \p in to \p out only adds and drops dimensions of 1.
bool movesOnlyOnes(ir::ShapeRef in, ir::ShapeRef out);

} // namespace tenon::passes

#endif // TENON_PASSES_CANONICAL_LAWUTIL_H
