//===- Precision.h - --precision as the code generator wants it ---------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_TOOLS_COMMON_PRECISION_H
#define TENON_TOOLS_COMMON_PRECISION_H

#include "codegen/target/Target.h"
#include "passes/Options.h"

namespace tenon::tools {

/// Tells the code generator how products are done. Without \p archs (what
/// --arch= names) fp8 takes architectures that have it. An error where target
/// or architectures cannot.
llvm::Error setPrecision(passes::Precision precision, llvm::StringRef archs,
                         codegen::TargetOptions &options);

} // namespace tenon::tools

#endif // TENON_TOOLS_COMMON_PRECISION_H
