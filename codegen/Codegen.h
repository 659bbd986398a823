//===- Codegen.h - from the fused graph to source ------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_CODEGEN_CODEGEN_H
#define TENON_CODEGEN_CODEGEN_H

/// \file
/// The public face of the code generator: `lower` takes a function of the graph
/// IR to a planned kernel Program, `emitUnits` writes the Program's units as
/// C++. `codegen/toolchain` compiles them, `codegen/artifact` links the result.

#include "codegen/target/Target.h"
#include "ir/Op.h"
#include "ir/kernel/Program.h"
#include <string>
#include <vector>

namespace tenon::codegen {

/// Selects kernels for the ops of \p func, a function of \p module. Not planned
/// yet: buffers have no place. All ops without a kernel are reported at once.
llvm::Expected<kernel::Program> select(const ir::Module &module,
                                       const ir::Func &func,
                                       const TargetOptions &options);

/// Gives every arena buffer its place and works out the peak memory.
void plan(kernel::Program &program);

/// `select` and `plan`.
llvm::Expected<kernel::Program> lower(const ir::Module &module,
                                      const ir::Func &func,
                                      const TargetOptions &options = {});

/// One translation unit of C++ or CUDA. It compiles alone with the embedded
/// kernel files on the include path; C++ with the flags of its form, CUDA for
/// any architecture.
struct Source {
  std::string name; ///< "gemm-0.x86-64-v4.cpp": unique within a program
  std::string text;
  const CpuForm *form = nullptr; ///< null: plain code for any x86-64
  Target target = Target::Cpu;
  std::vector<unsigned> units = {}; ///< CUDA: those whose entry points it has
};

/// \p units as C++, some of one kernel family in each source, for each of
/// \p options' forms; and the table that the runtime picks from
/// (`tenon_forms`). For CUDA each source is written once, and the table is
/// empty. The text holds no names from the model.
std::vector<Source> emitUnits(llvm::ArrayRef<kernel::Unit> units,
                              const TargetOptions &options);

/// Gives several programs one list of units (which is returned), for one
/// artifact or shared object that serves them all.
std::vector<kernel::Unit> shareUnits(llvm::ArrayRef<kernel::Program *> programs);

} // namespace tenon::codegen

#endif // TENON_CODEGEN_CODEGEN_H
