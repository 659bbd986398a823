//===- Resources.cpp - files inside the compiler ------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/toolchain/Resources.h"

#include "ir/support/Diag.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <string>

namespace tenon::codegen {

/// The generated tables.
extern const Resource embeddedHeaders[];
extern const unsigned numEmbeddedHeaders;
extern const Resource embeddedRuntime;
extern const Resource embeddedTextLibraries[];
extern const unsigned numEmbeddedTextLibraries;
extern const Resource embeddedCApi;

llvm::ArrayRef<Resource> headerResources() {
  return {embeddedHeaders, numEmbeddedHeaders};
}

llvm::StringRef runtimeArchive() { return embeddedRuntime.contents(); }

llvm::ArrayRef<Resource> textLibraries() {
  return {embeddedTextLibraries, numEmbeddedTextLibraries};
}

llvm::StringRef cApiHeader() { return embeddedCApi.contents(); }

llvm::StringRef headersHash() {
  static const std::string hash = [] {
    llvm::BLAKE3 hasher;
    for (const Resource &resource : headerResources()) {
      hasher.update(llvm::StringRef(resource.path));
      hasher.update(llvm::StringRef("\0", 1));
      hasher.update(resource.contents());
      hasher.update(llvm::StringRef("\0", 1));
    }
    return llvm::toHex(hasher.final<16>(), /*LowerCase=*/true);
  }();
  return hash;
}

llvm::Error writeHeaders(llvm::StringRef folder) {
  for (const Resource &resource : headerResources()) {
    llvm::SmallString<128> path(folder);
    llvm::sys::path::append(path, resource.path);
    std::error_code failed =
        llvm::sys::fs::create_directories(llvm::sys::path::parent_path(path));
    if (!failed) {
      llvm::raw_fd_ostream os(path, failed);
      if (!failed) {
        os << resource.contents();
        os.close();
        failed = os.error();
        os.clear_error();
      }
    }
    if (failed)
      return userError("{0}: cannot write: {1}", path, failed.message());
  }
  return llvm::Error::success();
}

} // namespace tenon::codegen
