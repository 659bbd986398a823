//===- LoadModule.cpp - reading a graph from any file that holds one -----===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/common/LoadModule.h"
#include "ir/support/Diag.h"
#include "ir/text/SideFile.h"
#include "ir/text/Text.h"
#include "ir/verify/Verify.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace llvm;
using namespace tenon;

static Expected<std::unique_ptr<ir::Module>> loadText(StringRef path) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = MemoryBuffer::getFile(path);
  if (!buffer)
    return userError("{0}: error: cannot be read: {1}", path,
                     buffer.getError().message());
  std::unique_ptr<ir::SideFile> side;
  std::string weights = (path + ".weights").str();
  if (sys::fs::exists(weights)) {
    Expected<std::unique_ptr<ir::SideFile>> opened =
        ir::SideFile::open(weights);
    if (!opened)
      return opened.takeError();
    side = std::move(*opened);
  }
  Expected<ir::ParsedFile> parsed =
      side ? ir::parse(**buffer,
                       [&](StringRef name) { return side->lookup(name); })
           : ir::parse(**buffer);
  if (!parsed)
    return parsed.takeError();
  if (Error error = ir::verify(*parsed->module))
    return withPrefix(std::move(error), path + ": error: ");
  return std::move(parsed->module);
}

Expected<std::unique_ptr<ir::Module>>
tools::loadModule(StringRef path, const frontend::ImportOptions &options) {
  if (path.ends_with(".tn"))
    return loadText(path);
  return frontend::importOnnx(path, options);
}
