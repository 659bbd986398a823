//===- Options.h - what a user may ask of the passes ---------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_PASSES_OPTIONS_H
#define TENON_PASSES_OPTIONS_H

#include "ir/Type.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tenon::passes {

/// What --precision names.
enum class Precision {
  Model, ///< what the model says
  F32,
  F32Fast, ///< f32 in memory, three products of bf16 parts for one of f32
  F32Fma,  ///< f32 by multiply-adds, whatever units for matrices there are
  TF32,    ///< f32 in memory, rounded by tensor cores as they multiply
  F16,
  BF16,
  Int8, ///< products with constant matrices in 8 bits, the rest as F16
  Fp8,
};

/// As --precision spells it; "" for the model's.
llvm::StringRef precisionName(Precision precision);
/// The type that values are stored in, if it is not the model's.
std::optional<ir::ElementType> storageOf(Precision precision);

/// Where halves are stored in memory.
enum class Halves {
  Everywhere, ///< activations and weights: GPUs
  Weights,    ///< weights alone, what is computed being f32: CPUs
};

/// What --weights names: constant matrices as codes of `bits` bits with a scale
/// for each `block` of rows of a column (0: for the whole column).
struct WeightFormat {
  unsigned bits = 0; ///< 0: as the model has them
  int64_t block = 0;
};

/// Filled from the command line by `tenon` and `tenon-opt`; see
/// tools/common/PassFlags.h for the flags.
struct PassOptions {
  /// --dump-after=PASS|all: print the IR after these passes where they changed
  /// it (a stage's name: after its last pass).
  std::vector<std::string> dumpAfter;
  /// --stop-after=STAGE|PASS: run nothing behind it. "" is off.
  std::string stopAfter;
  /// --explain=PASS: print what the pass tried and why it did not apply.
  std::string explain;
  /// --remarks=FILE: write remarks as JSON (or YAML when FILE ends so).
  std::string remarksFile;
  /// --require-fused=attention:12,layer_norm:25: kinds with the least number of
  /// ops in the final IR.
  std::vector<std::pair<std::string, unsigned>> requireFused;
  /// --rewrite-limit=N: the first N rewrites are done and no more.
  uint64_t rewriteLimit = UINT64_MAX;
  /// --precision: how values are stored and multiplied.
  Precision precision = Precision::Model;
  /// --kv-cache: give a causal model without caches some.
  bool kvCache = false;
  /// Of the target.
  Halves halves = Halves::Everywhere;
  /// --weights: how constant matrices are stored.
  WeightFormat weights;
  /// --max-context: more than 0 makes caches memory of the session.
  int64_t maxContext = 0;
  /// --timing: print the time of each pass.
  bool timing = false;
  /// --verify-numerics: evaluate before and after each pass and compare.
  bool verifyNumerics = false;
  /// Verify after each pass that changed something.
  bool verify = true;
  /// Check that a pass says the truth about changes and that the text form
  /// round-trips. On in checked builds.
#ifdef NDEBUG
  bool paranoid = false;
#else
  bool paranoid = true;
#endif
};

} // namespace tenon::passes

#endif // TENON_PASSES_OPTIONS_H
