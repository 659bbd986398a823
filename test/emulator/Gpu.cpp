//===- Gpu.cpp - the emulator, loaded as a driver ------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/emulator/Gpu.h"

#include "test/openNvrtc.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

using namespace tenon::test;

namespace {

void *symbol(void *library, const char *name) {
  void *found = dlsym(library, name);
  if (!found) {
    std::fprintf(stderr, "the emulator has no %s\n", name);
    std::exit(1);
  }
  return found;
}

std::string readFile(const std::string &path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void *nvrtc() {
  static void *library = [] {
    for (const char *name :
         {TN_NVRTC, "libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"})
      if (void *found = openNvrtc(name))
        return found;
    return static_cast<void *>(nullptr);
  }();
  return library;
}

std::string compile(const std::string &source, const std::string &arch) {
  using Program = void *;
  void *library = nvrtc();
  auto create = reinterpret_cast<int (*)(Program *, const char *, const char *,
                                         int, const char **, const char **)>(
      symbol(library, "nvrtcCreateProgram"));
  auto build = reinterpret_cast<int (*)(Program, int, const char **)>(
      symbol(library, "nvrtcCompileProgram"));
  auto bytes = reinterpret_cast<int (*)(Program, size_t *)>(
      symbol(library, "nvrtcGetPTXSize"));
  auto text = reinterpret_cast<int (*)(Program, char *)>(
      symbol(library, "nvrtcGetPTX"));
  auto destroy = reinterpret_cast<int (*)(Program *)>(
      symbol(library, "nvrtcDestroyProgram"));
  // Its own headers lie beside it: in the toolkit's or the packages' folder.
  Dl_info where = {};
  dladdr(reinterpret_cast<void *>(create), &where);
  std::string include =
      "-I" +
      (std::filesystem::canonical(where.dli_fname).parent_path() / "../include")
          .string();
  Program program;
  create(&program, source.c_str(), "kernels.cu", 0, nullptr, nullptr);
  std::string target = "--gpu-architecture=" + arch;
  const char *options[] = {target.c_str(), "-std=c++17", "-lineinfo",
                           include.c_str()};
  if (build(program, 4, options) != 0) {
    std::fprintf(stderr, "NVRTC does not compile the kernels\n");
    std::exit(1);
  }
  size_t size = 0;
  bytes(program, &size);
  std::string ptx(size, 0);
  text(program, ptx.data());
  destroy(&program);
  ptx.resize(std::strlen(ptx.c_str()));
  return ptx;
}

} // namespace

Gpu::Gpu() {
  void *library = dlopen(TN_EMULATOR_PATH, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(1);
  }
#define TN_TEST_FIND(name, parameters)                                         \
  name = reinterpret_cast<CUresult(*) parameters>(symbol(library, #name));
  TN_TEST_DRIVER(TN_TEST_FIND)
#undef TN_TEST_FIND
  using Text = const char *(*)();
  using Action = void (*)();
  lastReport =
      reinterpret_cast<Text>(symbol(library, "tenon_emulator_last_report"));
  lastFault =
      reinterpret_cast<Text>(symbol(library, "tenon_emulator_last_fault"));
  counters = reinterpret_cast<Text>(symbol(library, "tenon_emulator_counters"));
  clearCounters = reinterpret_cast<Action>(
      symbol(library, "tenon_emulator_clear_counters"));
  reset = reinterpret_cast<Action>(symbol(library, "tenon_emulator_reset"));
  if (cuInit(0) != CUDA_SUCCESS)
    std::exit(1);
}

Gpu &Gpu::get() {
  static Gpu gpu;
  return gpu;
}

std::string tenon::test::ptxOf(const std::string &name, bool byNvrtc,
                               const std::string &arch) {
  std::string stem = std::string(TN_EMULATOR_KERNELS) + "/" + name;
  if (!byNvrtc)
    return readFile(stem + ".ptx");
  return nvrtc() ? compile(readFile(stem + ".cu"), arch) : std::string();
}

Module::Module(const std::string &ptx) {
  char log[4096] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER,
                            CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, reinterpret_cast<void *>(sizeof(log))};
  CUresult result =
      Gpu::get().cuModuleLoadDataEx(&handle, ptx.c_str(), 2, options, values);
  if (result != CUDA_SUCCESS)
    error = *log ? log : "error " + std::to_string(result);
}

Module::~Module() {
  if (handle)
    Gpu::get().cuModuleUnload(handle);
}

CUfunction Module::function(const char *name) {
  CUfunction found = nullptr;
  Gpu::get().cuModuleGetFunction(&found, handle, name);
  return found;
}

void KernelTest::SetUp() {
  Gpu::get().reset();
  static std::map<std::pair<std::string, bool>, std::unique_ptr<Module>> loaded;
  std::unique_ptr<Module> &mine = loaded[{file, GetParam()}];
  if (!mine) {
    std::string ptx = ptxOf(file, GetParam());
    if (ptx.empty())
      GTEST_SKIP() << "no NVRTC";
    mine = std::make_unique<Module>(ptx);
  }
  module = mine.get();
  ASSERT_EQ(module->error, "");
}
