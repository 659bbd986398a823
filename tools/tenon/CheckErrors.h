//===- CheckErrors.h - what a way of storing numbers costs in accuracy ----===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_TOOLS_TENON_CHECKERRORS_H
#define TENON_TOOLS_TENON_CHECKERRORS_H

#include "frontend/Import.h"
#include "passes/Options.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include <string>
#include <vector>

namespace tenon::tools {

/// One way to compile a model, by the flags that say so.
struct Choice {
  std::string flags; ///< "--weights=int4"
  passes::PassOptions options;
};

struct ErrorCheck {
  std::string model;
  frontend::ImportOptions import;
  /// An .npz; empty: inputs are made up.
  std::string inputs;
  std::vector<Choice> choices;
};

/// Compiles and runs the model in f32 and in every choice, on this CPU, on the
/// same inputs, and prints how far the outputs of each are from those of f32:
/// the greatest absolute difference, rms(difference) / rms(f32), and how often
/// the greatest element along the last dimension is the same one.
llvm::Error printErrors(const ErrorCheck &check, llvm::raw_ostream &os);

} // namespace tenon::tools

#endif // TENON_TOOLS_TENON_CHECKERRORS_H
