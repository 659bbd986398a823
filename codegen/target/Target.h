//===- Target.h - what to compile for ------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_CODEGEN_TARGET_TARGET_H
#define TENON_CODEGEN_TARGET_TARGET_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>
#include <vector>

namespace tenon::codegen {

/// One form of CPU code: what the host compiler is told and what the machine
/// that runs it must have.
struct CpuForm {
  llvm::StringLiteral name;                  ///< "x86-64-v4"
  llvm::ArrayRef<llvm::StringLiteral> flags; ///< for the host compiler
  uint32_t features;                         ///< tn_feature bits it needs
};

/// All forms, best first.
llvm::ArrayRef<CpuForm> cpuForms();
/// Forms for `--cpu=`: "native" (the best this machine runs) or a list such as
/// "x86-64-v3,x86-64-v4". Best first, without repeats. An unknown name is an
/// error that lists the known ones.
llvm::Expected<std::vector<const CpuForm *>>
parseCpuForms(llvm::StringRef list);

struct TargetOptions {
  /// CPU forms to emit, best first; empty: the native one.
  std::vector<const CpuForm *> forms;
  /// --max-context=N: caches become state with room for N; 0 leaves them.
  int64_t maxContext = 0;
};

} // namespace tenon::codegen

#endif // TENON_CODEGEN_TARGET_TARGET_H
