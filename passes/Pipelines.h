//===- Pipelines.h - the order of the passes -----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_PASSES_PIPELINES_H
#define TENON_PASSES_PIPELINES_H

#include "passes/PassManager.h"

namespace tenon::passes {

/// The flags of the passes that bring a module to \p stage from the one before,
/// in order.
llvm::ArrayRef<llvm::StringLiteral> pipeline(ir::Stage stage);

/// An error when \p options name a pass, stage or op that does not exist.
llvm::Error checkNames(const PassOptions &options);

/// What runPipeline did.
struct PipelineResult {
  /// --stop-after named a pass or stage that was reached; go no further.
  bool stopped = false;
};

/// Brings \p module from its stage up to \p upTo, does what \p options ask,
/// writes the remarks' file and checks --require-fused. \p log gets dumps,
/// times and explanations.
llvm::Expected<PipelineResult> runPipeline(ir::Module &module, ir::Stage upTo,
                                           const PassOptions &options,
                                           Remarks &remarks,
                                           llvm::raw_ostream &log);

/// How many ops of kind \p mnemonic the module has, epilogues and maps
/// included.
unsigned countOps(const ir::Module &module, llvm::StringRef mnemonic);

/// An error that lists what --require-fused asks for and \p module lacks, with
/// the remarks of the candidates.
llvm::Error checkRequired(const ir::Module &module, const PassOptions &options,
                          const Remarks &remarks);

} // namespace tenon::passes

#endif // TENON_PASSES_PIPELINES_H
