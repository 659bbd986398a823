//===- Fragment.h - accumulators of the matrix instructions ---------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_EMULATOR_TENSOR_FRAGMENT_H
#define TENON_RUNTIME_EMULATOR_TENSOR_FRAGMENT_H

#include "runtime/emulator/tensor/Formats.h"
#include "runtime/emulator/tensor/Memory.h"

#include <cstdint>

namespace tenon::emu::tensor {

/// Registers of C or D for eight rows and eight columns: two, or one of f16.
constexpr unsigned accumulatorRegisters(Element type) {
  return type == Element::F16 ? 1 : 2;
}

/// What a kernel adds to: eight rows by eight columns from the registers of C
/// (f16, f32). For integers zeros: the exact sum of products is added by
/// `storeAccumulator`.
void loadAccumulator(Element type, RegsIn c, float *acc);

/// Writes the registers of D. For integers D = C + acc, which wraps, or with
/// `saturate` is clamped; `c` is null where C is zero.
void storeAccumulator(Element type, const float *acc, RegsIn c, bool saturate,
                      RegsOut d);

} // namespace tenon::emu::tensor

#endif // TENON_RUNTIME_EMULATOR_TENSOR_FRAGMENT_H
