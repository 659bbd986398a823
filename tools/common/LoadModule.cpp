//===- LoadModule.cpp - reading a graph from any file that holds one -----===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/common/LoadModule.h"
#include "ir/support/Diag.h"
#include "ir/text/SideFile.h"
#include "ir/verify/Verify.h"

using namespace llvm;
using namespace tenon;

static Expected<std::unique_ptr<ir::Module>> loadText(StringRef path) {
  Expected<ir::ParsedFile> parsed = ir::parseFile(path);
  if (!parsed)
    return parsed.takeError();
  if (Error error = ir::verify(*parsed->module))
    return withPrefix(std::move(error), path + ": error: ");
  return std::move(parsed->module);
}

Expected<std::unique_ptr<ir::Module>>
tools::loadModule(StringRef path, const frontend::ImportOptions &options) {
  if (path == "-" || path.ends_with(".tn"))
    return loadText(path);
  return frontend::importOnnx(path, options);
}
