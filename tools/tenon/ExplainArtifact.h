//===- ExplainArtifact.h - tenon explain, of an artifact ------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_TOOLS_TENON_EXPLAINARTIFACT_H
#define TENON_TOOLS_TENON_EXPLAINARTIFACT_H

#include "tools/tenon/ExplainTable.h"

namespace tenon::tools {

struct ExplainRequest {
  std::string artifact;
  std::vector<const GpuPeaks *> gpus;
  /// An .npz: its shapes give the sizes, and the emulator runs it.
  std::string inputs;
  /// "name=N" for each size, where there are no inputs.
  std::vector<std::string> dims;
  /// What --emulator-report of such a run wrote; empty: it is run.
  std::string report;
  bool eachLaunch = false;
};

/// Prints what the kernels of a CUDA artifact cost at least, what the emulator
/// counts as it runs them as each of the GPUs, and what they take of these.
llvm::Error explainArtifact(const ExplainRequest &request,
                            llvm::raw_ostream &os);

} // namespace tenon::tools

#endif // TENON_TOOLS_TENON_EXPLAINARTIFACT_H
