//===- PlanWriter.h - a program as the plan an artifact carries ---------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_CODEGEN_ARTIFACT_PLANWRITER_H
#define TENON_CODEGEN_ARTIFACT_PLANWRITER_H

#include "ir/kernel/Program.h"
#include <cstdint>
#include <vector>

namespace tenon::codegen {

/// A program's plan, and where its weights lie.
struct PlanImage {
  std::vector<uint8_t> bytes;
  std::vector<uint64_t> weightOffsets; ///< one for each weight, multiples of 64
  uint64_t weightBytes = 0;            ///< of all, a multiple of 64

  /// Enters the checksum of the stored weights and closes the plan.
  void setWeightChecksum(uint64_t checksum);
};

/// Writes \p program, which is planned, as a plan. \p manifest is JSON. Fails
/// when a size of the model overflows.
llvm::Expected<PlanImage> writePlan(const kernel::Program &program,
                                    llvm::StringRef manifest);

} // namespace tenon::codegen

#endif // TENON_CODEGEN_ARTIFACT_PLANWRITER_H
