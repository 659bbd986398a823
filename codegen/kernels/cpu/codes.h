//===- codes.h - a constant matrix of codes, as kernels read it -----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// B[k, n] = scale[k / block, n] * (code[k, n] - zero[k / block, n]), what
/// gemm_codes.h and gemm_codes_i8.h multiply by. Both have these members of
/// Cfg and these first views:
///
///   Cfg     static constexpr int64_t N, K   the sizes of B, >= 1
///           static constexpr int bits       2, 4 or 8
///           static constexpr int64_t block  a multiple of 16
///           static constexpr bool zeros     whether there is a view of zeros;
///           static constexpr float zero     else each of them
///           static constexpr int rank       rank of A, C and the epilogue's
///                                           operands; at least 2
///           using Operands = tn::types<...> as for gemm
///
///   views   0              A      f32, last dimension contiguous
///           1              codes  packed (codes_pack.h)
///           2              scales f32 B'[ceil(K / block), N], packed as
///                                 gemm_pack.h says
///           3              zeros  the same, if Cfg::zeros
///           then           epilogue operands (epilogue.h)
///           last           C      f32, last dimension contiguous
///
/// Shapes as for gemm. C may not overlap any operand.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CPU_CODES_H
#define TENON_KERNELS_CPU_CODES_H

#include "kernels/cpu/codes_pack.h"
#include "kernels/cpu/epilogue.h"
#include "kernels/cpu/vec.h"

namespace tn {
inline namespace TN_FORM {

/// Vectors in a panel's row.
inline constexpr int panel_vectors = int(panel_columns / vf::width);

/// Writes the sums of a panel's columns: [Rows][panel_columns].
template <int Rows>
TN_FN void store_sums(const vf (&acc)[Rows][panel_vectors], float *sums) {
  TN_UNROLL
  for (int i = 0; i < Rows; ++i)
    TN_UNROLL
  for (int v = 0; v < panel_vectors; ++v)
    store(sums + i * panel_columns + v * vf::width, acc[i][v]);
}

/// How far ahead of their use codes are fetched where reading them is what
/// takes the time: the hardware's own prefetching ends at each page.
inline constexpr int64_t codes_ahead = 4096;

TN_FN void fetch(const void *p) { __builtin_prefetch(p, 0, 2); }

/// Calls f.template operator()<field>() for the fields of a byte of codes.
template <int Bits, class F, int Field = 0> TN_FN void for_fields(F f) {
  if constexpr (Field * Bits < 8) {
    f.template operator()<Field>();
    for_fields<Bits, F, Field + 1>(f);
  }
}

template <class Cfg> struct CodesB {
  static constexpr int bits = Cfg::bits;
  static constexpr int64_t blocks = ceil_div(Cfg::K, Cfg::block);
  static constexpr int64_t group = group_rows(Cfg::bits);
  static constexpr int64_t panels = ceil_div(Cfg::N, panel_columns);
  static_assert(Cfg::block % 16 == 0 && Cfg::K >= 1 && Cfg::N >= 1);

  const uint8_t *codes;
  const float *scales, *zeros;

  explicit TN_FN CodesB(const tn_view *v)
      : codes((const uint8_t *)v[1].data), scales((const float *)v[2].data),
        zeros(Cfg::zeros ? (const float *)v[3].data : nullptr) {}

  /// The group of a panel that has row `k`, the first of one.
  TN_FN const uint8_t *group_of(int64_t panel, int64_t k) const {
    return codes + panel * panel_bytes(Cfg::K, bits) + k / group * group_bytes;
  }
  /// Fetches what comes `codes_ahead` behind the codes of block `b`.
  TN_FN void fetch_scales(int64_t panel, int64_t b) const {
    constexpr int64_t ahead =
        ceil_div(codes_ahead * group, group_bytes * Cfg::block);
    int64_t at = (panel * blocks + b + ahead) * panel_columns;
    fetch(scales + at);
    if constexpr (Cfg::zeros)
      fetch(zeros + at);
  }
  TN_FN vf scale(int64_t panel, int64_t b, int v) const {
    return load(scales + (panel * blocks + b) * panel_columns + v * vf::width);
  }
  TN_FN vf zero(int64_t panel, int64_t b, int v) const {
    if constexpr (!Cfg::zeros)
      return vf(Cfg::zero);
    else
      return load(zeros + (panel * blocks + b) * panel_columns + v * vf::width);
  }
};

/// The outer indices of a product with plain row strides: calls
/// f(a, lda, c, ldc, m, first row of all) for each, with `e` set.
template <class Cfg, class Each>
TN_FN void for_each_product(const tn_args *args, EpilogueArgs &e, Each each) {
  constexpr int first = 3 + Cfg::zeros, operands = Cfg::Operands::count,
                count = 2 + operands;
  static_assert(operands <= max_epilogue && Cfg::rank >= 2);
  const tn_view *v = args->views;
  int which[count] = {0, first + operands};
  for (int i = 0; i < operands; ++i)
    which[2 + i] = first + i;
  const tn_view &result = v[first + operands];
  Space<count> s = space_of<count>(v, which, result.shape, Cfg::rank - 1);
  int64_t m = s.shape[s.rank - 1], outer = s.count(s.rank - 1);
  e.params = args->params;
  for (int64_t index = 0; m > 0 && index < outer; ++index) {
    int64_t offset[count];
    s.locate(index, s.rank - 1, offset);
    set_operands<typename Cfg::Operands>(e, v + first, s, 2, offset, Cfg::rank);
    each((const float *)v[0].data + offset[0], s.stride[0][s.rank - 1],
         (float *)result.data + offset[1], s.stride[1][s.rank - 1], m,
         index * m);
  }
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CPU_CODES_H
