//===- KernelsAvx2.cpp - the kernels for CPUs with AVX2 and FMA -----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#define TENON_KERNELS kernelsAvx2
#include "runtime/emulator/tensor/Kernels.inc"
