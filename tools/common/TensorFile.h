//===- TensorFile.h - inputs and outputs in .npz files -------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_TOOLS_COMMON_TENSORFILE_H
#define TENON_TOOLS_COMMON_TENSORFILE_H

#include "ir/Op.h"
#include "ir/eval/Tensor.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace tenon::tools {

/// The arrays of the .npz (or .npy) at \p path that \p func takes, by name and
/// in its order. Missing and unknown names are errors.
llvm::Expected<std::vector<ir::Tensor>> readInputs(const std::string &path,
                                                   const ir::Func &func);

/// The same for the results of \p func: what a run is expected to give.
llvm::Expected<std::vector<ir::Tensor>> readOutputs(const std::string &path,
                                                    const ir::Func &func);

/// Writes \p outputs under the names of \p func's results.
llvm::Error writeOutputs(const std::string &path, const ir::Func &func,
                         llvm::ArrayRef<ir::Tensor> outputs);

} // namespace tenon::tools

#endif // TENON_TOOLS_COMMON_TENSORFILE_H
