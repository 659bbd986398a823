//===- Cubin.h - what compiled kernels take of a GPU ----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_CODEGEN_TOOLCHAIN_CUBIN_H
#define TENON_CODEGEN_TOOLCHAIN_CUBIN_H

#include "codegen/toolchain/Nvrtc.h"

namespace tenon::codegen {

/// The units in \p cubin, an ELF file of NVIDIA's compiler, with their
/// registers, static shared memory and stack (of which spills are a part; how
/// large a one only the compiler's log says: spillBytes stays 0).
llvm::Expected<std::vector<KernelResources>>
cubinResources(llvm::StringRef cubin);

} // namespace tenon::codegen

#endif // TENON_CODEGEN_TOOLCHAIN_CUBIN_H
