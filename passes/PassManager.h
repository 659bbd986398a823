//===- PassManager.h - running passes ------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_PASSES_PASSMANAGER_H
#define TENON_PASSES_PASSMANAGER_H

#include "passes/Pass.h"
#include "llvm/ADT/StringMap.h"

namespace tenon::passes {

/// Runs passes and checks them: the verifier after each change; in checked
/// builds also that a pass told the truth about changing something and that the
/// text form round-trips; with --verify-numerics that the results stay the same.
class PassManager {
public:
  /// \p log gets dumps, times and explanations (standard error). The arguments
  /// must outlive the manager.
  PassManager(const PassOptions &options, Remarks &remarks,
              llvm::raw_ostream &log)
      : options(options), log(log), context(options, remarks, log) {}

  /// Runs one pass; returns whether it changed \p module. Does nothing once
  /// stopped. Errors name the pass.
  llvm::Expected<bool> run(ir::Module &module, const PassInfo &pass);
  /// Says that \p module has reached \p stage, and verifies it there.
  llvm::Error reachStage(ir::Module &module, ir::Stage stage);

  /// Whether --stop-after has been reached.
  bool stopped() const { return hasStopped; }
  /// --timing: the time of each pass, longest first.
  void printTiming() const;

private:
  llvm::Error check(ir::Module &module, const PassInfo &pass, bool changed,
                    const std::string &before, const ir::Module *original);
  void dump(const ir::Module &module, llvm::StringRef after);
  bool wantsDump(llvm::StringRef name) const;

  struct Time {
    double seconds = 0;
    unsigned runs = 0, changes = 0;
  };

  const PassOptions &options;
  llvm::raw_ostream &log;
  PassContext context;
  llvm::StringMap<Time> times;
  bool hasStopped = false;
};

} // namespace tenon::passes

#endif // TENON_PASSES_PASSMANAGER_H
