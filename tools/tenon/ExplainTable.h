//===- ExplainTable.h - what kernels cost, as text ------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_TOOLS_TENON_EXPLAINTABLE_H
#define TENON_TOOLS_TENON_EXPLAINTABLE_H

#include "codegen/target/Occupancy.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tenon::tools {

/// A GPU's published peaks: 10^12 operations, 10^9 bytes a second.
struct GpuPeaks {
  llvm::StringLiteral name, text;
  unsigned arch;
  double f32, tf32, half, bandwidth, memory;
};

/// Those of a list such as "h200,a100".
llvm::Expected<std::vector<const GpuPeaks *>> parseGpus(llvm::StringRef list);

/// What a launch multiplies with.
enum class Units { F32, Tf32, Half, Byte };

/// One launch with its sizes filled in.
struct Work {
  unsigned unit = 0;
  std::string kernel, node;
  double flops = 0, bytes = 0;
  Units units = Units::F32;

  double computeSeconds(const GpuPeaks &gpu) const;
  double memorySeconds(const GpuPeaks &gpu) const;
  double seconds(const GpuPeaks &gpu) const;
};

/// What the emulator counted for a unit, in all its launches.
struct Counted {
  double launches = 0, movedBytes = 0;
  double wavefronts = 0, conflicts = 0; ///< of shared memory
  double multiplyAdds = 0;              ///< of tensor cores
};

/// What a unit takes of a GPU.
struct Taken {
  unsigned registers = 0, sharedBytes = 0, stackBytes = 0, threads = 0;
  codegen::Occupancy occupancy;
};

/// Prints what launches cost at least on some GPUs: by kernel, the dearest
/// first; or one by one.
void printLeastCosts(llvm::ArrayRef<Work> work,
                     llvm::ArrayRef<const GpuPeaks *> gpus, bool eachLaunch,
                     llvm::raw_ostream &os);

/// Prints what was counted beside what is needed, and what kernels take, by
/// kernel; where a map lacks a unit, nothing is known.
void printCounts(llvm::ArrayRef<Work> work,
                 const std::map<unsigned, Counted> &counted,
                 const std::map<unsigned, Taken> &taken, const GpuPeaks &gpu,
                 llvm::raw_ostream &os);

/// Prints what the columns of the first, or of both, mean.
void printLegend(bool counts, llvm::raw_ostream &os);

/// Prints a GPU's peaks and whether \p needed bytes fit its memory.
void printGpu(const GpuPeaks &gpu, std::optional<double> needed,
              llvm::raw_ostream &os);

} // namespace tenon::tools

#endif // TENON_TOOLS_TENON_EXPLAINTABLE_H
