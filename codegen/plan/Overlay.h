//===- Overlay.h - lifetimes of buffers, and computing in place ----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_CODEGEN_PLAN_OVERLAY_H
#define TENON_CODEGEN_PLAN_OVERLAY_H

#include "ir/kernel/Program.h"

namespace tenon::codegen {

/// The first and last launch that use a buffer; first > last: none does.
struct Lifetime {
  unsigned first = kernel::none, last = 0;
};

/// One for each buffer of \p program.
std::vector<Lifetime> lifetimesOf(const kernel::Program &program);

/// Lets results take the memory of operands that die there, where the kernel
/// allows it (`Launch::overlays`) and both are the same view of buffers of the
/// same size. The result's buffer is then not used any more.
void overlay(kernel::Program &program);

} // namespace tenon::codegen

#endif // TENON_CODEGEN_PLAN_OVERLAY_H
