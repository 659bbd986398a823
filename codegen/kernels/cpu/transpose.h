//===- transpose.h - small transposes in registers ------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// `transpose` of f32 blocks by 4 x 4 squares in vector registers, and the
/// run-time form of gemm_pack.h's panels, which is made of it.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CPU_TRANSPOSE_H
#define TENON_KERNELS_CPU_TRANSPOSE_H

#include "kernels/common/form.h"
#include "kernels/cpu/gemm_pack.h"

namespace tn {
inline namespace TN_FORM {

typedef float f32x4 __attribute__((vector_size(16)));

TN_FN f32x4 load4(const float *p) {
  f32x4 r;
  __builtin_memcpy(&r, p, sizeof(r));
  return r;
}
TN_FN void store4(float *p, f32x4 x) { __builtin_memcpy(p, &x, sizeof(x)); }

/// out[j][i] = in[i][j] for i, j < 4.
TN_FN void transpose4(const float *in, int64_t in_stride, float *out,
                      int64_t out_stride) {
  f32x4 a = load4(in), b = load4(in + in_stride);
  f32x4 c = load4(in + 2 * in_stride), d = load4(in + 3 * in_stride);
  f32x4 ab0 = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  f32x4 ab1 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  f32x4 cd0 = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  f32x4 cd1 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  store4(out, __builtin_shufflevector(ab0, cd0, 0, 1, 4, 5));
  store4(out + out_stride, __builtin_shufflevector(ab0, cd0, 2, 3, 6, 7));
  store4(out + 2 * out_stride, __builtin_shufflevector(ab1, cd1, 0, 1, 4, 5));
  store4(out + 3 * out_stride, __builtin_shufflevector(ab1, cd1, 2, 3, 6, 7));
}

/// out[j * out_stride + i] = in[i * in_stride + j] for i < rows, j < columns.
TN_FN void transpose(const float *in, int64_t in_stride, float *out,
                     int64_t out_stride, int64_t rows, int64_t columns) {
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4) {
    int64_t j = 0;
    for (; j + 4 <= columns; j += 4)
      transpose4(in + i * in_stride + j, in_stride, out + j * out_stride + i,
                 out_stride);
    for (; j < columns; ++j)
      for (int64_t r = i; r < i + 4; ++r)
        out[j * out_stride + r] = in[r * in_stride + j];
  }
  for (; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      out[j * out_stride + i] = in[i * in_stride + j];
}

/// Packs the columns [0, n) of B[K, n] into panels [ceil(n / 16)][K][16], as
/// gemm_pack.h's pack_b, whatever its strides; fast where one of them is 1.
inline __attribute__((noinline)) void pack_panels(const float *b, int64_t k,
                                                  int64_t n, int64_t row_stride,
                                                  int64_t column_stride,
                                                  float *out) {
  for (int64_t j = 0; j < n; j += panel_columns, out += k * panel_columns) {
    const float *in = b + j * column_stride;
    int64_t width = min_of(panel_columns, n - j);
    if (column_stride == 1 && width == panel_columns) {
      for (int64_t i = 0; i < k; ++i)
        __builtin_memcpy(out + i * panel_columns, in + i * row_stride,
                         panel_columns * sizeof(float));
    } else if (row_stride == 1 && width == panel_columns) {
      transpose(in, column_stride, out, panel_columns, width, k);
    } else {
      pack_b(in, k, width, row_stride, column_stride, out);
    }
  }
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CPU_TRANSPOSE_H
