//===- Cache.h - compiled units, kept by content ------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_CODEGEN_TOOLCHAIN_CACHE_H
#define TENON_CODEGEN_TOOLCHAIN_CACHE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace tenon::codegen {

/// A folder that only this process uses and that goes away with this object. It
/// is locked as long: one that nobody holds was left by a killed process.
class WorkFolder {
public:
  /// Below \p parent, which is made if need be.
  static llvm::Expected<WorkFolder> create(llvm::StringRef parent);
  /// Removes those below \p parent that nobody holds.
  static void removeLeft(llvm::StringRef parent);
  WorkFolder(WorkFolder &&other) noexcept;
  WorkFolder &operator=(WorkFolder &&other) noexcept;
  ~WorkFolder();

  llvm::StringRef path() const { return folder; }
  /// `path()/name`.
  std::string file(llvm::StringRef name) const;

private:
  WorkFolder() = default;
  std::string folder;
  int lock = -1; ///< of the open folder
};

/// Object files by the hash of all that went into them. Lives in
/// $TENON_CACHE_DIR, or $XDG_CACHE_HOME/tenon, or ~/.cache/tenon. Entries
/// appear at once and complete, so any number of processes may use it together;
/// the oldest go when it grows beyond 1 GB. When the folder cannot be written
/// to, there is no cache, which is said (`problem`), and nothing fails.
class Cache {
public:
  /// \p folder empty: as above.
  explicit Cache(llvm::StringRef folder = "");

  /// The key of what is made from \p parts: a hash of them in their order.
  static std::string key(llvm::ArrayRef<llvm::StringRef> parts);

  /// A work folder, on the cache's file system if there is a cache.
  llvm::Expected<WorkFolder> workFolder() const;
  /// Puts entry \p key at \p path; false when there is no such entry.
  bool fetch(llvm::StringRef key, llvm::StringRef path) const;
  /// Keeps a copy of the file at \p path as entry \p key.
  void store(llvm::StringRef key, llvm::StringRef path) const;
  /// Removes the oldest entries until \p limit bytes are left.
  void prune(uint64_t limit = uint64_t(1) << 30) const;

  llvm::StringRef path() const { return folder; }
  /// Why there is no cache; empty where there is one.
  llvm::StringRef problem() const { return why; }

private:
  std::string entry(llvm::StringRef key) const;
  std::string folder; ///< empty: no cache
  std::string why;
};

} // namespace tenon::codegen

#endif // TENON_CODEGEN_TOOLCHAIN_CACHE_H
