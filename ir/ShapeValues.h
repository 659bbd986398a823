//===- ShapeValues.h - integer tensors known as symbolic expressions -----===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_IR_SHAPEVALUES_H
#define TENON_IR_SHAPEVALUES_H

#include "ir/Op.h"
#include "llvm/ADT/DenseMap.h"
#include <optional>

namespace tenon::ir {

/// Follows small integer tensors *by value* through shape arithmetic: each
/// element is a Dim. Serves the importers (a Reshape's target is read off its
/// `shape` operand) and the `shape-values` pass.
///
/// Knows const, dims, gather, slice, concat, reshape (rank 0 and 1), add, sub,
/// mul, div (where exact or floor semantics agree), mod, neg, min, max, cast
/// between integer types, reduce_prod, equal/where on provable conditions,
/// range, broadcast. Iterative, memoized.
class ShapeValues {
public:
  /// Elements in row-major order of a tensor of rank 0 or 1 with at most 4096
  /// elements; nullopt if some element is unknown.
  std::optional<llvm::SmallVector<Dim, 4>> valuesOf(Value *value);
  /// The one element of a scalar or one-element tensor.
  std::optional<Dim> scalarOf(Value *value);
  /// Elements that are known, others nullopt; nullopt when the tensor's size
  /// itself isn't.
  using Partial = llvm::SmallVector<std::optional<Dim>, 4>;
  const std::optional<Partial> &partialOf(Value *value);

  /// Must be told when a value's op is erased or changed.
  void forget(Value *value) { memo.erase(value); }

private:
  std::optional<Partial> compute(Op &op, unsigned result);
  llvm::DenseMap<Value *, std::optional<Partial>> memo;
};

} // namespace tenon::ir

#endif // TENON_IR_SHAPEVALUES_H
