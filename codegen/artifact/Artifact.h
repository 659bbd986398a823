//===- Artifact.h - executables and shared libraries from a program -----===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_CODEGEN_ARTIFACT_ARTIFACT_H
#define TENON_CODEGEN_ARTIFACT_ARTIFACT_H

/// \file
/// The last stages: units are compiled (stage *objects*), linked with the
/// runtime, and the plan and weights are appended (stage *artifact*). For tests
/// and tenon-run there is a variant that stays in this process.

#include "codegen/Codegen.h"
#include "codegen/toolchain/HostCxx.h"
#include "codegen/toolchain/Nvrtc.h"
#include "runtime/Model.h"
#include "llvm/Support/JSON.h"
#include <memory>
#include <optional>

namespace tenon::codegen {

enum class ArtifactKind { Executable, SharedLibrary };

struct ArtifactOptions {
  ArtifactKind kind = ArtifactKind::Executable;
  ToolchainOptions toolchain;
  /// What --info shows: the model's hash, flags, and so on. The compiler's
  /// version and the code's size are added.
  llvm::json::Object manifest;
  /// GPU architectures; needed when sources are for CUDA.
  std::vector<const GpuArch *> archs;
  /// An .npz for --selftest, as rt::Payload describes it; may be empty.
  llvm::ArrayRef<uint8_t> golden;
  /// A tokenizer's table (codegen/tokenizer); may be empty.
  llvm::ArrayRef<uint8_t> tokenizer;
};

/// What was built, for the summary.
struct ArtifactReport {
  uint64_t fileBytes = 0, weightBytes = 0, codeBytes = 0;
  unsigned numSources = 0, compiled = 0;
  double compileSeconds = 0, linkSeconds = 0, weightSeconds = 0;
  /// Why nothing compiled is kept for the next time; empty where it is.
  std::string cacheProblem;
  /// CUDA: what the units take of a GPU, for each architecture.
  std::vector<std::pair<const GpuArch *, KernelResources>> kernels;
};

/// Builds \p program, which is planned, with its \p sources (from emitUnits)
/// into the artifact \p out, which appears complete or not at all. A shared
/// library gets its C header beside it: "libmodel.h" for "libmodel.so". Weights
/// stream from the model's file; memory stays small at any size.
llvm::Expected<ArtifactReport> buildArtifact(const kernel::Program &program,
                                             llvm::ArrayRef<Source> sources,
                                             const ArtifactOptions &options,
                                             llvm::StringRef out);

/// Compiled units, loaded into this process.
class LoadedUnits {
public:
  static llvm::Expected<std::shared_ptr<LoadedUnits>>
  compile(llvm::ArrayRef<Source> sources, const ToolchainOptions &options);
  LoadedUnits(const LoadedUnits &) = delete;
  ~LoadedUnits();

  /// The forms of the units, best first.
  llvm::ArrayRef<tn_form> forms() const { return allForms; }

private:
  LoadedUnits() = default;
  void *handle = nullptr;
  llvm::ArrayRef<tn_form> allForms;
};

/// Units compiled for GPUs: the section of an artifact that holds them.
struct DeviceCode {
  static llvm::Expected<std::shared_ptr<DeviceCode>>
  compile(llvm::ArrayRef<Source> sources, llvm::ArrayRef<const GpuArch *> archs,
          unsigned numUnits, const ToolchainOptions &options);
  std::vector<uint8_t> bytes;
};

/// A program with its units, ready for rt::Session.
class LoadedProgram {
public:
  /// \p units hold those of \p program: emitted from its list of units, which
  /// several programs may share. \p form: as --cpu of an artifact.
  static llvm::Expected<std::unique_ptr<LoadedProgram>>
  create(const kernel::Program &program, std::shared_ptr<LoadedUnits> units,
         llvm::StringRef form = "");
  static llvm::Expected<std::unique_ptr<LoadedProgram>>
  createForGpu(const kernel::Program &program,
               std::shared_ptr<DeviceCode> code);

  const rt::Model &model() const { return *loaded; }

private:
  LoadedProgram() = default;
  llvm::Expected<rt::Plan> loadPlan(const kernel::Program &program);
  rt::Bytes weightBytes() const { return {weights.get(), numWeightBytes}; }
  struct Free {
    void operator()(uint8_t *memory) const { std::free(memory); }
  };
  std::shared_ptr<LoadedUnits> units;
  std::shared_ptr<DeviceCode> code;
  std::unique_ptr<uint8_t, Free> plan, weights;
  size_t numWeightBytes = 0;
  std::optional<rt::Model> loaded;
};

/// Checks the artifact at \p path: structure, plan, checksums of plan and
/// weights.
llvm::Error verifyArtifact(llvm::StringRef path);

} // namespace tenon::codegen

#endif // TENON_CODEGEN_ARTIFACT_ARTIFACT_H
