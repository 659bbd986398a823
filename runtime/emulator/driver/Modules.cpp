//===- Modules.cpp - modules and functions -------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/emulator/driver/Driver.h"
#include "runtime/support/Status.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

using namespace tenon;
using namespace tenon::emu;

namespace {

// CUjit_option numbers that are looked at.
constexpr int errorLog = 5, errorLogBytes = 6;

/// Where cuModuleLoadDataEx's caller wants to read what went wrong.
struct ErrorLog {
  char *text = nullptr;
  size_t bytes = 0;

  ErrorLog(unsigned count, CUjit_option *options, void **values) {
    for (unsigned i = 0; options && values && i != count; ++i) {
      if (static_cast<int>(options[i]) == errorLog)
        text = static_cast<char *>(values[i]);
      if (static_cast<int>(options[i]) == errorLogBytes)
        bytes = static_cast<size_t>(reinterpret_cast<uintptr_t>(values[i]));
    }
  }
  void write(const std::string &message) const {
    if (!text || bytes == 0) {
      say(message);
      return;
    }
    size_t count = std::min(message.size(), bytes - 1);
    std::memcpy(text, message.data(), count);
    text[count] = 0;
  }
};

bool isBinary(const char *image) {
  return std::memcmp(image,
                     "\x7f"
                     "ELF",
                     4) == 0 ||
         std::memcmp(image, "\x50\xed\x55\xba", 4) == 0;
}

/// "" if the device runs PTX for `target`, else why not.
std::string refuseTarget(std::string_view target) {
  const DeviceModel &device = Driver::get().device();
  std::string text(target.substr(std::min<size_t>(3, target.size())));
  char *end;
  unsigned long arch = std::strtoul(text.c_str(), &end, 10);
  bool specific = *end == 'a' || *end == 'f';
  if (arch <= device.arch && (!specific || arch == device.arch))
    return "";
  return rt::format("PTX for %s does not run on the emulated sm_%u: set "
                    "TENON_EMULATED_ARCH",
                    rt::printable(std::string(target)).c_str(), device.arch);
}

CUresult loadModule(CUmodule *module, const void *data, const ErrorLog &log) {
  if (CUresult error = checkDriver())
    return error;
  if (!module || !data)
    return CUDA_ERROR_INVALID_VALUE;
  const auto *text = static_cast<const char *>(data);
  if (isBinary(text)) {
    log.write("the emulator runs PTX; this module holds machine code");
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  std::lock_guard<std::recursive_mutex> lock(Driver::get().mutex);
  rt::Result<std::unique_ptr<Image>> image =
      load(text, Driver::get().device().arch);
  if (!image.ok()) {
    log.write(image.message());
    return CUDA_ERROR_INVALID_PTX;
  }
  auto made = std::make_unique<CUmod_st>();
  made->image = std::move(*image);
  if (std::string why = refuseTarget(made->image->module.target);
      !why.empty()) {
    log.write(why);
    unload(*made->image);
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  *module = made.release();
  return CUDA_SUCCESS;
}

} // namespace

TN_EXPORT CUresult cuModuleLoadDataEx(CUmodule *module, const void *image,
                                      unsigned count, CUjit_option *options,
                                      void **values) {
  return loadModule(module, image, ErrorLog(count, options, values));
}

TN_EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  return loadModule(module, image, ErrorLog(0, nullptr, nullptr));
}

TN_EXPORT CUresult cuModuleUnload(CUmodule module) {
  if (!module)
    return CUDA_ERROR_INVALID_HANDLE;
  std::lock_guard<std::recursive_mutex> lock(Driver::get().mutex);
  unload(*module->image);
  delete module;
  return CUDA_SUCCESS;
}

TN_EXPORT CUresult cuModuleGetFunction(CUfunction *function, CUmodule module,
                                       const char *name) {
  if (!function || !module || !name)
    return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard<std::recursive_mutex> lock(Driver::get().mutex);
  auto found = module->image->byName.find(name);
  if (found == module->image->byName.end() || !found->second->entry)
    return CUDA_ERROR_NOT_FOUND;
  for (const auto &known : module->functions)
    if (known->code == found->second) {
      *function = known.get();
      return CUDA_SUCCESS;
    }
  auto made = std::make_unique<CUfunc_st>();
  made->module = module;
  made->code = found->second;
  *function = made.get();
  module->functions.push_back(std::move(made));
  return CUDA_SUCCESS;
}

TN_EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr *pointer, size_t *bytes,
                                        CUmodule module, const char *name) {
  if (!module || !name)
    return CUDA_ERROR_INVALID_VALUE;
  auto found = module->image->globals.find(name);
  if (found == module->image->globals.end() ||
      found->second.space == ptx::Space::Shared)
    return CUDA_ERROR_NOT_FOUND;
  if (pointer)
    *pointer = found->second.address;
  if (bytes)
    *bytes = found->second.bytes;
  return CUDA_SUCCESS;
}

TN_EXPORT CUresult cuFuncGetAttribute(int *value, CUfunction_attribute which,
                                      CUfunction function) {
  if (!value || !function)
    return CUDA_ERROR_INVALID_VALUE;
  const Code &code = *function->code;
  const Image &image = *function->module->image;
  switch (which) {
  case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    *value = code.source->maxThreads ? static_cast<int>(code.source->maxThreads)
                                     : 1024;
    break;
  case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
    *value = static_cast<int>(code.staticShared - sharedStart);
    break;
  case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    *value = 0;
    break;
  case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
    *value = static_cast<int>(code.localBytes);
    break;
  case CU_FUNC_ATTRIBUTE_NUM_REGS: // PTX has not assigned any
    *value = 64;
    break;
  case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    *value =
        static_cast<int>(image.module.isaMajor * 10 + image.module.isaMinor);
    break;
  case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
    *value = static_cast<int>(image.arch);
    break;
  case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
    *value = function->maxDynamicShared;
    break;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

TN_EXPORT CUresult cuFuncSetAttribute(CUfunction function,
                                      CUfunction_attribute which, int value) {
  if (!function)
    return CUDA_ERROR_INVALID_HANDLE;
  if (which != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
    return CUDA_SUCCESS; // carveouts and cluster hints
  auto most = static_cast<int64_t>(Driver::get().device().sharedPerBlock) -
              static_cast<int64_t>(function->code->staticShared - sharedStart);
  if (value < 0 || value > most)
    return CUDA_ERROR_INVALID_VALUE;
  function->maxDynamicShared = value;
  return CUDA_SUCCESS;
}

TN_EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(
    int *blocks, CUfunction function, int blockSize, size_t dynamicShared) {
  if (!blocks || !function || blockSize <= 0)
    return CUDA_ERROR_INVALID_VALUE;
  size_t shared =
      function->code->staticShared - sharedStart + dynamicShared + sharedStart;
  size_t byShared = Driver::get().device().sharedPerMultiprocessor / shared;
  size_t byThreads = 2048 / ((static_cast<size_t>(blockSize) + 31) / 32 * 32);
  *blocks = static_cast<int>(std::min({byShared, byThreads, size_t(32)}));
  return CUDA_SUCCESS;
}
