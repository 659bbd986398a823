//===- Arguments.h - tensors from a run line -----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_TOOLS_TENON_RUN_ARGUMENTS_H
#define TENON_TOOLS_TENON_RUN_ARGUMENTS_H

#include "RunLine.h"
#include "ir/Op.h"

namespace tenon::run {

/// The tensors to call \p func with: shapes come from its signature, the run's
/// symbols and the literals.
llvm::Expected<std::vector<ir::Tensor>> makeArguments(const Run &run,
                                                      const ir::Func &func);

/// \p literal as a tensor of \p element.
llvm::Expected<ir::Tensor> makeTensor(const Literal &literal,
                                      ir::ElementType element);

/// Prints `f32[2, 2] = [[1, 2], [3, 4]]`, which reads back as a literal.
void printTensor(const ir::Tensor &tensor, llvm::raw_ostream &os);

} // namespace tenon::run

#endif // TENON_TOOLS_TENON_RUN_ARGUMENTS_H
