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

enum class Target {
#define TN_TARGET(enumerator, name, text) enumerator,
#include "codegen/target/Targets.def"
};

/// "cpu" for `--target=cpu`; an unknown name is an error that lists the known.
llvm::Expected<Target> parseTarget(llvm::StringRef name);
/// "CPU", for messages.
llvm::StringRef targetText(Target target);

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

/// A GPU architecture that NVRTC compiles for.
struct GpuArch {
  llvm::StringLiteral name; ///< "sm_90a"
  unsigned number;          ///< 90
  /// Whether its code runs on this very architecture alone ("a" variants).
  bool exact;
  /// Streaming multiprocessors of its largest common product.
  unsigned multiprocessors;
};

/// Architectures for `--arch=`, a list such as "sm_80,sm_90a"; empty: a
/// default. In the table's order, without repeats.
llvm::Expected<std::vector<const GpuArch *>>
parseGpuArchs(llvm::StringRef list);

/// How products with constant matrices are done.
enum class Products {
  Stored, ///< as the operands are stored
  Int8,   ///< both rounded to 8 bits with a scale for each row and column
  Fp8,    ///< the same with e4m3 codes
};

struct TargetOptions {
  Target target = Target::Cpu;
  /// CPU forms to emit, best first; empty: the native one.
  std::vector<const CpuForm *> forms;
  /// --max-context=N: caches become state with room for N; 0 leaves them.
  int64_t maxContext = 0;
  /// --last-logits-only: the output 'logits' has one row, the last token's.
  bool lastLogitsOnly = false;
  /// GPU architectures; empty: the default ones.
  std::vector<const GpuArch *> archs;
  /// GPUs: f32 products may be rounded to tf32.
  bool tf32 = false;
  Products products = Products::Stored; ///< GPUs
  /// CPUs with AMX: how many products of bf16 parts make one of f32: 6, which
  /// is as exact, 3, or 0, which keeps to multiply-adds; 1 with matrices in
  /// bf16 alone.
  unsigned partProducts = 6;
};

} // namespace tenon::codegen

#endif // TENON_CODEGEN_TARGET_TARGET_H
