//===- KernelsBaseline.cpp - the kernels for any CPU ----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#define TENON_KERNELS kernelsBaseline
#include "runtime/emulator/tensor/Kernels.inc"
