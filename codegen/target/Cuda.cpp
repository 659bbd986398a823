//===- Cuda.cpp - the GPU architectures ----------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/target/Target.h"
#include "ir/support/Diag.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace tenon::codegen {

namespace {

const GpuArch archs[] = {
    {"sm_75", 75, false, 68},    {"sm_80", 80, false, 108},
    {"sm_86", 86, false, 84},    {"sm_87", 87, false, 16},
    {"sm_89", 89, false, 128},   {"sm_90", 90, false, 132},
    {"sm_90a", 90, true, 132},   {"sm_100", 100, false, 148},
    {"sm_103", 103, false, 148}, {"sm_120", 120, false, 170},
    {"sm_121", 121, false, 48},
};

/// sm_80's code runs on all of the 8.x line and its PTX on everything later;
/// Hopper's own instructions need sm_90a.
constexpr llvm::StringLiteral defaultArchs = "sm_80,sm_90a";

} // namespace

llvm::Expected<std::vector<const GpuArch *>>
parseGpuArchs(llvm::StringRef list) {
  llvm::SmallVector<llvm::StringRef> names;
  (list.empty() ? llvm::StringRef(defaultArchs) : list).split(names, ',');
  std::vector<const GpuArch *> chosen;
  for (llvm::StringRef name : names) {
    const GpuArch *found = llvm::find_if(
        archs, [&](const GpuArch &arch) { return arch.name == name.trim(); });
    if (found == std::end(archs)) {
      std::string known;
      for (const GpuArch &arch : archs)
        known += (known.empty() ? "" : ", ") + arch.name.str();
      return userError("no GPU architecture '{0}'; there are {1}", name.trim(),
                       known);
    }
    if (!llvm::is_contained(chosen, found))
      chosen.push_back(found);
  }
  llvm::sort(chosen);
  return chosen;
}

} // namespace tenon::codegen
