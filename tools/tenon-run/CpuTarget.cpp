//===- CpuTarget.cpp - runs compiled code for this CPU --------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "CpuTarget.h"

#include "codegen/Codegen.h"
#include "ir/support/Diag.h"
#include "runtime/Session.h"

using namespace tenon;
using namespace tenon::run;

void CpuTarget::compile(const ir::Module &module) {
  compiled.clear();
  current = &module;
  codegen::TargetOptions options;
  options.maxContext = maxContext;
  std::vector<kernel::Program *> programs;
  for (const auto &func : module.funcs) {
    Compiled &entry = compiled[func.get()];
    llvm::Expected<kernel::Program> program =
        codegen::lower(module, *func, options);
    if (!program) {
      entry.error = llvm::toString(program.takeError());
      entry.lowered = false;
      continue;
    }
    entry.program = std::move(*program);
    programs.push_back(&entry.program);
  }
  std::vector<kernel::Unit> shared = codegen::shareUnits(programs);
  llvm::Expected<std::shared_ptr<codegen::LoadedUnits>> units =
      codegen::LoadedUnits::compile(codegen::emitUnits(shared, options), {});
  if (!units) {
    // Every function has the compiler's complaint.
    std::string message = llvm::toString(units.takeError());
    for (auto &[func, entry] : compiled)
      entry.error = message;
    return;
  }
  for (auto &[func, entry] : compiled) {
    if (!entry.error.empty())
      continue;
    auto loaded = codegen::LoadedProgram::create(entry.program, *units);
    if (loaded)
      entry.loaded = std::move(*loaded);
    else
      entry.error = llvm::toString(loaded.takeError());
  }
}

namespace {

llvm::Error toError(const rt::Status &status) {
  return status.ok() ? llvm::Error::success()
                     : userError("{0}", status.message());
}

} // namespace

llvm::Expected<std::vector<ir::Tensor>>
CpuTarget::run(const ir::Module &module, const ir::Func &func,
               llvm::ArrayRef<ir::Tensor> inputs) {
  if (current != &module)
    compile(module);
  Compiled &entry = compiled[&func];
  if (!entry.lowered)
    return llvm::make_error<NoKernel>(entry.error);
  if (!entry.error.empty())
    return userError("{0}", entry.error);
  auto session = rt::Session::create(entry.loaded->model(), /*threads=*/2);
  if (!session.ok())
    return userError("{0}", session.message());
  rt::Session &s = **session;
  for (const auto &[i, input] : llvm::enumerate(inputs))
    if (llvm::Error error =
            toError(s.setInput(i, rt::DType(input.element), input.shape,
                               input.bytes.data())))
      return error;
  if (llvm::Error error = toError(s.run()))
    return error;
  std::vector<ir::Tensor> outputs;
  for (size_t i = 0; i < entry.program.outputs.size(); ++i) {
    const rt::OutputValue &value = s.output(i);
    ir::Tensor tensor(ir::ElementType(value.dtype),
                      llvm::ArrayRef(value.shape.data(), value.shape.size()));
    std::memcpy(tensor.bytes.data(), value.data,
                std::min<size_t>(tensor.bytes.size(), value.bytes));
    outputs.push_back(std::move(tensor));
  }
  return outputs;
}
