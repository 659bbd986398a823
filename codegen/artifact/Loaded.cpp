//===- Loaded.cpp - programs compiled into this process -----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/artifact/Artifact.h"
#include "codegen/artifact/DeviceCode.h"
#include "codegen/artifact/PlanWriter.h"
#include "codegen/artifact/WeightStore.h"
#include "codegen/toolchain/Parallel.h"
#include "ir/support/Diag.h"
#include "runtime/Cpu.h"
#include "runtime/Npz.h"
#include <cstring>
#include <dlfcn.h>

namespace tenon::codegen {

llvm::Expected<std::shared_ptr<LoadedUnits>>
LoadedUnits::compile(llvm::ArrayRef<Source> sources,
                     const ToolchainOptions &options) {
  auto compiler = HostCxx::find();
  if (!compiler)
    return compiler.takeError();
  auto objects = compiler->compile(sources, options);
  if (!objects)
    return objects.takeError();
  std::string library = objects->folder.file("units.so");
  std::vector<std::string> arguments = objects->files;
  arguments.insert(arguments.end(), {"-shared", "-Wl,-Bsymbolic"});
  if (llvm::Error error = compiler->link(arguments, library, objects->folder))
    return error;
  std::shared_ptr<LoadedUnits> units(new LoadedUnits);
  units->handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!units->handle)
    return userError("cannot load the compiled units: {0}", dlerror());
  auto forms =
      static_cast<const tn_form *const *>(dlsym(units->handle, "tenon_forms"));
  auto count =
      static_cast<const uint32_t *>(dlsym(units->handle, "tenon_num_forms"));
  if (!forms || !count)
    return userError("the compiled units have no table of forms");
  units->allForms = {*forms, *count};
  return units;
}

LoadedUnits::~LoadedUnits() {
  if (handle)
    dlclose(handle);
}

llvm::Expected<std::shared_ptr<DeviceCode>>
DeviceCode::compile(llvm::ArrayRef<Source> sources,
                    llvm::ArrayRef<const GpuArch *> archs, unsigned numUnits,
                    const ToolchainOptions &options) {
  std::vector<Source> chosen;
  for (const Source &source : sources)
    if (source.target == Target::Cuda)
      chosen.push_back(source);
  auto compiler = Nvrtc::find();
  if (!compiler)
    return compiler.takeError();
  auto objects = compiler->compile(chosen, archs, options);
  if (!objects)
    return objects.takeError();
  auto code = std::make_shared<DeviceCode>();
  code->bytes = writeDeviceCode(chosen, objects->objects, numUnits);
  return code;
}

/// Writes plan and weights into memory of this object's own.
llvm::Expected<rt::Plan>
LoadedProgram::loadPlan(const kernel::Program &program) {
  auto image = writePlan(program, "");
  if (!image)
    return image.takeError();
  numWeightBytes = image->weightBytes;
  plan.reset(rt::allocateAligned(image->bytes.size()).release());
  weights.reset(rt::allocateAligned(image->weightBytes).release());
  if (!plan || !weights)
    return userError("not enough memory for {0} bytes of weights",
                     image->weightBytes);
  std::memcpy(plan.get(), image->bytes.data(), image->bytes.size());
  if (llvm::Error error = storeWeights(
          program.weights, image->weightOffsets, hostJobs(0),
          [&](uint64_t offset, llvm::ArrayRef<uint8_t> bytes) {
            std::memcpy(weights.get() + offset, bytes.data(), bytes.size());
            return llvm::Error::success();
          }))
    return error;
  auto loaded = rt::Plan::load({plan.get(), image->bytes.size()});
  if (!loaded.ok())
    return userError("{0}", loaded.message());
  return *loaded;
}

llvm::Expected<std::unique_ptr<LoadedProgram>>
LoadedProgram::create(const kernel::Program &program,
                      std::shared_ptr<LoadedUnits> units,
                      llvm::StringRef form) {
  auto chosen = rt::chooseForm({units->forms().data(), units->forms().size()},
                               rt::cpuFeatures(), form.str());
  if (!chosen.ok())
    return userError("{0}", chosen.message());
  std::unique_ptr<LoadedProgram> out(new LoadedProgram);
  out->units = std::move(units);
  auto plan = out->loadPlan(program);
  if (!plan)
    return plan.takeError();
  auto model = rt::Model::create(*plan, out->weightBytes(), **chosen);
  if (!model.ok())
    return userError("{0}", model.message());
  out->loaded = std::move(*model);
  return out;
}

llvm::Expected<std::unique_ptr<LoadedProgram>>
LoadedProgram::createForGpu(const kernel::Program &program,
                            std::shared_ptr<DeviceCode> code) {
  std::unique_ptr<LoadedProgram> out(new LoadedProgram);
  out->code = std::move(code);
  auto plan = out->loadPlan(program);
  if (!plan)
    return plan.takeError();
  auto model = rt::Model::createForGpu(
      *plan, out->weightBytes(),
      {out->code->bytes.data(), out->code->bytes.size()});
  if (!model.ok())
    return userError("{0}", model.message());
  out->loaded = std::move(*model);
  return out;
}

} // namespace tenon::codegen
