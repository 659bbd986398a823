//===- gemm_pack.h - the layout of a packed matmul operand ----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// B[K, N] in *panels* of 16 columns: panel[ceil(N / 16)][K][16] of f32 or of
/// 16-bit floats, columns past N zero. One layout for every CPU form, so that
/// an artifact with several forms holds its weights once. The compiler packs
/// constants with `pack_b`; the kernels pack what is not constant with vectors
/// (batch_matmul.h).
///
/// Plain C++ without SIMD: the compiler includes this file too. Functions are
/// static, so that the linker never joins those of different CPU forms.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CPU_GEMM_PACK_H
#define TENON_KERNELS_CPU_GEMM_PACK_H

#include <stdint.h>

namespace tn {

inline constexpr int64_t panel_columns = 16;

/// Floats in the packed form of B[K, N].
inline constexpr int64_t packed_size(int64_t k, int64_t n) {
  return (n + panel_columns - 1) / panel_columns * panel_columns * k;
}

/// Packs panels [first, last) of B[K, N], whose element (k, n) is
/// b[k * rowStride + n * columnStride] (so a transposed B needs no copy), into
/// `out`, which receives panel `first` at its start. Packing a few panels at a
/// time keeps the memory of a compiler that streams weights small.
template <class T>
static inline void pack_b(const T *b, int64_t k, int64_t n, int64_t rowStride,
                          int64_t columnStride, int64_t first, int64_t last,
                          T *out) {
  for (int64_t p = first; p < last; ++p) {
    int64_t column = p * panel_columns;
    int64_t width = n - column < panel_columns ? n - column : panel_columns;
    for (int64_t i = 0; i < k; ++i) {
      const T *row = b + i * rowStride + column * columnStride;
      for (int64_t j = 0; j < width; ++j)
        out[j] = row[j * columnStride];
      for (int64_t j = width; j < panel_columns; ++j)
        out[j] = T();
      out += panel_columns;
    }
  }
}

/// Packs all of B[K, N].
template <class T>
static inline void pack_b(const T *b, int64_t k, int64_t n, int64_t rowStride,
                          int64_t columnStride, T *out) {
  pack_b(b, k, n, rowStride, columnStride, 0,
         (n + panel_columns - 1) / panel_columns, out);
}

} // namespace tn

#endif // TENON_KERNELS_CPU_GEMM_PACK_H
