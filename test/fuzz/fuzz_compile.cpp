//===- fuzz_compile.cpp - any bytes as a model to compile ----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Any bytes become launches on planned memory, and their source, or give an
/// error: all of `tenon compile` before the host's compiler.
///
//===----------------------------------------------------------------------===//

#include "codegen/Codegen.h"
#include "frontend/Import.h"
#include "ir/eval/Evaluator.h"
#include "passes/Pipelines.h"
#include <cstdlib>

using namespace tenon;

namespace {

/// An internal error is a fault here, too.
bool isClear(llvm::Error error) {
  std::string message = llvm::toString(std::move(error));
  if (!llvm::StringRef(message).contains("internal error"))
    return true;
  llvm::errs() << message << '\n';
  return false;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  frontend::ImportOptions import;
  import.warn = [](llvm::StringRef) {};
  auto module = frontend::importOnnxBytes({data, size}, import);
  if (!module) {
    llvm::consumeError(module.takeError());
    return 0;
  }
  passes::PassOptions options;
  passes::Remarks remarks;
  auto result = passes::runPipeline(**module, ir::Stage::Fused, options,
                                    remarks, llvm::nulls());
  if (!result) {
    if (!isClear(result.takeError()))
      std::abort();
    return 0;
  }
  codegen::TargetOptions target;
  target.forms = llvm::cantFail(codegen::parseCpuForms("x86-64-v4"));
  auto program = codegen::lower(**module, (*module)->entry(), target);
  if (!program) {
    if (!isClear(program.takeError()))
      std::abort();
    return 0;
  }
  (void)codegen::emitUnits(program->units, target);
  return 0;
}
