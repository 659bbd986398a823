//===- Header.h - the C header of a model's shared library --------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_CODEGEN_ARTIFACT_HEADER_H
#define TENON_CODEGEN_ARTIFACT_HEADER_H

#include "ir/kernel/Program.h"

namespace tenon::codegen {

/// "libmodel.h" for "libmodel.so": where writeModelHeader() writes.
std::string modelHeaderPath(llvm::StringRef library);

/// Writes the C header of \p library beside it: the C interface, and the
/// model's inputs and outputs by number. Names of the model stay in the data
/// (tenon_input_name), where no text of a model can turn into code.
llvm::Error writeModelHeader(const kernel::Program &program,
                             llvm::StringRef library);

} // namespace tenon::codegen

#endif // TENON_CODEGEN_ARTIFACT_HEADER_H
