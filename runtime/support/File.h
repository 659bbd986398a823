//===- File.h - mapped files and whole-file output ------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_SUPPORT_FILE_H
#define TENON_RUNTIME_SUPPORT_FILE_H

#include "runtime/support/Bytes.h"
#include "runtime/support/Status.h"

#include <string>

namespace tenon::rt {

/// A read-only mapping of a file, or of a part of one.
class MappedFile {
public:
  MappedFile() = default;
  MappedFile(MappedFile &&other) noexcept;
  MappedFile &operator=(MappedFile &&other) noexcept;
  ~MappedFile();

  /// Maps all of `path`, which must be a regular file. Messages begin with
  /// `path`.
  static Result<MappedFile> open(const std::string &path);
  /// Maps [offset, offset + size) of the open file `fd`; `offset` need not be
  /// at a page. With `huge`, the bytes are read into anonymous memory of large
  /// pages instead. `size` must have been checked against the file's.
  static Result<MappedFile> map(int fd, uint64_t offset, uint64_t size,
                                bool huge = false);

  Bytes bytes() const { return window; }

private:
  void *base = nullptr;
  size_t length = 0;
  Bytes window;
};

/// Collects a file beside its final place and moves it there when complete, so
/// that a reader never sees half of it and a failure leaves nothing behind.
class OutputFile {
public:
  OutputFile() = default;
  OutputFile(OutputFile &&other) noexcept;
  OutputFile &operator=(OutputFile &&) = delete;
  ~OutputFile();

  static Result<OutputFile> create(const std::string &path);
  Status write(const void *data, size_t size);
  /// Flushes, and renames to the final path.
  Status commit();

private:
  std::string path, temporary;
  int fd = -1;
};

/// The file that `path` is or will be, at the end of its links. What is there
/// and no file, a device or a pipe, is refused: renaming would replace it.
Result<std::string> outputPath(const std::string &path);

/// "No such file or directory" for the current errno.
std::string lastError();

} // namespace tenon::rt

#endif // TENON_RUNTIME_SUPPORT_FILE_H
