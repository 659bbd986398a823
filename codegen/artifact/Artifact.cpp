//===- Artifact.cpp - executables and shared libraries from a program ---===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/artifact/Artifact.h"

#include "codegen/artifact/DeviceCode.h"
#include "codegen/artifact/ElfPayload.h"
#include "codegen/artifact/Header.h"
#include "codegen/artifact/PlanWriter.h"
#include "codegen/artifact/WeightStore.h"
#include "codegen/toolchain/Parallel.h"
#include "codegen/toolchain/Resources.h"
#include "ir/support/Diag.h"
#include "runtime/Payload.h"
#include "runtime/support/Checksum.h"
#include "runtime/support/File.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

namespace tenon::codegen {

namespace fs = llvm::sys::fs;

namespace {

/// Seconds since it was made, or since it was last asked.
class Stopwatch {
public:
  double lap() {
    auto now = std::chrono::steady_clock::now();
    std::chrono::duration<double> passed = now - last;
    last = now;
    return passed.count();
  }

private:
  std::chrono::steady_clock::time_point last = std::chrono::steady_clock::now();
};

/// Only the C interface is visible: two models in one process must not meet.
constexpr llvm::StringLiteral exportedSymbols =
    "{ global: tenon_*; local: *; };\n";

/// Links \p objects and the runtime into \p out.
llvm::Error linkArtifact(const HostCxx &compiler, const Objects &objects,
                         const ArtifactOptions &options, llvm::StringRef out) {
  std::string archive = objects.folder.file("libtenon_runtime.a");
  if (llvm::Error error = writeFile(archive, runtimeArchive()))
    return error;
  std::vector<std::string> arguments = objects.files;
  if (options.kind == ArtifactKind::SharedLibrary) {
    std::string script = objects.folder.file("exported.map");
    if (llvm::Error error = writeFile(script, exportedSymbols))
      return error;
    // The archive's C interface is what nobody refers to yet.
    arguments.insert(arguments.end(),
                     {"-shared", "-Wl,-u,tenon_open",
                      "-Wl,--version-script=" + script, "-Wl,-Bsymbolic"});
  } else {
    arguments.push_back("-pie");
  }
  arguments.push_back(archive);
  if (!options.tokenizer.empty()) {
    // Nobody but the weak reference in the runtime knows the tokenizer.
    arguments.push_back("-Wl,-u,tenon_make_text_codec");
    for (const Resource &library : textLibraries()) {
      std::string path = objects.folder.file(library.path);
      if (llvm::Error error = writeFile(path, library.contents()))
        return error;
      arguments.push_back(path);
    }
    arguments.push_back(archive); // the tokenizer uses the runtime
  }
  arguments.insert(arguments.end(), {"-pthread", "-ldl", "-Wl,--gc-sections",
                                     "-Wl,--strip-debug", "-Wl,--build-id=none",
                                     "-static-libgcc"});
  llvm::StringRef sanitizers = TENON_RUNTIME_SANITIZE;
  if (!sanitizers.empty())
    arguments.push_back(("-fsanitize=" + sanitizers).str());
  // Some systems have no static libstdc++; the shared one serves as well.
  std::vector<std::string> independent = arguments;
  independent.push_back("-static-libstdc++");
  llvm::Error error = compiler.link(independent, out, objects.folder);
  if (!error)
    return error;
  if (llvm::Error again = compiler.link(arguments, out, objects.folder)) {
    llvm::consumeError(std::move(again));
    return error;
  }
  llvm::consumeError(std::move(error));
  return llvm::Error::success();
}

llvm::Error fromStatus(const rt::Status &status) {
  return status.ok() ? llvm::Error::success()
                     : userError("{0}", status.message());
}

/// Appends plan, weights, tokenizer, golden answers and GPU code to the linked
/// file.
llvm::Error appendPayload(ElfPayload &file, const kernel::Program &program,
                          PlanImage &plan, const ArtifactOptions &options,
                          llvm::ArrayRef<uint8_t> deviceCode) {
  unsigned jobs = hostJobs(options.toolchain.jobs);
  uint64_t planAt = file.add(rt::planSection, plan.bytes.size(), 64);
  std::pair<const char *, llvm::ArrayRef<uint8_t>> extras[] = {
      {rt::goldenSection, options.golden},
      {rt::textSection, options.tokenizer},
      {rt::deviceCodeSection, deviceCode}};
  for (auto [name, bytes] : extras) {
    if (bytes.empty())
      continue;
    if (llvm::Error error = file.write(file.add(name, bytes.size(), 64), bytes))
      return error;
  }
  uint64_t weightsAt =
      file.add(rt::weightsSection, plan.weightBytes, rt::pageAlignment);
  if (llvm::Error error = file.finish())
    return error;
  auto write = [&](uint64_t offset, llvm::ArrayRef<uint8_t> bytes) {
    return file.write(weightsAt + offset, bytes);
  };
  if (llvm::Error error =
          storeWeights(program.weights, plan.weightOffsets, jobs, write))
    return error;
  // Of what lies in the file, whoever wrote it.
  auto stored =
      rt::MappedFile::map(file.descriptor(), weightsAt, plan.weightBytes);
  if (!stored.ok())
    return fromStatus(stored.status());
  plan.setWeightChecksum(rt::blockChecksum(stored->bytes(), jobs));
  return file.write(planAt, plan.bytes);
}

/// A file in the folder of \p final that becomes \p final when it is complete.
/// Until then it has no name, so that nothing is left of it whatever ends this
/// process; on file systems without such files it has one beside \p final.
class Unfinished {
public:
  static llvm::Expected<Unfinished> create(llvm::StringRef final) {
    Unfinished file(final);
    llvm::StringRef folder = llvm::sys::path::parent_path(final);
    file.fd = ::open(folder.empty() ? "." : folder.str().c_str(),
                     O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    file.path = "/proc/self/fd/" + std::to_string(file.fd);
    if (file.fd >= 0 && fs::exists(file.path))
      return file;
    file.close();
    if (llvm::Error error = file.name())
      return error;
    return file;
  }
  Unfinished(Unfinished &&other)
      : path(std::move(other.path)), final(std::move(other.final)),
        fd(std::exchange(other.fd, -1)),
        isNamed(std::exchange(other.isNamed, false)) {}
  ~Unfinished() {
    close();
    if (!isNamed)
      return;
    llvm::sys::DontRemoveFileOnSignal(path);
    fs::remove(path);
  }

  /// Makes it what the linker wrote to \p other, with its permissions.
  llvm::Error copyOf(llvm::StringRef other) {
    llvm::ErrorOr<fs::perms> mode = fs::getPermissions(other);
    std::error_code failed = mode.getError();
    if (!failed)
      failed = fs::copy_file(other, path);
    if (!failed)
      failed = fs::setPermissions(path, *mode);
    return failed ? cannotWrite(failed) : llvm::Error::success();
  }

  llvm::Error finish() {
    if (fd >= 0) {
      std::string unnamed = path;
      if (llvm::Error error = name())
        return error;
      fs::remove(path); // a link replaces nothing
      if (::linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, path.c_str(),
                   AT_SYMLINK_FOLLOW) != 0)
        return cannotWrite(llvm::errnoAsErrorCode());
    }
    if (std::error_code failed = fs::rename(path, final))
      return cannotWrite(failed);
    llvm::sys::DontRemoveFileOnSignal(path);
    isNamed = false;
    return llvm::Error::success();
  }

