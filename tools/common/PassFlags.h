//===- PassFlags.h - command-line flags that drive the passes ------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_TOOLS_COMMON_PASSFLAGS_H
#define TENON_TOOLS_COMMON_PASSFLAGS_H

#include "passes/Options.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Error.h"

namespace tenon::tools {

/// The flags of the passes, the same in `tenon compile` and `tenon-opt`:
/// --stop-after, --dump-after, --remarks, --explain, --require-fused,
/// --rewrite-limit, --precision, --kv-cache, --weights, --timing,
/// --verify-numerics, --paranoid.
class PassFlags {
public:
  explicit PassFlags(
      llvm::cl::SubCommand &sub = llvm::cl::SubCommand::getTopLevel());

  /// What was given; an error when a value is malformed.
  llvm::Expected<passes::PassOptions> options() const;

private:
  llvm::cl::OptionCategory category;
  llvm::cl::list<std::string> dumpAfter;
  llvm::cl::opt<std::string> stopAfter, explain, remarks, requireFused;
  llvm::cl::opt<unsigned long long> rewriteLimit;
  llvm::cl::opt<passes::Precision> precision;
  llvm::cl::opt<bool> kvCache;
  llvm::cl::opt<std::string> weights;
  llvm::cl::opt<bool> timing, verifyNumerics, paranoid;
};

/// An error where \p flag is given without a value: `--flag=`.
llvm::Error refuseEmpty(const llvm::cl::opt<std::string> &flag);

} // namespace tenon::tools

#endif // TENON_TOOLS_COMMON_PASSFLAGS_H
