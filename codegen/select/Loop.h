//===- Loop.h - launches of the loop kernel ------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_CODEGEN_SELECT_LOOP_H
#define TENON_CODEGEN_SELECT_LOOP_H

#include "codegen/select/Functors.h"
#include "codegen/select/Lowering.h"

namespace tenon::codegen {

/// results = functor(operands) at every index of the results' shape, to which
/// the operands are broadcast here. Operands that are one number become
/// literals.
llvm::Error launchLoop(Lowering &lowering, const ir::Op &op,
                       const kernel::Functor &functor,
                       llvm::ArrayRef<View> operands,
                       llvm::ArrayRef<View> results);

} // namespace tenon::codegen

#endif // TENON_CODEGEN_SELECT_LOOP_H
