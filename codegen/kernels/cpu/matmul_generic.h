//===- matmul_generic.h - matmul of element types other than f32 ----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// C[..., M, N] = epilogue(A[..., M, K] * B[..., K, N]) for f64 and the integer
/// types, with any strides on A and B.
///
///   entry   tn::matmul_generic<Cfg, Epilogue>(args)
///
///   Cfg     using A, B                      element types of the operands
///           using C                         of the result, and of the sums
///           static constexpr int rank       rank of all views; at least 2
///           using Operands = tn::types<...> element types of the epilogue's
///                                           operands: C or tn_bool each
///
///   views   0         A    any strides
///           1         B    any strides
///           2, 3, ...      epilogue operands (epilogue.h)
///           last      C    any strides
///   params  what the epilogue reads with tn::param
///   scratch none
///
/// Elements of A and B are cast to C and multiplied and added in C, in order of
/// k; integers wrap. The epilogue is called with V = C. M, N, K may be 0.
/// Threads take ranges of rows.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CPU_MATMUL_GENERIC_H
#define TENON_KERNELS_CPU_MATMUL_GENERIC_H

#include "kernels/cpu/epilogue.h"

namespace tn {
inline namespace TN_FORM {

template <class Cfg, class Epilogue = Identity>
void matmul_generic(const tn_args *args) {
  using A = typename Cfg::A;
  using B = typename Cfg::B;
  using C = typename Cfg::C;
  constexpr int operands = Cfg::Operands::count, last = 2 + operands;
  constexpr int rank = Cfg::rank, outer = rank - 2;
  constexpr int64_t chunk = 64;
  const tn_view *v = args->views;
  const int64_t *shape = v[last].shape;
  int64_t m = shape[rank - 2], n = shape[rank - 1], k = v[0].shape[rank - 1];
  int64_t a_k = v[0].stride[rank - 1], c_column = v[last].stride[rank - 1];
  int64_t b_k = v[1].stride[rank - 2], b_column = v[1].stride[rank - 1];
  EpilogueArgs e;
  e.params = args->params;
  e.lanes = 1;

  /// The start of row `row` of batch `batch` of a view with C's outer sizes.
  auto at = [&](int i, int64_t batch, int64_t row) {
    tn_view outer_view = {nullptr, shape, v[i].stride};
    return row_offset(outer_view, outer, batch) + row * v[i].stride[rank - 2];
  };
  Range mine = share(args, extent(v[last], 0, outer) * m);
  for (int64_t r = mine.begin; r < mine.end; ++r) {
    int64_t batch = r / m, row = r - batch * m;
    const A *a = (const A *)v[0].data + at(0, batch, row);
    const B *b = (const B *)v[1].data + at(1, batch, 0);
    C *c = (C *)v[last].data + at(last, batch, row);
    for (int i = 0; i < operands; ++i)
      e.operand[i] = {v[2 + i].data +
                          at(2 + i, batch, 0) * Cfg::Operands::size[i],
                      v[2 + i].stride[rank - 2], v[2 + i].stride[rank - 1]};
    for (int64_t j0 = 0; j0 < n; j0 += chunk) {
      int64_t width = min_of(chunk, n - j0);
      C sums[chunk] = {};
      for (int64_t x = 0; x < k; ++x) {
        C left = tn_cast<C>(a[x * a_k]);
        const B *right = b + x * b_k + j0 * b_column;
        for (int64_t j = 0; j < width; ++j)
          sums[j] =
              tn_add(sums[j], tn_mul(left, tn_cast<C>(right[j * b_column])));
      }
      for (int64_t j = 0; j < width; ++j)
        c[(j0 + j) * c_column] =
            Epilogue::template apply<C>(sums[j], e, row, j0 + j);
    }
  }
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CPU_MATMUL_GENERIC_H
