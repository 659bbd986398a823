//===- File.cpp - mapped files and whole-file output ----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/support/File.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace tenon::rt {
namespace {

constexpr size_t hugePage = size_t(2) << 20;

/// Fills `to` from `fd`; false on error or a short file.
bool readFully(int fd, uint8_t *to, size_t size, uint64_t offset) {
  while (size > 0) {
    ssize_t got = pread(fd, to, size, off_t(offset));
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return false;
    to += got, size -= size_t(got), offset += uint64_t(got);
  }
  return true;
}

} // namespace

std::string lastError() {
  char buffer[128] = "unknown error";
#if defined(__GLIBC__) && defined(_GNU_SOURCE)
  return strerror_r(errno, buffer, sizeof(buffer));
#else
  (void)strerror_r(errno, buffer, sizeof(buffer));
  return buffer;
#endif
}

MappedFile::MappedFile(MappedFile &&other) noexcept
    : base(std::exchange(other.base, nullptr)),
      length(std::exchange(other.length, 0)),
      window(std::exchange(other.window, {})) {}

MappedFile &MappedFile::operator=(MappedFile &&other) noexcept {
  std::swap(base, other.base);
  std::swap(length, other.length);
  std::swap(window, other.window);
  return *this;
}

MappedFile::~MappedFile() {
  if (base)
    munmap(base, length);
}

Result<MappedFile> MappedFile::open(const std::string &path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return TN_ERROR("%s: %s", path.c_str(), lastError().c_str());
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    return TN_ERROR("%s: not a regular file", path.c_str());
  }
  Result<MappedFile> file = map(fd, 0, uint64_t(info.st_size));
  ::close(fd);
  if (!file.ok())
    return TN_ERROR("%s: %s", path.c_str(), file.message().c_str());
  return file;
}

Result<MappedFile> MappedFile::map(int fd, uint64_t offset, uint64_t size,
                                   bool huge) {
  MappedFile file;
  if (size == 0)
    return file;
  uint64_t page = uint64_t(sysconf(_SC_PAGESIZE));
  uint64_t lead = huge ? 0 : offset % page;
  file.length = size + (huge ? hugePage : lead);
  void *base = huge ? mmap(nullptr, file.length, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                    : mmap(nullptr, file.length, PROT_READ, MAP_SHARED, fd,
                           off_t(offset - lead));
  if (base == MAP_FAILED)
    return TN_ERROR("cannot map %llu bytes: %s",
                    static_cast<unsigned long long>(size), lastError().c_str());
  file.base = base;
  uint8_t *start = static_cast<uint8_t *>(base) + lead;
  if (huge) {
    // What is left behind the last whole large page lies in small ones: it
    // would take up to 2 MB more than there are bytes.
    start += -reinterpret_cast<uint64_t>(base) % hugePage;
    madvise(start, size / hugePage * hugePage, MADV_HUGEPAGE);
    if (!readFully(fd, start, size, offset))
      return TN_ERROR("cannot read %llu bytes: %s",
                      static_cast<unsigned long long>(size),
                      lastError().c_str());
    mprotect(base, file.length, PROT_READ);
  }
  file.window = {start, size};
  return file;
}

OutputFile::OutputFile(OutputFile &&other) noexcept
    : path(std::move(other.path)), temporary(std::move(other.temporary)),
      fd(std::exchange(other.fd, -1)) {}

OutputFile::~OutputFile() {
  if (fd < 0)
    return;
  ::close(fd);
  unlink(temporary.c_str());
}

Result<std::string> outputPath(const std::string &path) {
  struct stat there;
  if (stat(path.c_str(), &there) != 0)
    return path;
  if (!S_ISREG(there.st_mode))
    return TN_ERROR("%s: cannot write: it is there and no regular file",
                    path.c_str());
  char *real = realpath(path.c_str(), nullptr);
  std::string end = real ? real : path;
  free(real);
  return end;
}

Result<OutputFile> OutputFile::create(const std::string &path) {
  Result<std::string> end = outputPath(path);
  if (!end.ok())
    return end.status();
  OutputFile file;
  file.path = std::move(*end);
  file.temporary = file.path + ".tmpXXXXXX";
  file.fd = mkostemp(file.temporary.data(), O_CLOEXEC);
  if (file.fd < 0)
    return TN_ERROR("%s: cannot write: %s", path.c_str(), lastError().c_str());
  // mkostemp makes the file private; give it what open() would have.
  mode_t mask = umask(0);
  umask(mask);
  fchmod(file.fd, 0666 & ~mask);
  return file;
}

Status OutputFile::write(const void *data, size_t size) {
  const char *from = static_cast<const char *>(data);
  while (size > 0) {
    ssize_t done = ::write(fd, from, size);
    if (done < 0 && errno == EINTR)
      continue;
    if (done <= 0)
      return TN_ERROR("%s: cannot write: %s", path.c_str(),
                      lastError().c_str());
    from += done, size -= size_t(done);
  }
  return {};
}

Status OutputFile::commit() {
  int closed = ::close(std::exchange(fd, -1));
  if (closed != 0 || rename(temporary.c_str(), path.c_str()) != 0) {
    std::string why = lastError();
    unlink(temporary.c_str());
    return TN_ERROR("%s: cannot write: %s", path.c_str(), why.c_str());
  }
  return {};
}

} // namespace tenon::rt
