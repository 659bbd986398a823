//===- Cache.cpp - compiled units, kept by content ----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/toolchain/Cache.h"

#include "ir/support/Diag.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/Chrono.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include <chrono>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace tenon::codegen {

namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

namespace {

constexpr llvm::StringLiteral workPrefix = "work-";

std::string joined(llvm::StringRef folder, llvm::StringRef name) {
  llvm::SmallString<128> out(folder);
  path::append(out, name);
  return std::string(out);
}

std::string defaultFolder() {
  if (auto named = llvm::sys::Process::GetEnv("TENON_CACHE_DIR"))
    return *named;
  llvm::SmallString<128> out;
  if (!path::cache_directory(out)) // $XDG_CACHE_HOME or ~/.cache
    return "";
  path::append(out, "tenon");
  return std::string(out);
}

/// Gives \p to the contents of \p from, by a link where that is possible.
std::error_code linkOrCopy(llvm::StringRef from, llvm::StringRef to) {
  if (!fs::create_hard_link(from, to))
    return {};
  return fs::copy_file(from, to);
}

void touch(llvm::StringRef file) {
  int fd;
  if (fs::openFileForReadWrite(file, fd, fs::CD_OpenExisting, fs::OF_None))
    return;
  auto now = std::chrono::time_point_cast<std::chrono::nanoseconds>(
      std::chrono::system_clock::now());
  (void)fs::setLastAccessAndModificationTime(fd, now);
  llvm::sys::Process::SafelyCloseFileDescriptor(fd);
}

/// The open folder \p name, locked; -1 if another process has the lock or has
/// removed the folder. Children do not inherit it.
int lockFolder(const char *name) {
  int fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  struct stat info;
  if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &info) == 0 &&
      info.st_nlink > 0)
    return fd;
  if (fd >= 0)
    close(fd);
  return -1;
}

struct Entry {
  std::string path;
  llvm::sys::TimePoint<> used;
  uint64_t bytes;
};

} // namespace

llvm::Expected<WorkFolder> WorkFolder::create(llvm::StringRef parent) {
  std::error_code failed = fs::create_directories(parent);
  // Until it is locked, another process may take it for one that was left.
  for (unsigned tries = 0; !failed && tries < 100; ++tries) {
    llvm::SmallString<128> made;
    failed =
        fs::createUniqueDirectory(joined(parent, workPrefix.drop_back()), made);
    int lock = failed ? -1 : lockFolder(made.c_str());
    if (lock < 0)
      continue;
    WorkFolder out;
    out.folder = std::string(made);
    out.lock = lock;
    return out;
  }
  return userError("{0}: cannot make a folder: {1}", parent,
                   failed ? failed.message() : "it does not stay");
}

void WorkFolder::removeLeft(llvm::StringRef parent) {
  std::error_code failed;
  for (fs::directory_iterator at(parent, failed), end; at != end && !failed;
       at.increment(failed)) {
    if (!path::filename(at->path()).starts_with(workPrefix))
      continue;
    int lock = lockFolder(at->path().c_str());
    if (lock < 0)
      continue;
    fs::remove_directories(at->path());
    close(lock);
  }
}

WorkFolder::WorkFolder(WorkFolder &&other) noexcept
    : folder(std::exchange(other.folder, "")),
      lock(std::exchange(other.lock, -1)) {}

WorkFolder &WorkFolder::operator=(WorkFolder &&other) noexcept {
  std::swap(folder, other.folder);
  std::swap(lock, other.lock);
  return *this;
}

WorkFolder::~WorkFolder() {
  if (folder.empty())
    return;
  fs::remove_directories(folder);
  close(lock);
}

std::string WorkFolder::file(llvm::StringRef name) const {
  return joined(folder, name);
}

Cache::Cache(llvm::StringRef named)
    : folder(named.empty() ? defaultFolder() : named.str()) {
  if (folder.empty()) {
    why = "there is no home folder for a cache";
    return;
  }
  std::string objects = joined(folder, "objects");
  std::error_code failed = fs::create_directories(objects);
  if (!failed)
    failed = fs::access(objects, fs::AccessMode::Write);
  if (!failed) {
    WorkFolder::removeLeft(folder);
    return;
  }
  why = objects + ": cannot be written: " + failed.message();
  folder.clear();
}

std::string Cache::key(llvm::ArrayRef<llvm::StringRef> parts) {
  llvm::BLAKE3 hasher;
  for (llvm::StringRef part : parts) {
    hasher.update(part);
    hasher.update(llvm::StringRef("\0", 1));
  }
  return llvm::toHex(hasher.final<20>(), /*LowerCase=*/true);
}

llvm::Expected<WorkFolder> Cache::workFolder() const {
  if (!folder.empty())
    return WorkFolder::create(folder);
  llvm::SmallString<128> parent;
  path::system_temp_directory(/*ErasedOnReboot=*/true, parent);
  return WorkFolder::create(parent);
}

std::string Cache::entry(llvm::StringRef key) const {
  llvm::SmallString<128> out(folder);
  path::append(out, "objects", key.take_front(2), key.drop_front(2));
  return std::string(out);
}

bool Cache::fetch(llvm::StringRef key, llvm::StringRef file) const {
  if (folder.empty())
    return false;
  std::string from = entry(key);
  if (linkOrCopy(from, file))
    return false;
  touch(from);
  return true;
}

void Cache::store(llvm::StringRef key, llvm::StringRef file) const {
  if (folder.empty())
    return;
  std::string to = entry(key);
  // A copy of its own under a passing name: links to the caller's file would
  // change with it.
  llvm::SmallString<128> passing;
  if (fs::create_directories(path::parent_path(to)) ||
      fs::createUniqueFile(to + ".%%%%%%%%", passing))
    return;
  if (fs::copy_file(file, passing) || fs::rename(passing, to))
    fs::remove(passing);
}

void Cache::prune(uint64_t limit) const {
  if (folder.empty())
    return;
  std::error_code failed;
  std::vector<Entry> entries;
  uint64_t total = 0;
  for (fs::recursive_directory_iterator at(joined(folder, "objects"), failed),
       end;
       at != end && !failed; at.increment(failed)) {
    auto status = at->status();
    if (!status || status->type() != fs::file_type::regular_file)
      continue;
    entries.push_back(
        {at->path(), status->getLastModificationTime(), status->getSize()});
    total += status->getSize();
  }
  if (total <= limit)
    return;
  llvm::sort(entries,
             [](const Entry &a, const Entry &b) { return a.used < b.used; });
  // Down to three quarters, so that not every compilation prunes.
  for (const Entry &entry : entries) {
    if (total <= limit / 4 * 3)
      break;
    if (!fs::remove(entry.path))
      total -= entry.bytes;
  }
}

} // namespace tenon::codegen
