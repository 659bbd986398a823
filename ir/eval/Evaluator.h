//===- Evaluator.h - the reference evaluator -----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_IR_EVAL_EVALUATOR_H
#define TENON_IR_EVAL_EVALUATOR_H

#include "ir/Op.h"
#include "ir/eval/Tensor.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"

namespace tenon::ir {

/// Runs \p func on \p inputs with the reference semantics of each op (sums
/// accumulate in double, results are rounded to the op's element type), checks
/// inputs against the signature, binds symbols from their shapes and checks
/// constraints and inferred shapes as it goes. The oracle of every test.
/// \p observe, when given, sees each op's results right after it ran, and may
/// change elements (to learn what depends on them).
llvm::Expected<std::vector<Tensor>>
evaluate(const Func &func, llvm::ArrayRef<Tensor> inputs,
         llvm::function_ref<void(const Op &, llvm::MutableArrayRef<Tensor>)>
             observe = nullptr);

/// Evaluates one scalar region (a map's body, an epilogue). Its ops are all
/// elementwise, so the arguments may be whole tensors: they broadcast as NumPy
/// does, and each op runs once over the broadcast of its operands.
llvm::Expected<std::vector<Tensor>>
evaluateRegion(const Block &region, std::vector<Tensor> arguments);

/// Evaluates a single op on constant operands (for constant folding).
llvm::Expected<std::vector<Tensor>>
evaluateOp(const Op &op, llvm::ArrayRef<const Tensor *> operands, DimEnv &env);

} // namespace tenon::ir

#endif // TENON_IR_EVAL_EVALUATOR_H
