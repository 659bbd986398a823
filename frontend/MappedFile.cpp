//===- MappedFile.cpp - read-only mappings of files ----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/MappedFile.h"
#include "ir/support/Diag.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallVector.h"
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace llvm;

namespace tenon::frontend {

namespace {

/// Opens \p name in the folder \p folder without following a link. Not
/// blocking, so that a named pipe cannot make us wait.
int openPart(int folder, StringRef name, int flags) {
  return ::openat(folder, name.str().c_str(),
                  flags | O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

Error systemError() { return userError("{0}", std::strerror(errno)); }

SmallVector<StringRef> partsOf(StringRef path) {
  SmallVector<StringRef> parts;
  path.split(parts, '/', -1, /*KeepEmpty=*/false);
  llvm::erase_if(parts, [](StringRef part) { return part == "."; });
  return parts;
}

/// Whether a part of the way from \p folder on is a link.
bool hasLink(std::string folder, ArrayRef<StringRef> parts) {
  return llvm::any_of(parts, [&](StringRef part) {
    folder += "/" + part.str();
    struct stat status;
    return ::lstat(folder.c_str(), &status) == 0 && S_ISLNK(status.st_mode);
  });
}

Expected<std::string> realPath(const Twine &path) {
  char *real = ::realpath(path.str().c_str(), nullptr);
  if (!real)
    return systemError();
  std::string out = real;
  ::free(real);
  return out;
}

/// Of the real path NAME/snapshots/REVISION/... in a model cache NAME/blobs;
/// "" of any other.
std::string blobsOf(StringRef folder) {
  auto [name, rest] = folder.rsplit("/snapshots/");
  return rest.empty() ? "" : name.str() + "/blobs";
}

} // namespace

Expected<std::shared_ptr<const MappedFile>> MappedFile::mapDescriptor(int fd) {
  struct stat status;
  if (::fstat(fd, &status) != 0)
    return systemError();
  if (S_ISDIR(status.st_mode))
    return userError("is a directory, not a file");
  if (!S_ISREG(status.st_mode))
    return userError("is not a regular file");
  size_t size = status.st_size;
  const uint8_t *data = nullptr;
  if (size != 0) {
    void *map = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED)
      return systemError();
    data = static_cast<const uint8_t *>(map);
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(data, size));
}

Expected<std::shared_ptr<const MappedFile>> MappedFile::open(StringRef path) {
  int fd = ::open(path.str().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0)
    return systemError();
  auto close = make_scope_exit([&] { ::close(fd); });
  return mapDescriptor(fd);
}

Expected<std::shared_ptr<const MappedFile>>
MappedFile::openBeneath(StringRef folder, StringRef relative,
                        bool followLinks) {
  if (relative.empty())
    return userError("the location is empty");
  if (relative.contains('\0'))
    return userError("the location holds a zero byte");
  if (relative.starts_with("/"))
    return userError("the location is an absolute path; external data must lie "
                     "in the model's folder");
  SmallVector<StringRef> parts = partsOf(relative);
  if (llvm::is_contained(parts, ".."))
    return userError("the location leaves the model's folder; external data "
                     "must lie in it");
  if (parts.empty())
    return userError("is a directory, not a file");

  std::string whole = folder.empty() ? "." : folder.str();
  if (hasLink(whole, parts))
    return openLinked(whole, relative, followLinks);
  return openParts(whole, parts);
}

/// Where \p relative leads through links, if it may.
Expected<std::shared_ptr<const MappedFile>>
MappedFile::openLinked(StringRef folder, StringRef relative, bool followLinks) {
  Expected<std::string> root = realPath(folder);
  if (!root)
    return root.takeError();
  Expected<std::string> target = realPath(*root + "/" + relative.str());
  if (!target)
    return target.takeError();
  if (followLinks)
    return open(*target);
  for (const std::string &allowed : {*root, blobsOf(*root)}) {
    // What was a folder a moment ago may be a link now: no part is followed.
    StringRef rest = *target;
    if (allowed.empty() || !rest.consume_front(allowed) ||
        !rest.starts_with("/"))
      continue;
    return openParts(allowed, partsOf(rest));
  }
  return userError(
      "is a symbolic link to '{0}', outside of the model's folder; "
      "--follow-links allows it",
      *target);
}

Expected<std::shared_ptr<const MappedFile>>
MappedFile::openParts(StringRef folder, ArrayRef<StringRef> parts) {
  int fd = ::open(folder.str().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return systemError();
  auto close = make_scope_exit([&] { ::close(fd); });
  for (size_t i = 0; i < parts.size(); ++i) {
    bool last = i + 1 == parts.size();
    int next = openPart(fd, parts[i], last ? 0 : O_DIRECTORY);
    if (next < 0)
      return systemError();
    ::close(fd);
    fd = next;
  }
  return mapDescriptor(fd);
}

MappedFile::~MappedFile() {
  if (size != 0)
    ::munmap(const_cast<uint8_t *>(data), size);
}

} // namespace tenon::frontend
