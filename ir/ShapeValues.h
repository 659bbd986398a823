//===- ShapeValues.h - integer tensors known as symbolic expressions -----===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_IR_SHAPEVALUES_H
#define TENON_IR_SHAPEVALUES_H

#include "ir/Op.h"
#include "ir/ShapeArithmetic.h"
#include "llvm/ADT/DenseMap.h"
#include <optional>

namespace tenon::ir {

/// Follows small integer and bool tensors *by value* through shape arithmetic:
/// each element is a Dim (a bool is 0 or 1). Serves the importers (a Reshape's
/// target is read off its `shape` operand) and the `shape-values` pass.
///
/// What is followed: const and dims; every op of the elementwise, movement,
/// indexing and reduction families where all its operands are constants (by
/// evaluating it); the arithmetic in ShapeArithmetic.h on symbolic elements,
/// through floats too; anything that only moves elements (reshape, slice,
/// concat, gather at constant indices ...); range of a constant count; sums,
/// products, minima and maxima. Tensors have constant shapes of at most 4096
/// elements. Iterative, memoized.
///
/// Sizes are taken to stay below 2^24 where they pass through f32, and below
/// 2^31 where they pass through i32.
class ShapeValues {
public:
  /// All elements, in row-major order; nullopt if one is unknown or the tensor
  /// is not of integers or bools.
  std::optional<llvm::SmallVector<Dim, 4>> valuesOf(Value *value);
  /// The one element of a scalar or one-element tensor.
  std::optional<Dim> scalarOf(Value *value);
  /// Elements that are known, others nullopt; nullopt when no element is. Valid
  /// until the next call.
  using Partial = llvm::SmallVector<std::optional<Dim>, 4>;
  const std::optional<Partial> &partialOf(Value *value);

  /// Must be told when a value's op is erased or changed.
  void forget(Value *value) { memo.erase(value); }

private:
  /// Elements in row-major order; empty when nothing is known.
  using Numbers = llvm::SmallVector<std::optional<Number>, 4>;
  struct Entry {
    Numbers numbers;
    std::optional<Partial> partial;
  };
  using Memo = llvm::DenseMap<Value *, Entry>;

  Entry &entryOf(Value *value);
  Numbers compute(Value *value);
  Numbers evaluateConstant(Value *value);
  Numbers evaluateElementwise(Value *value);
  Numbers evaluateMovement(Value *value);
  Numbers evaluateRange(Value *value);
  Numbers evaluateReduction(Value *value);
  llvm::ArrayRef<std::optional<Number>> known(Value *value);
  Memo memo;
};

} // namespace tenon::ir

#endif // TENON_IR_SHAPEVALUES_H
