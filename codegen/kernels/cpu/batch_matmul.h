//===- batch_matmul.h - matmul of two operands known at run time ----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// C[..., M, N] = epilogue(A[..., M, K] * B[..., K, N]) in f32, with any
/// strides on A and B: a transposed operand is a view with its strides
/// exchanged, a broadcast batch dimension has stride 0.
///
///   entry   tn::batch_matmul<Cfg, Epilogue>(args)
///
///   Cfg     static constexpr int rank       rank of all views; at least 2
///           using Operands = tn::types<...> element types of the epilogue's
///                                           operands: float or tn_bool each
///
///   views   0         A    f32, any strides
///           1         B    f32, any strides
///           2, 3, ...      epilogue operands (epilogue.h)
///           last      C    f32, last dimension contiguous
///   params  what the epilogue reads with tn::param
///   scratch none (224 KB of stack)
///
/// Shapes: M, N and K are read from the views; each may be 0, and with K = 0
/// the result is epilogue(0). Batch dimensions of A, B and the operands are
/// given with C's sizes. C may not overlap A or B.
///
/// Numerics: f32 accumulation in order of k.
///
/// A work item is one block of 126 rows (AVX2: 120) by 64 columns of one batch;
/// threads take ranges of items. K is walked in blocks of 256, for each of
/// which the item's part of B, and of A unless its rows are contiguous, is
/// packed on the stack.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CPU_BATCH_MATMUL_H
#define TENON_KERNELS_CPU_BATCH_MATMUL_H

#include "kernels/cpu/epilogue.h"
#include "kernels/cpu/micro.h"
#include "kernels/cpu/transpose.h"

namespace tn {
inline namespace TN_FORM {

/// One matrix product with the strides of its operands.
struct Product {
  const float *a, *b;
  float *c;
  int64_t a_row, a_k, b_k, b_column, ldc;
  int64_t m, n, k;
};

inline constexpr int64_t block_rows = ceil_div(120, tile_rows) * tile_rows;
inline constexpr int64_t block_columns = 64, block_k = 256;

/// out[i * block_k + x] = a[i * row_stride + x * k_stride].
TN_FN void pack_rows(const float *a, int64_t row_stride, int64_t k_stride,
                     int64_t rows, int64_t k, float *out) {
  if (row_stride == 1)
    return transpose(a, k_stride, out, block_k, k, rows);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t x = 0; x < k; ++x)
      out[i * block_k + x] = a[i * row_stride + x * k_stride];
}

/// The block of C that begins at (row, col). `pack(k0, k, col, columns, out)`
/// writes rows k0 .. k0 + k of those columns of B as panels.
template <int64_t Rows, class Epilogue, class Pack>
TN_FN void multiply_block(const Product &p, int64_t row, int64_t col,
                          EpilogueArgs &e, Pack pack) {
  alignas(64) float sums[Rows * block_columns];
  alignas(64) float packed_b[block_k * block_columns];
  alignas(64) float packed_a[block_rows * block_k];
  int64_t rows = min_of(Rows, p.m - row);
  int64_t columns = min_of(block_columns, p.n - col);
  if (p.k == 0)
    __builtin_memset(sums, 0, sizeof(sums));
  Tile t = {};
  t.ldc = block_columns;
  for (int64_t k0 = 0; k0 < p.k; k0 += block_k) {
    t.k = min_of(block_k, p.k - k0);
    t.accumulate = k0 > 0;
    pack(k0, t.k, col, columns, packed_b);
    for (int64_t r = 0; r < rows; r += block_rows) {
      int64_t height = min_of(block_rows, rows - r);
      const float *a = p.a + (row + r) * p.a_row + k0 * p.a_k;
      t.lda = p.a_row;
      if (p.a_k != 1) {
        pack_rows(a, p.a_row, p.a_k, height, t.k, packed_a);
        a = packed_a;
        t.lda = block_k;
      }
      multiply_panels(t, a, packed_b, height, columns,
                      sums + r * block_columns);
    }
  }
  finish_tile<Epilogue>(sums, block_columns, p.c + row * p.ldc + col, p.ldc,
                        rows, columns, row, col, e);
}

template <class Cfg, class Epilogue = Identity>
void batch_matmul(const tn_args *args) {
  constexpr int operands = Cfg::Operands::count, count = 3 + operands;
  constexpr int last = 2 + operands, rank = Cfg::rank;
  static_assert(operands <= max_epilogue && rank >= 2);
  const tn_view *v = args->views;
  int which[count] = {0, 1, last};
  for (int i = 0; i < operands; ++i)
    which[3 + i] = 2 + i;
  Space<count> s = space_of<count>(v, which, v[last].shape, rank - 2);

  Product p;
  p.m = v[last].shape[rank - 2];
  p.n = v[last].shape[rank - 1];
  p.k = v[0].shape[rank - 1];
  p.a_row = v[0].stride[rank - 2];
  p.a_k = v[0].stride[rank - 1];
  p.b_k = v[1].stride[rank - 2];
  p.b_column = v[1].stride[rank - 1];
  p.ldc = v[last].stride[rank - 2];
  int64_t down = ceil_div(p.m, block_rows),
          across = ceil_div(p.n, block_columns);
  int64_t blocks = down * across;
  EpilogueArgs e;
  e.params = args->params;
  Range mine = share(args, s.count(s.rank) * blocks);
  for (int64_t item = mine.begin; item < mine.end; ++item) {
    int64_t batch = item / blocks, block = item - batch * blocks;
    int64_t offset[count];
    s.locate(batch, s.rank, offset);
    p.a = (const float *)v[0].data + offset[0];
    p.b = (const float *)v[1].data + offset[1];
    p.c = (float *)v[last].data + offset[2];
    for (int i = 0; i < operands; ++i)
      e.operand[i] = {v[2 + i].data + offset[3 + i] * Cfg::Operands::size[i],
                      v[2 + i].stride[rank - 2], v[2 + i].stride[rank - 1]};
    multiply_block<block_rows, Epilogue>(
        p, block / across * block_rows, block % across * block_columns, e,
        [&](int64_t k0, int64_t k, int64_t col, int64_t columns, float *out) {
          pack_panels(p.b + k0 * p.b_k + col * p.b_column, k, columns, p.b_k,
                      p.b_column, out);
        });
  }
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CPU_BATCH_MATMUL_H
