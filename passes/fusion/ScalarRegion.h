//===- ScalarRegion.h - growing the scalar body of a fused op ------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_PASSES_FUSION_SCALARREGION_H
#define TENON_PASSES_FUSION_SCALARREGION_H

#include "ir/Builder.h"
#include "llvm/ADT/DenseMap.h"

namespace tenon::passes {

/// Builds the region of an op that swallows elementwise ops: an epilogue or a
/// map's body. Tensor values become scalars: what was swallowed is computed
/// inside, scalar constants are repeated inside, everything else is an operand
/// with an argument of its own.
class ScalarRegion {
public:
  /// Works on the empty region of \p op; operands from number \p firstOperand
  /// on belong to arguments from number \p firstArgument on.
  explicit ScalarRegion(ir::Block &region) : region(region), builder(&region) {}

  /// An argument that stands for \p value.
  ir::Value *addArgument(ir::Value *value);
  /// Makes \p value mean \p scalar from now on.
  void define(ir::Value *value, ir::Value *scalar) { scalars[value] = scalar; }
  /// The scalar that stands for \p value, adding an operand when there is none.
  ir::Value *scalarOf(ir::Value *value);
  /// Copies the elementwise \p op into the region.
  void append(const ir::Op &op);
  /// Ends the region with the scalars of \p values.
  void yield(llvm::ArrayRef<ir::Value *> values);
  /// Copies another region's ops, its arguments standing for \p arguments, and
  /// defines \p results as what it yields.
  void inlineRegion(const ir::Block &other,
                    llvm::ArrayRef<ir::Value *> arguments,
                    llvm::ArrayRef<ir::Value *> results);

  /// The tensors that arguments made by scalarOf stand for, in order.
  llvm::ArrayRef<ir::Value *> operands() const { return captured; }

private:
  ir::Block &region;
  ir::Builder builder;
  llvm::DenseMap<ir::Value *, ir::Value *> scalars;
  llvm::SmallVector<ir::Value *, 4> captured;
};

/// The one value of a constant that broadcasts as a scalar (all dimensions 1).
std::optional<double> scalarConstant(const ir::Value *value);

} // namespace tenon::passes

#endif // TENON_PASSES_FUSION_SCALARREGION_H
