//===- fuzz_onnx.cpp - any bytes as an ONNX model ------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Any bytes import or give an error, and what imports verifies.
///
//===----------------------------------------------------------------------===//

#include "frontend/Import.h"
#include "ir/verify/Verify.h"
#include <cstdlib>

using namespace tenon;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  frontend::ImportOptions options;
  options.warn = [](llvm::StringRef) {};
  llvm::Expected<std::unique_ptr<ir::Module>> module =
      frontend::importOnnxBytes({data, size}, options);
  if (!module) {
    llvm::consumeError(module.takeError());
    return 0;
  }
  if (llvm::Error error = ir::verify(**module)) {
    llvm::errs() << llvm::toString(std::move(error)) << "\n";
    std::abort();
  }
  return 0;
}
