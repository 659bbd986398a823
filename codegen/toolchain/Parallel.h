//===- Parallel.h - independent pieces of work on several threads -------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_CODEGEN_TOOLCHAIN_PARALLEL_H
#define TENON_CODEGEN_TOOLCHAIN_PARALLEL_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"

namespace tenon::codegen {

/// Calls \p work(i) for every i < \p count, from up to \p jobs threads. After
/// an error no new piece starts; all errors are joined.
llvm::Error parallelFor(size_t count, unsigned jobs,
                        llvm::function_ref<llvm::Error(size_t)> work);

/// \p asked, or if that is 0 the CPUs this process may use.
unsigned hostJobs(unsigned asked);

} // namespace tenon::codegen

#endif // TENON_CODEGEN_TOOLCHAIN_PARALLEL_H
