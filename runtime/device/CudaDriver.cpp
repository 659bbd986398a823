//===- CudaDriver.cpp - the CUDA driver, found when it is needed ----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/device/CudaDriver.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <unistd.h>
#include <vector>

namespace tenon::rt {
namespace {

constexpr char emulatorName[] = "libtenon_emulator.so";
/// CUDA 12.1 brought kernel parameters beyond 4 KB and what device code uses.
constexpr int oldestDriver = 12010;

std::string folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

std::string thisProgram() {
  char path[4096];
  ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
  return length > 0 ? std::string(path, size_t(length)) : std::string();
}

bool exists(const std::string &path) { return access(path.c_str(), R_OK) == 0; }

/// Beside this program, then beside `tenon` wherever $PATH finds it.
std::vector<std::string> emulatorFolders() {
  std::vector<std::string> folders = {folderOf(thisProgram())};
  const char *variable = std::getenv("PATH");
  // Not with a stream: it would bring all locales into every artifact.
  std::string list = variable ? variable : "";
  for (size_t begin = 0, end = 0; begin < list.size(); begin = end + 1) {
    end = std::min(list.find(':', begin), list.size());
    if (std::string folder = list.substr(begin, end - begin);
        exists(folder + "/tenon"))
      folders.push_back(folder);
  }
  return folders;
}

Result<std::string> findEmulator() {
  const char *named = std::getenv("TENON_CUDA_DRIVER");
  if (named && *named)
    return std::string(named);
  for (const std::string &folder : emulatorFolders())
    for (const char *place : {"/", "/../lib/"})
      if (std::string path = folder + place + emulatorName; exists(path))
        return path;
  return TN_ERROR("no emulator found: %s lies neither beside this program nor "
                  "beside `tenon` in $PATH; name it in $TENON_CUDA_DRIVER",
                  emulatorName);
}

void tell(const char *variable, const std::string &value) {
  if (!value.empty())
    setenv(variable, value.c_str(), /*overwrite=*/1);
}

} // namespace

CudaDriver::~CudaDriver() {
  // The library stays: it has threads and handlers of its own.
}

Status CudaDriver::load(const std::string &path) {
  file = path;
  library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return TN_ERROR("no CUDA driver: %s; install NVIDIA's driver, or run with "
                    "--device=emulated",
                    dlerror());
#define TN_CUDA(name, symbol, parameters)                                      \
  name = reinterpret_cast<CUresult(*) parameters>(dlsym(library, #symbol));    \
  if (!name)                                                                   \
    return TN_ERROR("%s: no function %s: the driver is too old, CUDA 12.1 is " \
                    "needed",                                                  \
                    path.c_str(), #symbol);
#include "runtime/device/cuda_api.def"
  lastReport = reinterpret_cast<const char *(*)()>(
      dlsym(library, "tenon_emulator_last_report"));
  return {};
}

Status CudaDriver::check(CUresult result, const std::string &what) const {
  if (result == CUDA_SUCCESS)
    return {};
  const char *name = nullptr, *text = nullptr;
  cuGetErrorName(result, &name);
  cuGetErrorString(result, &text);
  std::string report = lastReport ? lastReport() : "";
  return TN_ERROR("%s: %s (%s)%s%s", what.c_str(),
                  text ? text : "unknown error", name ? name : "?",
                  report.empty() ? "" : "\n", report.c_str());
}

Result<std::shared_ptr<const CudaDriver>>
CudaDriver::open(const CudaOptions &options) {
  std::string path = "libcuda.so.1";
  if (options.emulated) {
    Result<std::string> found = findEmulator();
    if (!found.ok())
      return found.status();
    path = *found;
    tell("TENON_EMULATOR_ARCH", options.emulatedArch);
    tell("TENON_EMULATOR_REPORT", options.emulatorReport);
  }
  std::shared_ptr<CudaDriver> driver(new CudaDriver);
  if (Status status = driver->load(path); !status.ok())
    return status;
  if (Status status =
          driver->check(driver->cuInit(0), path + ": cannot be initialised");
      !status.ok())
    return status;
  int version = 0;
  driver->cuDriverGetVersion(&version);
  if (version < oldestDriver)
    return TN_ERROR("%s: the driver is for CUDA %d.%d, %d.%d is needed",
                    path.c_str(), version / 1000, version % 1000 / 10,
                    oldestDriver / 1000, oldestDriver % 1000 / 10);
  return std::shared_ptr<const CudaDriver>(std::move(driver));
}

} // namespace tenon::rt
