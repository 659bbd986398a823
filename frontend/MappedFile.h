//===- MappedFile.h - read-only mappings of files ------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_FRONTEND_MAPPEDFILE_H
#define TENON_FRONTEND_MAPPEDFILE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <memory>

namespace tenon::frontend {

/// A whole regular file, mapped read-only. Its pages belong to the page cache,
/// so weights that are only looked at cost no memory of the compiler's own.
class MappedFile {
public:
  /// Maps the file at \p path (a path that the user gave: links are followed).
  static llvm::Expected<std::shared_ptr<const MappedFile>>
  open(llvm::StringRef path);

  /// Maps `folder/relative` where \p relative comes from a model and is not
  /// trusted: it must stay inside the folder. Links are followed to what lies
  /// in it too and, where the folder is a snapshot in a model cache as Hugging
  /// Face's (`NAME/snapshots/REVISION/...`), in that cache's `NAME/blobs`; to
  /// elsewhere with \p followLinks alone. Only regular files are opened.
  static llvm::Expected<std::shared_ptr<const MappedFile>>
  openBeneath(llvm::StringRef folder, llvm::StringRef relative,
              bool followLinks = false);

  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  llvm::ArrayRef<uint8_t> bytes() const { return {data, size}; }

private:
  MappedFile(const uint8_t *data, size_t size) : data(data), size(size) {}
  static llvm::Expected<std::shared_ptr<const MappedFile>>
  mapDescriptor(int fd);
  static llvm::Expected<std::shared_ptr<const MappedFile>>
  openParts(llvm::StringRef folder, llvm::ArrayRef<llvm::StringRef> parts);
  static llvm::Expected<std::shared_ptr<const MappedFile>>
  openLinked(llvm::StringRef folder, llvm::StringRef relative,
             bool followLinks);
  const uint8_t *data;
  size_t size;
};

} // namespace tenon::frontend

#endif // TENON_FRONTEND_MAPPEDFILE_H
