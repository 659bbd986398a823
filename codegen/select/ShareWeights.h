//===- ShareWeights.h - one copy of a weight that is used in two ways -----===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_CODEGEN_SELECT_SHAREWEIGHTS_H
#define TENON_CODEGEN_SELECT_SHAREWEIGHTS_H

#include "ir/kernel/Program.h"

namespace tenon::codegen {

/// Where a table [entries, columns] is packed for a GEMM and is otherwise only
/// gathered by rows, as tied embeddings are, makes the gathers read the panels.
/// The weight as it was is left without uses.
void shareWeights(kernel::Program &program);

} // namespace tenon::codegen

#endif // TENON_CODEGEN_SELECT_SHAREWEIGHTS_H