  /// What opens it.
  std::string path;

private:
  explicit Unfinished(llvm::StringRef final) : final(final) {}

  llvm::Error cannotWrite(std::error_code failed) const {
    return userError("{0}: cannot write: {1}", final, failed.message());
  }
  /// Takes a name that nothing has yet.
  llvm::Error name() {
    llvm::SmallString<128> unique;
    if (std::error_code failed =
            fs::createUniqueFile(final + ".tmp%%%%%%%%", unique))
      return cannotWrite(failed);
    path = unique.str().str();
    isNamed = true;
    llvm::sys::RemoveFileOnSignal(path);
    return llvm::Error::success();
  }
  void close() {
    if (fd >= 0)
      ::close(fd);
    fd = -1;
  }

  std::string final;
  int fd = -1;
  bool isNamed = false;
};

/// Bytes of machine code that each CPU form costs.
llvm::json::Object formSizes(llvm::ArrayRef<Source> sources,
                             const Objects &objects) {
  llvm::json::Object sizes;
  for (const auto &[source, file] : llvm::zip_equal(sources, objects.files)) {
    if (!source.form)
      continue;
    if (auto object = ElfPayload::open(file)) {
      int64_t before = sizes.getInteger(source.form->name).value_or(0);
      sizes[source.form->name] = before + int64_t(object->codeBytes());
    } else {
      llvm::consumeError(object.takeError());
    }
  }
  return sizes;
}

/// Compiles the sources for CUDA into the section of GPU code; empty when there
/// are none.
llvm::Expected<std::vector<uint8_t>>
compileForGpus(llvm::ArrayRef<Source> sources, const ArtifactOptions &options,
               unsigned numUnits, ArtifactReport &report) {
  if (sources.empty())
    return std::vector<uint8_t>();
  auto compiler = Nvrtc::find();
  if (!compiler)
    return compiler.takeError();
  auto objects = compiler->compile(sources, options.archs, options.toolchain);
  if (!objects)
    return objects.takeError();
  report.compiled += objects->compiled;
  for (const DeviceObject &object : objects->objects)
    for (const KernelResources &kernel : object.kernels)
      report.kernels.push_back({object.arch, kernel});
  return writeDeviceCode(sources, objects->objects, numUnits);
}

std::string manifestText(const ArtifactOptions &options, uint64_t codeBytes,
                         llvm::json::Object forms) {
  llvm::json::Object manifest = options.manifest;
  manifest["tenon"] = TENON_VERSION;
  manifest["code_bytes"] = int64_t(codeBytes);
  manifest["form_bytes"] = std::move(forms);
  std::string text;
  llvm::raw_string_ostream os(text);
  os << llvm::json::Value(std::move(manifest));
  return text;
}

} // namespace

llvm::Expected<ArtifactReport> buildArtifact(const kernel::Program &program,
                                             llvm::ArrayRef<Source> sources,
                                             const ArtifactOptions &options,
                                             llvm::StringRef out) {
  Stopwatch watch;
  ArtifactReport report;
  auto compiler = HostCxx::find();
  if (!compiler)
    return compiler.takeError();
  // First, so that a folder that cannot be written to is known at once.
  auto target = rt::outputPath(out.str());
  if (!target.ok())
    return fromStatus(target.status());
  auto artifact = Unfinished::create(*target);
  if (!artifact)
    return artifact.takeError();
  std::vector<Source> hostSources, deviceSources;
  for (const Source &source : sources)
    (source.target == Target::Cuda ? deviceSources : hostSources)
        .push_back(source);
  auto deviceCode =
      compileForGpus(deviceSources, options, program.units.size(), report);
  if (!deviceCode)
    return deviceCode.takeError();
  auto objects = compiler->compile(hostSources, options.toolchain);
  if (!objects)
    return objects.takeError();
  report.numSources =
      hostSources.size() + deviceSources.size() * options.archs.size();
  report.compiled += objects->compiled;
  report.cacheProblem = objects->cacheProblem;
  report.compileSeconds = watch.lap();
  std::string linked = objects->folder.file("linked");
  if (llvm::Error error = linkArtifact(*compiler, *objects, options, linked))
    return error;
  if (llvm::Error error = artifact->copyOf(linked))
    return error;
  report.linkSeconds = watch.lap();
  auto file = ElfPayload::open(artifact->path);
  if (!file)
    return file.takeError();
  report.codeBytes = file->codeBytes();
  auto plan =
      writePlan(program, manifestText(options, report.codeBytes,
                                      formSizes(hostSources, *objects)));
  if (!plan)
    return plan.takeError();
  if (llvm::Error error =
          appendPayload(*file, program, *plan, options, *deviceCode))
    return error;
  report.fileBytes = file->fileBytes();
  report.weightBytes = plan->weightBytes;
  report.weightSeconds = watch.lap();
  if (options.kind == ArtifactKind::SharedLibrary)
    if (llvm::Error error = writeModelHeader(program, out))
      return error;
  if (llvm::Error error = artifact->finish())
    return error;
  return report;
}

llvm::Error verifyArtifact(llvm::StringRef path) {
  auto payload = rt::Payload::open(path.str());
  rt::Status status =
      payload.ok() ? payload->verifyWeights(hostJobs(0)) : payload.status();
  return withPrefix(fromStatus(status), path + ": error: ");
}

} // namespace tenon::codegen
