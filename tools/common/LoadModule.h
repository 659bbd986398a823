//===- LoadModule.h - reading a graph from any file that holds one -------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_TOOLS_COMMON_LOADMODULE_H
#define TENON_TOOLS_COMMON_LOADMODULE_H

#include "frontend/Import.h"
#include "ir/Op.h"
#include "llvm/Support/Error.h"

namespace tenon::tools {

/// Reads an .onnx model or a .tn text ("-" is one on standard input; with
/// `FILE.weights` beside it, where
/// that exists).
llvm::Expected<std::unique_ptr<ir::Module>>
loadModule(llvm::StringRef path, const frontend::ImportOptions &options = {});

} // namespace tenon::tools

#endif // TENON_TOOLS_COMMON_LOADMODULE_H
