//===- JoinParts.h - launches on parts of one product become one ---------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_CODEGEN_SELECT_JOINPARTS_H
#define TENON_CODEGEN_SELECT_JOINPARTS_H

#include "ir/kernel/Program.h"

namespace tenon::codegen {

/// On GPUs, where a launch costs as much as a small kernel: launches that
/// rotate or copy parts of one buffer (queries, keys and values of a merged
/// product) to their places become one launch of kernels/cuda/rotary.cuh, where
/// the last of them was. Launches between them may neither read what they write
/// nor write what they touch.
void joinParts(kernel::Program &program);

} // namespace tenon::codegen

#endif // TENON_CODEGEN_SELECT_JOINPARTS_H
