//===- ImportFlags.h - command-line flags of reading a model --------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_TOOLS_COMMON_IMPORTFLAGS_H
#define TENON_TOOLS_COMMON_IMPORTFLAGS_H

#include "frontend/Import.h"
#include "llvm/Support/CommandLine.h"

namespace tenon::tools {

/// --dim, --set and --follow-links, the same in every command that reads a
/// model.
class ImportFlags {
public:
  explicit ImportFlags(llvm::cl::SubCommand &sub);

  /// What was given; an error when a value is malformed.
  llvm::Expected<frontend::ImportOptions> options() const;

  llvm::cl::list<std::string> dims, values;

private:
  llvm::cl::opt<bool> followLinks;
};

} // namespace tenon::tools

#endif // TENON_TOOLS_COMMON_IMPORTFLAGS_H
