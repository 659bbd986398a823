//===- Nvrtc.cpp - compiles CUDA units ------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/toolchain/Nvrtc.h"

#include "codegen/toolchain/Cache.h"
#include "codegen/toolchain/Parallel.h"
#include "codegen/toolchain/Resources.h"
#include "ir/support/Diag.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include <atomic>
#include <cstring>
#include <dlfcn.h>

namespace tenon::codegen {

namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

namespace {

using Program = struct _nvrtcProgram *; // NVRTC's own name

/// The functions of NVRTC that are used: name, parameters.
#define TN_NVRTC_API(X)                                                        \
  X(nvrtcVersion, (int *major, int *minor))                                    \
  X(nvrtcGetNumSupportedArchs, (int *count))                                   \
  X(nvrtcGetSupportedArchs, (int *archs))                                      \
  X(nvrtcCreateProgram,                                                        \
    (Program * program, const char *source, const char *name, int numHeaders,  \
     const char *const *headers, const char *const *includeNames))             \
  X(nvrtcDestroyProgram, (Program * program))                                  \
  X(nvrtcCompileProgram,                                                       \
    (Program program, int numOptions, const char *const *options))             \
  X(nvrtcGetProgramLogSize, (Program program, size_t *bytes))                  \
  X(nvrtcGetProgramLog, (Program program, char *text))                         \
  X(nvrtcGetPTXSize, (Program program, size_t *bytes))                         \
  X(nvrtcGetPTX, (Program program, char *text))                                \
  X(nvrtcGetCUBINSize, (Program program, size_t *bytes))                       \
  X(nvrtcGetCUBIN, (Program program, char *code))

/// Flags of every unit; the architecture is added. Divisions and square roots
/// are exact and denormals stay, as on the CPU. A Cfg has members that a kernel
/// does not look at (177), and templates compare what is unsigned with 0 (186).
constexpr llvm::StringLiteral unitFlags[] = {
    "-std=c++20",         "-default-device",        "-ftz=false",
    "-prec-div=true",     "-prec-sqrt=true",        "-fmad=true",
    "--ptxas-options=-v", "-diag-suppress=177,186", "-no-source-include"};

std::vector<std::string> matching(llvm::StringRef folder,
                                  llvm::StringRef prefix) {
  std::vector<std::string> found;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; at != end && !failed;
       at.increment(failed))
    if (path::filename(at->path()).starts_with(prefix))
      found.push_back(at->path());
  llvm::sort(found, [](const std::string &a, const std::string &b) {
    return std::pair(a.size(), a) > std::pair(b.size(), b);
  });
  return found;
}

std::string joined(llvm::StringRef folder, const llvm::Twine &rest) {
  llvm::SmallString<128> out(folder);
  path::append(out, rest);
  return std::string(out);
}

/// Every file that may be NVRTC, likeliest first; a bare name is the loader's.
std::vector<std::string> candidates() {
  using llvm::sys::Process;
  if (auto named = Process::GetEnv("TENON_NVRTC"); named && !named->empty())
    return {*named};
  std::vector<std::string> all;
  auto add = [&](llvm::StringRef folder) {
    llvm::append_range(all, matching(folder, "libnvrtc.so"));
  };
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (auto home = Process::GetEnv(variable); home && !home->empty())
      add(joined(*home, "lib64"));
  add("/usr/local/cuda/lib64");
  for (const char *name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"})
    all.push_back(name);
  auto addPackages = [&](llvm::StringRef environment) {
    for (const std::string &python :
         matching(joined(environment, "lib"), "python3"))
      for (const char *package : {"cu13", "cuda_nvrtc"})
        add(joined(python,
                   llvm::Twine("site-packages/nvidia/") + package + "/lib"));
  };
  if (auto environment = Process::GetEnv("VIRTUAL_ENV");
      environment && !environment->empty())
    addPackages(*environment);
  addPackages(TENON_PYTHON_ENVIRONMENT);
  return all;
}

/// The lines of a log that warn.
std::string warningsOf(llvm::StringRef log) {
  return log.contains("warning") ? log.take_front(4000).rtrim().str() : "";
}

unsigned numberBefore(llvm::StringRef line, llvm::StringRef what) {
  llvm::StringRef head = line.take_front(line.find(what)).rtrim();
  unsigned value = 0;
  bool none = line.find(what) == llvm::StringRef::npos ||
              head.substr(head.rfind(' ') + 1).getAsInteger(10, value);
  return none ? 0 : value;
}

/// Reads what `ptxas -v` says of each kernel.
std::vector<KernelResources> resourcesOf(llvm::StringRef log) {
  std::vector<KernelResources> kernels;
  llvm::SmallVector<llvm::StringRef> lines;
  log.split(lines, '\n');
  for (llvm::StringRef line : lines) {
    constexpr llvm::StringLiteral entry = "Compiling entry function 'tn_unit_";
    if (size_t at = line.find(entry); at != llvm::StringRef::npos) {
      KernelResources &kernel = kernels.emplace_back();
      line.substr(at + entry.size()).consumeInteger(10, kernel.unit);
    } else if (!kernels.empty()) {
      KernelResources &kernel = kernels.back();
      kernel.registers += numberBefore(line, " registers");
      kernel.stackBytes += numberBefore(line, " bytes stack frame");
      kernel.spillBytes += numberBefore(line, " bytes spill stores");
      kernel.sharedBytes += numberBefore(line, " bytes smem");
    }
  }
  return kernels;
}

std::string cacheKey(const Source &source, const GpuArch &arch,
                     llvm::StringRef compiler) {
  llvm::SmallVector<llvm::StringRef> parts{compiler, headersHash()};
  parts.append(std::begin(unitFlags), std::end(unitFlags));
  parts.append({arch.name, source.text});
  return Cache::key(parts);
}

/// An object as a file of the cache: three lengths, then cubin, PTX and log.
std::string packed(llvm::StringRef cubin, llvm::StringRef ptx,
                   llvm::StringRef log) {
  std::string out;
  for (llvm::StringRef part : {cubin, ptx, log}) {
    uint64_t size = part.size();
    out.append(reinterpret_cast<const char *>(&size), sizeof(size));
  }
  return (out + cubin + ptx + log).str();
}

std::optional<DeviceObject> unpacked(llvm::StringRef file,
                                     const GpuArch &arch) {
  uint64_t sizes[3];
  if (file.size() < sizeof(sizes))
    return std::nullopt;
  std::memcpy(sizes, file.data(), sizeof(sizes));
  llvm::StringRef rest = file.drop_front(sizeof(sizes)), parts[3];
  for (unsigned i = 0; i < 3; ++i) {
    if (sizes[i] > rest.size())
      return std::nullopt;
    parts[i] = rest.take_front(sizes[i]);
    rest = rest.drop_front(sizes[i]);
  }
  return DeviceObject{&arch, parts[0].str(), parts[1].str(), parts[2].str(),
                      resourcesOf(parts[2])};
}

/// The embedded headers by the names that units include them with.
struct HeaderTexts {
  std::vector<std::string> names, texts;
  std::vector<const char *> nameList, textList;

  HeaderTexts() {
    for (const Resource &resource : headerResources()) {
      llvm::StringRef name = resource.path;
      if (name.starts_with("kernels/cpu/"))
        continue;
      names.push_back(name == "kernels/cuda/stdint.h" ? "stdint.h"
                                                      : name.str());
      texts.push_back(resource.contents().str());
    }
    for (const std::string &name : names)
      nameList.push_back(name.c_str());
    for (const std::string &text : texts)
      textList.push_back(text.c_str());
  }
};

const HeaderTexts &headerTexts() {
  static const HeaderTexts texts;
  return texts;
}

} // namespace

struct Nvrtc::Api {
#define TN_FUNCTION(name, parameters) int(*name) parameters = nullptr;
  TN_NVRTC_API(TN_FUNCTION)
#undef TN_FUNCTION
};

llvm::Error Nvrtc::load(llvm::StringRef file) {
  auto made = std::make_shared<Api>();
  // A part that it loads when it compiles, by name alone. The packages' copies
  // lie beside it, where the loader does not look; so it is there already.
  if (llvm::StringRef folder = path::parent_path(file); !folder.empty())
    for (const std::string &part : matching(folder, "libnvrtc-builtins.so"))
      dlopen(part.c_str(), RTLD_NOW | RTLD_LOCAL);
  // Never closed: it would lose memory of its own.
  void *library = dlopen(file.str().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return userError("{0}", dlerror());
#define TN_FUNCTION(name, parameters)                                          \
  made->name = reinterpret_cast<int(*) parameters>(dlsym(library, #name));     \
  if (!made->name)                                                             \
    return userError("{0}: no function {1}: too old", file, #name);
  TN_NVRTC_API(TN_FUNCTION)
#undef TN_FUNCTION
  int major = 0, minor = 0;
  made->nvrtcVersion(&major, &minor);
  // Device code needs __grid_constant__ and C++20.
  if (major < 12)
    return userError("{0}: NVRTC {1}.{2} is too old, 12.0 is needed", file,
                     major, minor);
  api = std::move(made);
  id = llvm::formatv("NVRTC {0}.{1}", major, minor);
  return llvm::Error::success();
}

llvm::Expected<Nvrtc> Nvrtc::find() {
  Nvrtc found;
  std::string why;
  for (const std::string &candidate : candidates()) {
    llvm::Error error = found.load(candidate);
    if (!error)
      return found;
    why += "\n  " + llvm::toString(std::move(error));
  }
  return userError(
      "no NVRTC found, which compiles CUDA units: install the CUDA Toolkit, or "
      "`pip install nvidia-cuda-nvrtc` in a virtual environment, or name "
      "libnvrtc.so in $TENON_NVRTC; tried:{0}",
      why);
}

llvm::Error Nvrtc::checkArchs(llvm::ArrayRef<const GpuArch *> archs) const {
  int count = 0;
  api->nvrtcGetNumSupportedArchs(&count);
  std::vector<int> known(std::max(count, 0));
  api->nvrtcGetSupportedArchs(known.data());
  for (const GpuArch *arch : archs) {
    if (llvm::is_contained(known, int(arch->number)))
      continue;
    std::string list;
    for (int number : known)
      list += llvm::formatv("{0}sm_{1}", list.empty() ? "" : ", ", number);
    return userError("{0} cannot compile for {1}; it knows {2}", id, arch->name,
                     list);
  }
  return llvm::Error::success();
}

llvm::Expected<DeviceObject> Nvrtc::compileOne(const Source &source,
                                               const GpuArch &arch) const {
  const HeaderTexts &headers = headerTexts();
  Program program = nullptr;
  if (api->nvrtcCreateProgram(&program, source.text.c_str(),
                              source.name.c_str(), int(headers.nameList.size()),
                              headers.textList.data(),
                              headers.nameList.data()) != 0)
    return userError("{0} cannot begin with {1}", id, source.name);
  std::string archFlag = "-arch=" + arch.name.str();
  std::vector<const char *> flags;
  for (llvm::StringRef flag : unitFlags)
    flags.push_back(flag.data());
  flags.push_back(archFlag.c_str());
  int code = api->nvrtcCompileProgram(program, int(flags.size()), flags.data());
  auto text = [&](auto getSize, auto get) {
    size_t size = 0;
    getSize(program, &size);
    std::string out(size, '\0');
    if (size != 0)
      get(program, out.data());
    return out;
  };
  std::string log = text(api->nvrtcGetProgramLogSize, api->nvrtcGetProgramLog);
  log.resize(std::strlen(log.c_str()));
  DeviceObject object;
  object.arch = &arch;
  if (code == 0) {
    object.cubin = text(api->nvrtcGetCUBINSize, api->nvrtcGetCUBIN);
    object.ptx = text(api->nvrtcGetPTXSize, api->nvrtcGetPTX);
    object.ptx.resize(std::strlen(object.ptx.c_str()));
    object.log = log;
    object.kernels = resourcesOf(log);
  }
  api->nvrtcDestroyProgram(&program);
  if (code != 0)
    return userError("{0} failed on {1} for {2}:\n{3}", id, source.name,
                     arch.name, llvm::StringRef(log).take_front(4000).rtrim());
  if (std::string warnings = warningsOf(log); !warnings.empty())
    return userError("{0} warns of {1} for {2}:\n{3}", id, source.name,
                     arch.name, warnings);
  return object;
}

llvm::Expected<DeviceObjects>
Nvrtc::compile(llvm::ArrayRef<Source> sources,
               llvm::ArrayRef<const GpuArch *> archs,
               const ToolchainOptions &options) const {
  if (llvm::Error error = checkArchs(archs))
    return error;
  if (!options.keepSources.empty()) {
    if (std::error_code failed = fs::create_directories(options.keepSources))
      return userError("{0}: cannot make a folder: {1}", options.keepSources,
                       failed.message());
    if (llvm::Error error = writeHeaders(options.keepSources))
      return error;
  }
  Cache cache(options.cacheFolder);
  auto folder = cache.workFolder();
  if (!folder)
    return folder.takeError();
  struct Job {
    const Source *source;
    const GpuArch *arch;
  };
  std::vector<Job> jobs;
  for (const Source &source : sources)
    for (const GpuArch *arch : archs)
      jobs.push_back({&source, arch});
  DeviceObjects result;
  result.objects.resize(jobs.size());
  std::atomic<unsigned> compiled{0};
  auto work = [&](size_t i) -> llvm::Error {
    const Job &job = jobs[i];
    std::string key = cacheKey(*job.source, *job.arch, id);
    std::string file = folder->file(llvm::formatv("{0}.gpu", i).str());
    if (cache.fetch(key, file))
      if (auto buffer = llvm::MemoryBuffer::getFile(file))
        if (auto object = unpacked((*buffer)->getBuffer(), *job.arch)) {
          result.objects[i] = std::move(*object);
          return llvm::Error::success();
        }
    auto object = compileOne(*job.source, *job.arch);
    if (!object)
      return object.takeError();
    ++compiled;
    llvm::sys::fs::remove(file); // it may be a link into the cache
    if (llvm::Error error =
            writeFile(file, packed(object->cubin, object->ptx, object->log)))
      return error;
    cache.store(key, file);
    result.objects[i] = std::move(*object);
    return llvm::Error::success();
  };
  for (const Source &source : sources)
    if (!options.keepSources.empty())
      if (llvm::Error error =
              writeFile(joined(options.keepSources, source.name), source.text))
        return error;
  if (llvm::Error error =
          parallelFor(jobs.size(), hostJobs(options.jobs), work))
    return error;
  result.compiled = compiled;
  cache.prune();
  return result;
}

} // namespace tenon::codegen
