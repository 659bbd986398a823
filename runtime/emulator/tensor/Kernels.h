//===- Kernels.h - decoding and multiplying fragments, per CPU form -------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_EMULATOR_TENSOR_KERNELS_H
#define TENON_RUNTIME_EMULATOR_TENSOR_KERNELS_H

#include "runtime/emulator/tensor/Formats.h"

#include <cstddef>
#include <cstdint>

namespace tenon::emu::tensor {

/// A register of an A or B fragment holds a block of eight rows (of A, or
/// columns of B) by 128 / bits values of k: lane l has, from its low bits up,
/// `E` = 32 / bits consecutive values of row l / 4, beginning at k = E * (l %
/// 4). Every mma and wgmma shape is made of such blocks:
///   A: register r has rows 8 * (r % 2) .. (m = 16), block r / 2 along k;
///   B: register r has block r along k;
///   C, D: lane l of registers 2h and 2h + 1 has row 8h + l / 4, columns
///   2 * (l % 4) and the next; as f16, both are in register h.
///
/// The kernels work on decoded blocks: value e of word w at [e][w], so that
/// decoding is the same operation on all words.
struct Kernels {
  /// 32 words of the element type to E * 32 floats.
  using Decode = void (*)(const uint32_t *words, float *out);
  /// acc[8][8] += A * B over `blocks` blocks along k. Word w of a block of A is
  /// row w / 4, of B (whose words were transposed) column w % 8 and w / 8 in
  /// place of l % 4. Strides are in floats.
  using Multiply = void (*)(float *acc, const float *a, size_t strideA,
                            const float *b, size_t strideB, unsigned blocks);

  /// Null for types of 32 bits or more other than TF32.
  Decode (*decoder)(Element type);
  /// `perWord` is E: 1, 2, 4 or 8.
  Multiply (*multiplier)(unsigned perWord);
};

/// The fastest form that this CPU has.
const Kernels &kernels();

// One for each form.
extern const Kernels kernelsBaseline;
extern const Kernels kernelsAvx2;

/// The words of a register of B by column: out[t * 8 + n] = words[n * 4 + t].
inline void transposeWords(const uint32_t *words, uint32_t *out) {
  for (unsigned t = 0; t < 4; ++t)
    for (unsigned n = 0; n < 8; ++n)
      out[t * 8 + n] = words[n * 4 + t];
}

} // namespace tenon::emu::tensor

#endif // TENON_RUNTIME_EMULATOR_TENSOR_KERNELS_H
