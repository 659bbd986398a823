//===- codes_pack.h - the layout of a matrix of 2-, 4- or 8-bit codes -----===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Codes C[K, N] of `bits` bits in *panels* of 16 columns, as those of
/// gemm_pack.h. A panel is a list of groups of 64 bytes, each `group_rows` =
/// 32 / bits rows: four bytes for every column, and in byte i of column j, from
/// the low bits up, the codes of rows i, i + 4, ... of the group:
///
///   8 bits   byte 4 j + i = row i
///   4 bits   byte 4 j + i = row i | row (i + 4) << 4
///  16 bits   bytes 4 j + 2 i and on = row i, which may be a number of bf16
///   2 bits   byte 4 j + i = row i | row (i + 4) << 2 | ... | row (i + 12) << 6
///
/// So the four codes that an instruction multiplies by four 8-bit numbers of A
/// lie together, and one shift and one mask gives them for all columns. Rows
/// past K and columns past N are 0. One layout for every CPU form.
///
/// Plain C++ without SIMD: the compiler includes this file too. Functions are
/// static, so that the linker never joins those of different CPU forms.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CPU_CODES_PACK_H
#define TENON_KERNELS_CPU_CODES_PACK_H

#include "gemm_pack.h"

namespace tn {

inline constexpr int64_t group_bytes = 4 * panel_columns;

/// Rows of a group of codes of so many bits.
inline constexpr int64_t group_rows(int bits) { return 32 / bits; }

/// Bytes of a panel of K rows.
inline constexpr int64_t panel_bytes(int64_t k, int bits) {
  return (k + group_rows(bits) - 1) / group_rows(bits) * group_bytes;
}

/// Packs the panel of columns [first, first + width), width <= 16, into
/// out[panel_bytes(k, bits)]; `code(i, j)` is the code of row i, column j.
template <class Code>
static inline void pack_codes(Code code, int64_t k, int bits, int64_t first,
                              int64_t width, uint8_t *out) {
  for (int64_t i = 0; i < panel_bytes(k, bits); ++i)
    out[i] = 0;
  for (int64_t j = 0; bits == 16 && j < width; ++j)
    for (int64_t i = 0; i < k; ++i) {
      uint16_t number = uint16_t(code(i, first + j));
      __builtin_memcpy(out + i / 2 * group_bytes + 4 * j + i % 2 * 2, &number,
                       sizeof(number));
    }
  for (int64_t j = 0; bits < 16 && j < width; ++j)
    for (int64_t i = 0; i < k; ++i) {
      int64_t group = i / group_rows(bits), row = i % group_rows(bits);
      out[group * group_bytes + 4 * j + row % 4] |=
          uint8_t(code(i, first + j) << (row / 4 * bits));
    }
}

/// Scratch bytes of a row of A in bf16 (gemm_bf16.h): lines of the cache, and
/// not a multiple of 4 KiB apart, which would lie in one set of the L1 cache.
inline constexpr int64_t half_row_bytes(int64_t k) {
  int64_t bytes = (2 * k + 63) / 64 * 64;
  return bytes % 4096 == 0 ? bytes + 64 : bytes;
}

//===--- Rows of A in 8 bits (gemm_codes_i8.h)
//---------------------------===//

/// A block of B's rows is cut into spans of at most 256 rows; each span of a
/// row of A has a scale of its own.
inline constexpr int64_t spans_of_block(int64_t block) {
  return (block + 255) / 256;
}
/// Rows of a span, the last of a block perhaps fewer: a multiple of 16.
inline constexpr int64_t span_rows(int64_t block) {
  int64_t n = spans_of_block(block);
  return ((block + n - 1) / n + 15) / 16 * 16;
}
inline constexpr int64_t span_count(int64_t k, int64_t block) {
  return (k + block - 1) / block * spans_of_block(block);
}
/// Bytes between rows of A in 8 bits.
inline constexpr int64_t i8_row_bytes(int64_t k) { return (k + 63) / 64 * 64; }
/// Scratch bytes for each row of A: its numbers, and two words for each span.
inline constexpr int64_t i8_scratch_per_row(int64_t k, int64_t block) {
  return i8_row_bytes(k) + 8 * span_count(k, block);
}

} // namespace tn

#endif // TENON_KERNELS_CPU_CODES_PACK_H
