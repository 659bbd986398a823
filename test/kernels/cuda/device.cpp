//===- device.cpp - compiling and launching CUDA kernels in tests ---------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "device.h"

#include "test/openNvrtc.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <type_traits>

namespace fs = std::filesystem;

namespace test {

namespace {

std::string readFile(const fs::path &path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

//===----------------------------------------------------------------------===//
// NVRTC
//===----------------------------------------------------------------------===//

using NvrtcProgram = struct NvrtcProgramTag *;

struct Nvrtc {
  void *library = nullptr;
  int (*create)(NvrtcProgram *, const char *, const char *, int,
                const char *const *, const char *const *);
  int (*compileProgram)(NvrtcProgram, int, const char *const *);
  int (*destroy)(NvrtcProgram *);
  int (*logSize)(NvrtcProgram, size_t *);
  int (*log)(NvrtcProgram, char *);
  int (*ptxSize)(NvrtcProgram, size_t *);
  int (*ptx)(NvrtcProgram, char *);
  int (*cubinSize)(NvrtcProgram, size_t *);
  int (*cubin)(NvrtcProgram, char *);

  static const Nvrtc &get() {
    static Nvrtc n = open();
    return n;
  }

private:
  template <class F> bool find(F &f, const char *name) {
    f = (F)dlsym(library, name);
    return f != nullptr;
  }

  static Nvrtc open() {
    Nvrtc n = {};
    const char *given = getenv("TENON_NVRTC");
    for (std::string name :
         {std::string(given ? given : ""), std::string(TN_NVRTC),
          std::string("libnvrtc.so.13"), std::string("libnvrtc.so.12"),
          std::string("libnvrtc.so")})
      if (!n.library && !name.empty())
        n.library = tenon::test::openNvrtc(name);
    if (n.library && !(n.find(n.create, "nvrtcCreateProgram") &&
                       n.find(n.compileProgram, "nvrtcCompileProgram") &&
                       n.find(n.destroy, "nvrtcDestroyProgram") &&
                       n.find(n.logSize, "nvrtcGetProgramLogSize") &&
                       n.find(n.log, "nvrtcGetProgramLog") &&
                       n.find(n.ptxSize, "nvrtcGetPTXSize") &&
                       n.find(n.ptx, "nvrtcGetPTX") &&
                       n.find(n.cubinSize, "nvrtcGetCUBINSize") &&
                       n.find(n.cubin, "nvrtcGetCUBIN")))
      n.library = nullptr;
    return n;
  }
};

std::string takeText(NvrtcProgram program, int (*size)(NvrtcProgram, size_t *),
                     int (*get)(NvrtcProgram, char *)) {
  size_t n = 0;
  size(program, &n);
  std::string text(n, '\0');
  if (n)
    get(program, text.data());
  return text;
}

} // namespace

const Headers &kernelHeaders() {
  static Headers headers = [] {
    Headers h;
    fs::path root = TN_KERNEL_ROOT;
    for (const char *folder :
         {"codegen/kernels/common", "codegen/kernels/cuda"})
      for (const auto &entry : fs::directory_iterator(root / folder))
        h[fs::path(entry.path()).lexically_relative(root / "codegen")] =
            readFile(entry.path());
    h["runtime/format/abi.h"] = readFile(root / "runtime/format/abi.h");
    h["stdint.h"] = h["kernels/cuda/stdint.h"];
    return h;
  }();
  return headers;
}

std::string nvrtcMissing() {
  return Nvrtc::get().library ? ""
                              : "libnvrtc not found: install the CUDA Toolkit "
                                "or set TENON_NVRTC";
}

Compiled compile(const std::string &source, const std::string &arch,
                 const Headers &headers) {
  const Nvrtc &n = Nvrtc::get();
  std::vector<const char *> texts, names;
  for (const auto &[name, text] : headers) {
    texts.push_back(text.c_str());
    names.push_back(name.c_str());
  }
  NvrtcProgram program;
  n.create(&program, source.c_str(), "unit.cu", int(texts.size()), texts.data(),
           names.data());
  std::string gpu = "--gpu-architecture=" + arch;
  const char *options[] = {gpu.c_str(), "--std=c++20", "--ptxas-options=-v",
                           "-lineinfo"};
  Compiled result;
  bool binary = arch.compare(0, 3, "sm_") == 0;
  result.ok = n.compileProgram(program, 4, options) == 0;
  result.log = takeText(program, n.logSize, n.log);
  if (result.ok)
    result.image = binary ? takeText(program, n.cubinSize, n.cubin)
                          : takeText(program, n.ptxSize, n.ptx);
  n.destroy(&program);
  return result;
}

//===----------------------------------------------------------------------===//
// The driver
//===----------------------------------------------------------------------===//

namespace {

struct Driver {
#define TN_CUDA(NAME, SYMBOL, PARAMETERS) CUresult(*NAME) PARAMETERS = nullptr;
#include "runtime/device/cuda_api.def"
  std::string missing;
  // What only the emulator has.
  const char *(*lastReport)() = nullptr;
  void (*forgetError)() = nullptr;
  const char *(*counters)() = nullptr;
  void (*clearCounters)() = nullptr;

