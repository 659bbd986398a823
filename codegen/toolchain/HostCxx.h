//===- HostCxx.h - the host's C++ compiler ------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_CODEGEN_TOOLCHAIN_HOSTCXX_H
#define TENON_CODEGEN_TOOLCHAIN_HOSTCXX_H

#include "codegen/Codegen.h"
#include "codegen/toolchain/Cache.h"
#include <string>
#include <vector>

namespace tenon::codegen {

/// How units are compiled.
struct ToolchainOptions {
  unsigned jobs = 0;       ///< compilers at the same time; 0: one for each CPU
  std::string cacheFolder; ///< empty: the default; see Cache
  /// When not empty: a folder to leave the sources and headers in, made if need
  /// be, where `c++ -I DIR` compiles them by hand.
  std::string keepSources;
};

/// Writes a file, replacing what was there.
llvm::Error writeFile(llvm::StringRef path, llvm::StringRef text);

/// Object files in a work folder.
struct Objects {
  WorkFolder folder;
  std::vector<std::string> files; ///< one for each source, in order
  unsigned compiled = 0;          ///< how many were not in the cache
  std::string cacheProblem;       ///< Cache::problem
};

/// A C++ compiler: $CXX, else the one Tenon was built with, else c++, g++ or
/// clang++ in $PATH. Started without a shell.
class HostCxx {
public:
  static llvm::Expected<HostCxx> find();

  /// Compiles \p sources, several at the same time, or takes them from the
  /// cache. A failing compiler's message is part of the error.
  llvm::Expected<Objects> compile(llvm::ArrayRef<Source> sources,
                                  const ToolchainOptions &options) const;

  /// Runs the compiler as linker: `c++ ARGUMENTS -o OUT`.
  llvm::Error link(llvm::ArrayRef<std::string> arguments, llvm::StringRef out,
                   const WorkFolder &folder) const;

  /// What tells this compiler from another, or from another version of it.
  const std::string &identity() const { return id; }

private:
  HostCxx() = default;
  llvm::Error run(llvm::ArrayRef<std::string> arguments, llvm::StringRef what,
                  const WorkFolder &folder) const;

  std::string program;
  std::vector<std::string> leading; ///< arguments that $CXX brings
  std::string id;
};

} // namespace tenon::codegen

#endif // TENON_CODEGEN_TOOLCHAIN_HOSTCXX_H
