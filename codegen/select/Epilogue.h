//===- Epilogue.h - epilogues of contractions ----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_CODEGEN_SELECT_EPILOGUE_H
#define TENON_CODEGEN_SELECT_EPILOGUE_H

#include "codegen/select/Functors.h"
#include "codegen/select/Lowering.h"

namespace tenon::codegen {

/// The epilogue of a contraction as a kernel takes it: a functor whose first
/// argument is the sum, and the views of its other arguments, with the
/// result's rank.
struct Epilogue {
  kernel::Functor functor;
  std::vector<View> operands;
  llvm::SmallVector<ir::ElementType> elements; ///< of the operands
  /// Operands (numbers in `operands`) that the result may overlay.
  llvm::SmallVector<unsigned, 1> overlays;

  /// `tn::Identity` and no operands.
  bool isIdentity() const { return functor.nodes.empty(); }
};

/// What \p op does to its sums. \p extras are the views of its operands after
/// the second, \p shape the shape of the kernel's result, to which they are
/// broadcast; scalar constants become literals.
Epilogue makeEpilogue(const Lowering &lowering, const ir::Op &op,
                      llvm::ArrayRef<View> extras, ir::ShapeRef shape);
/// How an operand with the result's rank varies over the last two dimensions.
kernel::Access accessOf(const View &view);
/// Whether a kernel that computes in \p element, and has \p more operands for
/// its epilogue, can apply it.
bool canFuse(const Lowering &lowering, const Epilogue &epilogue,
             ir::ElementType element, unsigned more = 0);

} // namespace tenon::codegen

#endif // TENON_CODEGEN_SELECT_EPILOGUE_H
