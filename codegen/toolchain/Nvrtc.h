//===- Nvrtc.h - compiles CUDA units --------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_CODEGEN_TOOLCHAIN_NVRTC_H
#define TENON_CODEGEN_TOOLCHAIN_NVRTC_H

#include "codegen/toolchain/HostCxx.h"
#include <memory>

namespace tenon::codegen {

/// What a kernel takes of a GPU, as the compiler reports it.
struct KernelResources {
  unsigned unit = 0;
  unsigned registers = 0, stackBytes = 0, spillBytes = 0, sharedBytes = 0;
};

/// One source compiled for one architecture.
struct DeviceObject {
  const GpuArch *arch = nullptr;
  std::string cubin, ptx;
  std::string log; ///< the compiler's, with each kernel's resources
  std::vector<KernelResources> kernels;
};

/// All sources for all architectures, source-major.
struct DeviceObjects {
  std::vector<DeviceObject> objects;
  unsigned compiled = 0; ///< how many were not in the cache
};

/// NVIDIA's run-time compiler: a shared library, loaded when it is asked for.
/// Needs no GPU and no headers but the embedded ones.
class Nvrtc {
public:
  /// $TENON_NVRTC, else the CUDA Toolkit's in $CUDA_HOME, $CUDA_PATH or
  /// /usr/local/cuda, else the loader's, else that of the Python package
  /// nvidia-cuda-nvrtc in $VIRTUAL_ENV or in the environment that this program
  /// was built with. The error says where it looked.
  static llvm::Expected<Nvrtc> find();

  /// Compiles \p sources (those of Target::Cuda) for \p archs, several at the
  /// same time, or takes them from the cache. A warning is an error.
  llvm::Expected<DeviceObjects>
  compile(llvm::ArrayRef<Source> sources,
          llvm::ArrayRef<const GpuArch *> archs,
          const ToolchainOptions &options) const;

  /// "NVRTC 13.0": for the manifest and the cache's keys.
  const std::string &identity() const { return id; }

private:
  struct Api;
  Nvrtc() = default;
  llvm::Error load(llvm::StringRef path);
  llvm::Error checkArchs(llvm::ArrayRef<const GpuArch *> archs) const;
  llvm::Expected<DeviceObject> compileOne(const Source &source,
                                          const GpuArch &arch) const;

  std::shared_ptr<Api> api;
  std::string id;
};

} // namespace tenon::codegen

#endif // TENON_CODEGEN_TOOLCHAIN_NVRTC_H
