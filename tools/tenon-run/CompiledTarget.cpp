//===- CompiledTarget.cpp - runs compiled code for this CPU
//--------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "CompiledTarget.h"

#include "codegen/Codegen.h"
#include "ir/support/Diag.h"
#include "runtime/Session.h"
#include "runtime/device/Cuda.h"

using namespace tenon;
using namespace tenon::run;

void CompiledTarget::prepare(llvm::ArrayRef<const ir::Module *> modules) {
  compiled.clear();
  options.maxContext = maxContext;
  std::vector<kernel::Program *> programs;
  auto lower = [&](const ir::Module &module, const ir::Func &func) {
    Compiled &entry = compiled[&func];
    llvm::Expected<kernel::Program> program =
        codegen::lower(module, func, options);
    if (!program) {
      entry.error = llvm::toString(program.takeError());
      entry.lowered = false;
      return;
    }
    entry.program = std::move(*program);
    programs.push_back(&entry.program);
  };
  for (const ir::Module *module : modules)
    for (const auto &func : module->funcs)
      lower(*module, *func);
  if (llvm::Error error = load(codegen::shareUnits(programs))) {
    // Every function has the compiler's complaint.
    std::string message = llvm::toString(std::move(error));
    for (auto &[func, entry] : compiled)
      entry.error = message;
  }
}

/// Compiles \p units and makes the programs ready.
llvm::Error CompiledTarget::load(llvm::ArrayRef<kernel::Unit> units) {
  std::vector<codegen::Source> sources = codegen::emitUnits(units, options);
  std::shared_ptr<codegen::LoadedUnits> onCpu;
  std::shared_ptr<codegen::DeviceCode> onGpu;
  if (options.target == codegen::Target::Cpu) {
    auto loaded = codegen::LoadedUnits::compile(sources, {});
    if (!loaded)
      return loaded.takeError();
    onCpu = *loaded;
  } else {
    auto archs = codegen::parseGpuArchs("sm_80");
    if (!archs)
      return archs.takeError();
    auto code = codegen::DeviceCode::compile(sources, *archs, units.size(), {});
    if (!code)
      return code.takeError();
    onGpu = *code;
  }
  for (auto &[func, entry] : compiled) {
    if (!entry.error.empty())
      continue;
    auto loaded =
        onCpu ? codegen::LoadedProgram::create(entry.program, onCpu)
              : codegen::LoadedProgram::createForGpu(entry.program, onGpu);
    if (loaded)
      entry.loaded = std::move(*loaded);
    else
      entry.error = llvm::toString(loaded.takeError());
  }
  return llvm::Error::success();
}

namespace {

llvm::Error toError(const rt::Status &status) {
  return status.ok() ? llvm::Error::success()
                     : userError("{0}", status.message());
}

} // namespace

llvm::Expected<std::vector<ir::Tensor>>
CompiledTarget::run(const ir::Module &module, const ir::Func &func,
                    llvm::ArrayRef<ir::Tensor> inputs) {
  if (!compiled.count(&func))
    prepare({&module});
  Compiled &entry = compiled[&func];
  if (!entry.lowered)
    return llvm::make_error<NoKernel>(entry.error);
  if (!entry.error.empty())
    return userError("{0}", entry.error);
  rt::CudaOptions cuda;
  cuda.emulated = true;
  auto device = options.target == codegen::Target::Cpu
                    ? rt::createCpuDevice(entry.loaded->model(), 2)
                    : rt::createCudaDevice(entry.loaded->model(), cuda);
  if (!device.ok())
    return userError("{0}", device.message());
  std::unique_ptr<rt::Session> session =
      rt::Session::create(entry.loaded->model(), std::move(*device));
  rt::Session &s = *session;
  for (const auto &[i, input] : llvm::enumerate(inputs))
    if (llvm::Error error = toError(s.setInput(
            i, rt::DType(input.element), input.shape, input.bytes.data())))
      return error;
  if (llvm::Error error = toError(s.run()))
    return error;
  std::vector<ir::Tensor> outputs;
  for (size_t i = 0; i < entry.program.outputs.size(); ++i) {
    const rt::OutputValue &value = s.output(i);
    ir::Tensor tensor(ir::ElementType(value.dtype),
                      llvm::ArrayRef(value.shape.data(), value.shape.size()));
    // Of nothing there is no pointer, which memcpy may not be given.
    if (size_t size = std::min<size_t>(tensor.bytes.size(), value.bytes))
      std::memcpy(tensor.bytes.data(), value.data, size);
    outputs.push_back(std::move(tensor));
  }
  return outputs;
}
