//===- Cases.h - running many models in one process ----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_TEST_SUPPORT_CASES_H
#define TENON_TEST_SUPPORT_CASES_H

#include "ir/Op.h"
#include "ir/eval/Tensor.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <vector>

namespace tenon::test {

using Tensors = std::vector<ir::Tensor>;

/// Imports and verifies the model at \p path; warnings are dropped.
llvm::Expected<std::unique_ptr<ir::Module>> importModel(llvm::StringRef path);

/// The tensors in the file at \p path: initializers that are outputs of a graph
/// without nodes, which is how ONNX stores every element type. `-` has none.
llvm::Expected<Tensors> readTensors(llvm::StringRef path);

/// An error unless \p inputs are as many and of such types as \p func takes.
llvm::Error checkInputs(const ir::Func &func, const Tensors &inputs);

/// Runs the passes on \p module as compiling for \p target does.
llvm::Error runPasses(ir::Module &module, llvm::StringRef target);

/// Prints `NUMBER STATUS MESSAGE`, separated by tabs, on one line of standard
/// output.
void report(unsigned number, llvm::StringRef status,
            llvm::Error error = llvm::Error::success());

/// Calls \p body in a process of its own, so that one that crashes or takes
/// longer than \p seconds takes no other with it; that is reported as `crash`.
void runApart(unsigned number, unsigned seconds,
              llvm::function_ref<void()> body);

} // namespace tenon::test

#endif // TENON_TEST_SUPPORT_CASES_H
