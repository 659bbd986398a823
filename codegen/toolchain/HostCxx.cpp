//===- HostCxx.cpp - the host's C++ compiler ----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/toolchain/HostCxx.h"

#include "codegen/toolchain/Parallel.h"
#include "codegen/toolchain/Resources.h"
#include "ir/support/Diag.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

namespace tenon::codegen {

namespace {

/// Flags of every unit. Kernels do their own vectorising and rounding; what may
/// be contracted is said by the form's flags and the headers.
constexpr llvm::StringLiteral unitFlags[] = {"-std=c++20",
                                             "-O3",
                                             "-fPIC",
                                             "-fno-exceptions",
                                             "-fno-rtti",
                                             "-fno-math-errno",
                                             "-fno-trapping-math",
                                             "-fno-stack-protector",
                                             "-fno-asynchronous-unwind-tables",
                                             "-ffunction-sections",
                                             "-g0",
                                             "-w"};

std::vector<std::string> flagsOf(const Source &source) {
  std::vector<std::string> flags(std::begin(unitFlags), std::end(unitFlags));
  if (source.form)
    flags.insert(flags.end(), source.form->flags.begin(),
                 source.form->flags.end());
  return flags;
}

/// The key of what compiling \p source gives.
std::string cacheKey(const Source &source, llvm::StringRef compiler) {
  std::vector<std::string> flags = flagsOf(source);
  llvm::SmallVector<llvm::StringRef> parts{compiler, headersHash()};
  parts.append(flags.begin(), flags.end());
  parts.push_back(source.text);
  return Cache::key(parts);
}

/// The first lines of a compiler's output: enough to see what is wrong.
std::string excerpt(llvm::StringRef file) {
  auto buffer = llvm::MemoryBuffer::getFile(file);
  if (!buffer)
    return "";
  llvm::StringRef text = (*buffer)->getBuffer().take_front(4000).rtrim();
  return text.empty() ? "" : ":\n" + text.str();
}

} // namespace

llvm::Error writeFile(llvm::StringRef path, llvm::StringRef text) {
  std::error_code failed;
  llvm::raw_fd_ostream os(path, failed);
  if (!failed) {
    os << text;
    os.close();
    failed = os.error();
    os.clear_error();
  }
  return failed ? userError("{0}: cannot write: {1}", path, failed.message())
                : llvm::Error::success();
}

llvm::Expected<HostCxx> HostCxx::find() {
  HostCxx found;
  std::string tried;
  std::vector<std::string> candidates;
  if (auto named = llvm::sys::Process::GetEnv("CXX"); named && !named->empty())
    candidates = {*named};
  else
    candidates = {TENON_HOST_CXX, "c++", "g++", "clang++"};
  for (const std::string &candidate : candidates) {
    llvm::SmallVector<llvm::StringRef, 4> words;
    llvm::StringRef(candidate).split(words, ' ', -1, /*KeepEmpty=*/false);
    if (words.empty())
      continue;
    auto path = llvm::sys::findProgramByName(words.front());
    if (!path) {
      tried += (tried.empty() ? "" : ", ") + words.front().str();
      continue;
    }
    found.program = *path;
    for (llvm::StringRef word : llvm::drop_begin(words))
      found.leading.push_back(word.str());
    llvm::SmallString<128> real;
    llvm::sys::fs::file_status status;
    if (llvm::sys::fs::real_path(found.program, real) ||
        llvm::sys::fs::status(real, status))
      return userError("{0}: cannot use this C++ compiler", found.program);
    found.id = llvm::formatv(
        "{0} {1} {2} {3}", candidate, real, status.getSize(),
        status.getLastModificationTime().time_since_epoch().count());
    return found;
  }
  return userError(
      "no C++ compiler found (tried {0}): install g++ (on Debian and Ubuntu: "
      "apt install g++) or clang, or set CXX",
      tried);
}

llvm::Error HostCxx::run(llvm::ArrayRef<std::string> arguments,
                         llvm::StringRef what, const WorkFolder &folder) const {
  llvm::SmallVector<llvm::StringRef, 32> all = {program};
  all.append(leading.begin(), leading.end());
  all.append(arguments.begin(), arguments.end());
  std::string log = folder.file((what + ".log").str());
  llvm::sys::fs::remove(log); // redirecting does not cut a file off
  std::optional<llvm::StringRef> redirects[] = {
      llvm::StringRef(""), llvm::StringRef(log), llvm::StringRef(log)};
  std::string problem;
  int code = llvm::sys::ExecuteAndWait(program, all, std::nullopt, redirects, 0,
                                       0, &problem);
  if (code == 0)
    return llvm::Error::success();
  if (code < 0)
    return userError("cannot run {0}: {1}", program, problem);
  return userError("{0} failed on {1} with exit code {2}{3}", program, what,
                   code, excerpt(log));
}

llvm::Expected<Objects>
HostCxx::compile(llvm::ArrayRef<Source> sources,
                 const ToolchainOptions &options) const {
  Cache cache(options.cacheFolder);
  auto folder = cache.workFolder();
  if (!folder)
    return folder.takeError();
  Objects objects{std::move(*folder), {}, 0, cache.problem().str()};
  const WorkFolder &work = objects.folder;
  std::vector<std::string> keys;
  std::vector<size_t> missing;
  for (const auto &[i, source] : llvm::enumerate(sources)) {
    objects.files.push_back(work.file(source.name + ".o"));
    keys.push_back(cacheKey(source, id));
    if (!cache.fetch(keys[i], objects.files[i]))
      missing.push_back(i);
  }
  if (!options.keepSources.empty()) {
    if (std::error_code failed =
            llvm::sys::fs::create_directories(options.keepSources))
      return userError("{0}: cannot make a folder: {1}", options.keepSources,
                       failed.message());
    if (llvm::Error error = writeHeaders(options.keepSources))
      return error;
    for (const Source &source : sources) {
      llvm::SmallString<128> path(options.keepSources);
      llvm::sys::path::append(path, source.name);
      if (llvm::Error error = writeFile(path, source.text))
        return error;
    }
  }
  if (missing.empty())
    return objects;
  if (llvm::Error error = writeHeaders(work.path()))
    return error;
  // The longest first: they would otherwise be waited for at the end.
  llvm::stable_sort(missing, [&](size_t a, size_t b) {
    return sources[a].text.size() > sources[b].text.size();
  });
  auto compileOne = [&](size_t i) -> llvm::Error {
    const Source &source = sources[i];
    std::string path = work.file(source.name);
    if (llvm::Error error = writeFile(path, source.text))
      return error;
    std::vector<std::string> arguments = flagsOf(source);
    arguments.insert(arguments.end(),
                     {"-c", "-I", work.path().str(),
                      "-ffile-prefix-map=" + work.path().str() + "=.", path,
                      "-o", objects.files[i]});
    if (llvm::Error error = run(arguments, source.name, work))
      return error;
    cache.store(keys[i], objects.files[i]);
    return llvm::Error::success();
  };
  if (llvm::Error error =
          parallelFor(missing.size(), hostJobs(options.jobs),
                      [&](size_t n) { return compileOne(missing[n]); }))
    return error;
  objects.compiled = missing.size();
  cache.prune();
  return objects;
}

llvm::Error HostCxx::link(llvm::ArrayRef<std::string> arguments,
                          llvm::StringRef out, const WorkFolder &folder) const {
  std::vector<std::string> all(arguments.begin(), arguments.end());
  all.insert(all.end(), {"-o", out.str()});
  return run(all, "the link", folder);
}

} // namespace tenon::codegen
