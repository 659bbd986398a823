//===- Predicate.h - whether a graph still shows a fault -----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_TOOLS_TENON_REDUCE_PREDICATE_H
#define TENON_TOOLS_TENON_REDUCE_PREDICATE_H

#include "ir/Op.h"
#include "passes/Options.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include <string>

namespace tenon::reduce {

/// Which passes are tried.
struct Passes {
  std::vector<std::string> names; ///< run first, in this order
  ir::Stage pipeline = ir::Stage::Imported;
  passes::PassOptions options;
};

/// Runs \p passes on \p module. What they say goes to \p log.
llvm::Error runPasses(ir::Module &module, const Passes &passes,
                      llvm::raw_ostream &log);

/// Calls \p body in a process of its own, for \p seconds at most. What it
/// returns, or nullopt if it crashed or took longer. Its output is dropped.
std::optional<int> runApart(llvm::function_ref<int()> body, unsigned seconds);

/// Whether a command finds a graph interesting, as those of creduce and
/// llvm-reduce do: it gets the file's name as its last argument and exits with
/// 0 if so.
class Command {
public:
  /// \p text is for the shell. Candidates are written into \p folder.
  Command(std::string text, std::string folder, unsigned seconds)
      : text(std::move(text)), folder(std::move(folder)), seconds(seconds) {}
  bool isInteresting(const ir::Module &module) const;

private:
  std::string text, folder;
  unsigned seconds;
};

} // namespace tenon::reduce

#endif // TENON_TOOLS_TENON_REDUCE_PREDICATE_H