  /// Absent in drivers before CUDA 12.
  CUresult (*encodeTiled)(void *map, int type, unsigned rank, void *address,
                          const uint64_t *size, const uint64_t *strides,
                          const uint32_t *box, const uint32_t *steps,
                          int interleave, int swizzle, int promotion,
                          int fill) = nullptr;

  static Driver &get() {
    static Driver d = open();
    return d;
  }

  std::string text(CUresult error, const char *what) const {
    if (error == CUDA_SUCCESS)
      return "";
    const char *name = nullptr, *reason = nullptr;
    cuGetErrorName(error, &name);
    cuGetErrorString(error, &reason);
    return std::string(what) + ": " + (name ? name : "error") + ": " +
           (reason ? reason : "");
  }

private:
  static Driver open() {
    Driver d;
    // What an emulator plays, unless told otherwise: it runs all that is
    // tested.
    setenv("TENON_EMULATED_ARCH", "sm_90a", 0);
    const char *given = getenv("TENON_CUDA_DRIVER");
    std::string name = given ? given : "libcuda.so.1";
    void *library = dlopen(name.c_str(), RTLD_NOW);
    if (!library) {
      d.missing = "no CUDA driver: " + std::string(dlerror());
      return d;
    }
#define TN_CUDA(NAME, SYMBOL, PARAMETERS)                                      \
  d.NAME = (decltype(d.NAME))dlsym(library, #SYMBOL);                          \
  if (!d.NAME && d.missing.empty())                                            \
    d.missing = name + " has no " #SYMBOL;
#include "runtime/device/cuda_api.def"
    if (!d.missing.empty())
      return d;
    auto find = [&](auto &f, const char *symbol) {
      f = (std::remove_reference_t<decltype(f)>)dlsym(library, symbol);
    };
    find(d.encodeTiled, "cuTensorMapEncodeTiled");
    find(d.lastReport, "tenon_emulator_last_report");
    find(d.forgetError, "tenon_emulator_reset");
    find(d.counters, "tenon_emulator_counters");
    find(d.clearCounters, "tenon_emulator_clear_counters");
    CUcontext context;
    int count = 0;
    CUresult error = d.cuInit(0);
    if (error == CUDA_SUCCESS)
      error = d.cuDeviceGetCount(&count);
    if (error == CUDA_SUCCESS && count == 0)
      error = CUDA_ERROR_NO_DEVICE;
    if (error == CUDA_SUCCESS)
      error = d.cuDevicePrimaryCtxRetain(&context, 0);
    if (error == CUDA_SUCCESS)
      error = d.cuCtxSetCurrent(context);
    d.missing = d.text(error, name.c_str());
    return d;
  }
};

void append(std::vector<char> &bytes, const void *data, size_t n) {
  bytes.insert(bytes.end(), (const char *)data, (const char *)data + n);
}

/// A tn::Launch, as common.cuh lays it out.
std::vector<char> packArguments(const LaunchSpec &spec) {
  std::vector<char> bytes;
  for (const DeviceView &v : spec.views) {
    std::vector<int64_t> shape = v.shape, stride = v.stride;
    shape.resize(spec.rank);
    stride.resize(spec.rank);
    append(bytes, &v.data, 8);
    append(bytes, shape.data(), spec.rank * 8);
    append(bytes, stride.data(), spec.rank * 8);
  }
  append(bytes, &spec.scratch, 8);
  std::vector<int64_t> params = spec.params;
  if (params.empty())
    params.push_back(0);
  append(bytes, params.data(), params.size() * 8);
  int64_t noFault = 0;
  append(bytes, &noFault, 8);
  append(bytes, &spec.counters, 8);
  return bytes;
}

struct alignas(64) EncodedMap {
  char opaque[128];
};

CUresult encode(const BulkMap &m, EncodedMap &encoded) {
  constexpr int swizzle128 = 3;
  const Driver &d = Driver::get();
  if (!d.encodeTiled)
    return CUDA_ERROR_NOT_SUPPORTED;
  uint32_t steps[3] = {1, 1, 1};
  return d.encodeTiled(&encoded, m.type, 3, (void *)m.data, m.size,
                       m.strideBytes, m.box, steps, 0, swizzle128, 0, 0);
}

} // namespace

std::string Device::missing() { return Driver::get().missing; }

Device *Device::get() {
  const Driver &d = Driver::get();
  if (!d.missing.empty())
    return nullptr;
  static Device device;
  if (!device.capability) {
    int major = 0, minor = 0;
    d.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                           0);
    d.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                           0);
    device.capability = major * 10 + minor;
  }
  return &device;
}

Buffer Device::allocate(size_t bytes, size_t zeros) {
  const Driver &d = Driver::get();
  Buffer b;
  b.bytes = bytes;
  d.cuMemAlloc(&b.address, bytes ? bytes : 1);
  if (zeros)
    d.cuMemsetD8Async(b.address, 0, zeros, nullptr);
  return b;
}

Buffer Device::upload(const std::vector<char> &data) {
  Buffer b = allocate(data.size(), 0);
  write(b, data);
  return b;
}

void Device::write(const Buffer &buffer, const std::vector<char> &data) {
  const Driver &d = Driver::get();
  if (!data.empty())
    d.cuMemcpyHtoDAsync(buffer.address, data.data(), data.size(), nullptr);
  d.cuStreamSynchronize(nullptr);
}

std::vector<char> Device::download(const Buffer &buffer) {
  const Driver &d = Driver::get();
  std::vector<char> data(buffer.bytes);
  if (buffer.bytes)
    d.cuMemcpyDtoHAsync(data.data(), buffer.address, buffer.bytes, nullptr);
  d.cuStreamSynchronize(nullptr);
  return data;
}

void Device::release(const Buffer &buffer) {
  Driver::get().cuMemFree(buffer.address);
}

bool Device::isEmulated() const { return Driver::get().counters != nullptr; }

std::string Device::takeCounters() {
  const Driver &d = Driver::get();
  std::string text = d.counters();
  d.clearCounters();
  return text;
}

std::string Device::launch(const std::string &image, const std::string &entry,
                           const LaunchSpec &spec) {
  const Driver &d = Driver::get();
  CUmodule module;
  CUresult error =
      d.cuModuleLoadDataEx(&module, image.c_str(), 0, nullptr, nullptr);
  if (error != CUDA_SUCCESS) {
    std::string text = d.text(error, "cuModuleLoadDataEx");
    if (d.forgetError) {
      text += std::string(": ") + d.lastReport();
      d.forgetError();
    }
    return text;
  }
  CUfunction function;
  const char *at = "cuModuleGetFunction";
  error = d.cuModuleGetFunction(&function, module, entry.c_str());
  if (error == CUDA_SUCCESS && spec.sharedBytes > 48 * 1024) {
    at = "cuFuncSetAttribute";
    error = d.cuFuncSetAttribute(
        function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
        int(spec.sharedBytes));
  }
  if (error == CUDA_SUCCESS) {
    at = "cuLaunchKernel";
    std::vector<char> arguments = packArguments(spec);
    std::vector<EncodedMap> maps(spec.maps.size());
    std::vector<void *> parameters = {arguments.data()};
    for (size_t i = 0; i < maps.size() && error == CUDA_SUCCESS; ++i) {
      error = encode(spec.maps[i], maps[i]);
      parameters.push_back(&maps[i]);
    }
    if (error != CUDA_SUCCESS)
      at = "cuTensorMapEncodeTiled";
    else
      error = d.cuLaunchKernel(function, spec.grid.x, spec.grid.y, spec.grid.z,
                               spec.threads, 1, 1, spec.sharedBytes, nullptr,
                               parameters.data(), nullptr);
  }
  if (error == CUDA_SUCCESS) {
    at = "cuStreamSynchronize";
    error = d.cuStreamSynchronize(nullptr);
  }
  std::string text = d.text(error, at);
  if (error != CUDA_SUCCESS && d.forgetError) {
    text += std::string(": ") + d.lastReport();
    d.forgetError();
  }
  d.cuModuleUnload(module);
  return text;
}

} // namespace test
