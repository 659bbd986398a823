//===- CommandLine.h - the passes' flags -------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_PASSES_COMMANDLINE_H
#define TENON_PASSES_COMMANDLINE_H

#include "passes/Options.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Error.h"
#include <memory>

namespace tenon::passes {

/// The flags that `tenon compile` and `tenon-opt` share. Make one in main,
/// before the command line is parsed.
class PassFlags {
public:
  /// Registers --stop-after, --dump-after, --timing, --remarks, --explain,
  /// --require-fused, --rewrite-limit and --verify-numerics with \p command and
  /// under \p category in --help.
  explicit PassFlags(llvm::cl::OptionCategory &category,
                     llvm::cl::SubCommand &command =
                         llvm::cl::SubCommand::getTopLevel());
  ~PassFlags();

  /// What was given; an error when a name is no pass or stage, or a count is
  /// malformed.
  llvm::Expected<PassOptions> options() const;

private:
  struct Flags;
  std::unique_ptr<Flags> flags;
};

} // namespace tenon::passes

#endif // TENON_PASSES_COMMANDLINE_H
