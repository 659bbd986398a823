//===- CompiledTarget.h - runs compiled code for this CPU -----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_TOOLS_TENON_RUN_COMPILEDTARGET_H
#define TENON_TOOLS_TENON_RUN_COMPILEDTARGET_H

#include "Target.h"
#include "codegen/artifact/Artifact.h"
#include <map>
#include <string>

namespace tenon::run {

/// A target of the code generator: the CPU, or the CUDA target on the emulator.
/// Compiles all functions of a module at once when the first is called, unless
/// they were prepared; functions without a kernel fail when they are called.
class CompiledTarget final : public Target {
public:
  explicit CompiledTarget(codegen::Target target) { options.target = target; }
  void prepare(llvm::ArrayRef<const ir::Module *> modules) override;
  llvm::Expected<std::vector<ir::Tensor>>
  run(const ir::Module &module, const ir::Func &func,
      llvm::ArrayRef<ir::Tensor> inputs) override;

private:
  struct Compiled {
    kernel::Program program;
    std::unique_ptr<codegen::LoadedProgram> loaded;
    bool lowered = true;
    std::string error; ///< not empty: why there is no program
  };
  llvm::Error load(llvm::ArrayRef<kernel::Unit> units);

  codegen::TargetOptions options;
  std::map<const ir::Func *, Compiled> compiled;
};

} // namespace tenon::run

#endif // TENON_TOOLS_TENON_RUN_COMPILEDTARGET_H
