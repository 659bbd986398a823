//===- Loaded.cpp - programs compiled into this process -----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/artifact/Artifact.h"
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

llvm::Expected<std::unique_ptr<LoadedProgram>>
LoadedProgram::create(const kernel::Program &program,
                      std::shared_ptr<LoadedUnits> units,
                      llvm::StringRef form) {
  auto image = writePlan(program, "");
  if (!image)
    return image.takeError();
  auto chosen = rt::chooseForm({units->forms().data(), units->forms().size()},
                               rt::cpuFeatures(), form.str());
  if (!chosen.ok())
    return userError("{0}", chosen.message());
  std::unique_ptr<LoadedProgram> out(new LoadedProgram);
  out->units = std::move(units);
  out->plan.reset(rt::allocateAligned(image->bytes.size()).release());
  out->weights.reset(rt::allocateAligned(image->weightBytes).release());
  if (!out->plan || !out->weights)
    return userError("not enough memory for {0} bytes of weights",
                     image->weightBytes);
  std::memcpy(out->plan.get(), image->bytes.data(), image->bytes.size());
  if (llvm::Error error =
          storeWeights(program.weights, image->weightOffsets, hostJobs(0),
                       [&](uint64_t offset, llvm::ArrayRef<uint8_t> bytes) {
                         std::memcpy(out->weights.get() + offset, bytes.data(),
                                     bytes.size());
                         return llvm::Error::success();
                       }))
    return error;
  auto plan = rt::Plan::load({out->plan.get(), image->bytes.size()});
  if (!plan.ok())
    return userError("{0}", plan.message());
  auto model = rt::Model::create(
      *plan, {out->weights.get(), size_t(image->weightBytes)}, **chosen);
  if (!model.ok())
    return userError("{0}", model.message());
  out->loaded = std::move(*model);
  return out;
}

} // namespace tenon::codegen
