//===- Kernels.cpp - picks the kernels of this CPU ------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/emulator/tensor/Kernels.h"

namespace tenon::emu::tensor {

const Kernels &kernels() {
#if defined(__x86_64__)
  static const bool avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (avx2)
    return kernelsAvx2;
#endif
  return kernelsBaseline;
}

} // namespace tenon::emu::tensor
