//===- Commands.h - the subcommands of tenon -----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_TOOLS_TENON_COMMANDS_H
#define TENON_TOOLS_TENON_COMMANDS_H

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Error.h"
#include <memory>

namespace tenon::tools {

/// One subcommand: its flags live in the object, `run` does the work and
/// returns the exit status (0 success, 1 the user's error).
class Command {
public:
  Command(llvm::StringRef name, llvm::StringRef description)
      : sub(name, description) {}
  virtual ~Command() = default;
  virtual int run() = 0;
  bool chosen() { return bool(sub); }

protected:
  llvm::cl::SubCommand sub;
};

std::unique_ptr<Command> makeCompileCommand();
std::unique_ptr<Command> makeCheckCommand();
std::unique_ptr<Command> makeExplainCommand();
std::unique_ptr<Command> makeInspectCommand();
std::unique_ptr<Command> makeVerifyCommand();

/// Prints an error as `error: ...` where the message has no place of its own
/// (`FILE: error: ...`); returns 1.
int fail(llvm::Error error);

} // namespace tenon::tools

#endif // TENON_TOOLS_TENON_COMMANDS_H
