//===- gemm_bytes.h - matmul of bytes by a constant of bytes --------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// C[..., M, N] = epilogue(f32(sum over k of (A[..., M, k] - zero) * B[k, N])),
/// A of u8, B a constant of s8: what a model with MatMulInteger computes.
///
///   entry   tn::gemm_bytes<Cfg, Epilogue>(args)
///
///   Cfg     static constexpr int64_t N, K   the sizes of B, >= 1; K < 2^15
///           static constexpr int rank       rank of A, C and the epilogue's
///                                           operands; at least 2
///           using Operands = tn::types<...> as for gemm
///
///   views   0              A     u8, last dimension contiguous
///           1              zero  f32, one whole number from 0 to 255
///           2              B     packed (codes_pack.h, 8 bits)
///           3              sums  f32 B'[1, N] packed (gemm_pack.h): the sum of
///                                each column of B
///           4, 5, ...            epilogue operands (epilogue.h)
///           last           C     f32, last dimension contiguous
///   params  what the epilogue reads with tn::param
///   scratch none
///
/// Shapes as for gemm. C may not overlap any operand.
///
/// Numerics: sums are exact in 32 bits, in whatever order, and become f32 once,
/// rounded to nearest. They begin with -zero times the column's sum.
///
/// With AMX, products of 16 rows and more with K a multiple of 64 are as
/// tile_product.h has them. Else a tile has up to 8 rows (AVX2, generic: 2) and
/// one panel.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CPU_GEMM_BYTES_H
#define TENON_KERNELS_CPU_GEMM_BYTES_H

#include "kernels/cpu/codes.h"
#include "kernels/cpu/dot.h"
#include "kernels/cpu/tile_product.h"

namespace tn {
inline namespace TN_FORM {

/// One product with plain row strides.
template <class Cfg> struct BytesGemm {
  static constexpr int64_t panel = panel_bytes(Cfg::K, 8);
  const uint8_t *a;
  int64_t lda;
  int32_t zero;
  const int8_t *b;   ///< packed
  const float *sums; ///< of B's columns, packed
  float *c;
  int64_t ldc, m;

  TN_FN const int8_t *panel_of(int64_t column) const {
    return b + column / panel_columns * panel;
  }

  /// What the sums of `panel_columns` columns begin with.
  TN_FN void begin(int64_t column, int32_t *starts) const {
    for (int64_t j = 0; j < panel_columns; ++j)
      starts[j] = -zero * int32_t(sums[column + j]);
  }
};

#if defined(TN_AVX512)
inline constexpr int byte_tile = 8;
#else
inline constexpr int byte_tile = 2;
#endif

/// sums[Rows][16] of one panel, from `starts` on.
template <class Cfg, int Rows>
__attribute__((noinline)) void bytes_panel(const BytesGemm<Cfg> &g, int64_t row,
                                           const int8_t *b,
                                           const int32_t *starts, float *sums) {
  constexpr int pv = panel_vectors;
  constexpr int64_t whole = Cfg::K / 4 * 4;
  vi acc[Rows][pv];
  TN_UNROLL
  for (int i = 0; i < Rows; ++i)
    TN_UNROLL
  for (int v = 0; v < pv; ++v)
    acc[i][v] = bits(load((const float *)(const void *)starts + v * vf::width));
  const int8_t *a = (const int8_t *)g.a + row * g.lda;
  auto step = [&](const int8_t *(&at)[Rows]) {
    vb w[pv];
    TN_UNROLL
    for (int v = 0; v < pv; ++v)
      w[v] = load_bytes((const uint8_t *)b + v * vf::width * 4);
    TN_UNROLL
    for (int i = 0; i < Rows; ++i) {
      vb x = splat_word(at[i]);
      TN_UNROLL
      for (int v = 0; v < pv; ++v)
        acc[i][v] = dot<8>(acc[i][v], x, w[v]);
    }
  };
  for (int64_t k = 0; k < whole; k += 4, b += group_bytes) {
    const int8_t *at[Rows];
    TN_UNROLL
    for (int i = 0; i < Rows; ++i)
      at[i] = a + i * g.lda + k;
    if constexpr (Rows <= 2)
      fetch(b + codes_ahead);
    step(at);
  }
  if constexpr (whole < Cfg::K) {
    int8_t rest[Rows][4] = {};
    const int8_t *at[Rows];
    for (int i = 0; i < Rows; ++i) {
      __builtin_memcpy(rest[i], a + i * g.lda + whole, Cfg::K - whole);
      at[i] = rest[i];
    }
    step(at);
  }
  vf out[Rows][pv];
  TN_UNROLL
  for (int i = 0; i < Rows; ++i)
    TN_UNROLL
  for (int v = 0; v < pv; ++v)
    out[i][v] = to_float(acc[i][v]);
  store_sums(out, sums);
}

/// Rows [rows) and column tiles `columns` without tiles.
template <class Cfg, class Epilogue>
TN_FN void run_bytes(const BytesGemm<Cfg> &g, Range rows, Range columns,
                     EpilogueArgs &e) {
  alignas(64) float sums[byte_tile * panel_columns];
  alignas(64) int32_t starts[panel_columns];
  // So many rows of A stay in a cache while panels of B go by.
  constexpr int64_t block =
      max_of(1, (1 << 19) / Cfg::K / byte_tile) * byte_tile;
  int64_t end = min_of(Cfg::N, columns.end * unit_columns);
  for (int64_t from = rows.begin; from < rows.end; from += block)
    for (int64_t col = columns.begin * unit_columns; col < end;
         col += panel_columns) {
      g.begin(col, starts);
      int64_t to = min_of(rows.end, from + block);
      for (int64_t r = from; r < to; r += byte_tile) {
        int64_t count = min_of(byte_tile, to - r);
        with_rows<byte_tile>(count, [&](auto n) {
          bytes_panel<Cfg, n>(g, r, g.panel_of(col), starts, sums);
        });
        finish_tile<Epilogue>(sums, panel_columns, g.c + r * g.ldc + col, g.ldc,
                              count, min_of(panel_columns, Cfg::N - col), r,
                              col, e);
      }
    }
}

/// A panel's tiles of bytes.
struct TilesOfBytes {
  using Sum = int32_t;
#if defined(TN_AMX_TILES)
  template <int C, int A, int B> static TN_FN void multiply() {
    tile_multiply_bytes<C, A, B>();
  }
#endif
  static TN_FN vf to_f32(const int32_t *sums) {
    return to_float(bits(load((const float *)(const void *)sums)));
  }
};

template <class Cfg, class Epilogue = Identity>
void gemm_bytes(const tn_args *args) {
  static_assert(Cfg::N >= 1 && Cfg::K >= 1 && Cfg::K < 1 << 15);
  constexpr int first = 4, operands = Cfg::Operands::count,
                count = 2 + operands;
  static_assert(operands <= max_epilogue && Cfg::rank >= 2);
  const tn_view *v = args->views, &result = v[first + operands];
  int which[count] = {0, first + operands};
  for (int i = 0; i < operands; ++i)
    which[2 + i] = first + i;
  Space<count> s = space_of<count>(v, which, result.shape, Cfg::rank - 1);
  int64_t m = s.shape[s.rank - 1], outer = s.count(s.rank - 1);
  if (m == 0)
    return;
  int64_t row_units = ceil_div(m, unit_rows);
  GridShare mine = share_units(args, outer * row_units, Cfg::N);
  EpilogueArgs e;
  e.params = args->params;
  each_matrix(mine.rows, row_units, [&](int64_t index, Range units) {
    int64_t offset[count];
    s.locate(index, s.rank - 1, offset);
    set_operands<typename Cfg::Operands>(e, v + first, s, 2, offset, Cfg::rank);
    BytesGemm<Cfg> g = {(const uint8_t *)v[0].data + offset[0],
                        s.stride[0][s.rank - 1],
                        int32_t(*(const float *)v[1].data),
                        (const int8_t *)v[2].data,
                        (const float *)v[3].data,
                        (float *)result.data + offset[1],
                        s.stride[1][s.rank - 1],
                        m};
    if (tiles_serve(m, Cfg::K))
      run_tiles<TilesOfBytes, Cfg::N, Cfg::K, Epilogue>(
          {(const char *)g.a, g.lda, (const char *)g.b, g.panel, g.c, g.ldc, m},
          units, mine.columns, e,
          [&](int64_t column, int32_t *starts) { g.begin(column, starts); });
    else
      run_bytes<Cfg, Epilogue>(
          g, {units.begin * unit_rows, min_of(m, units.end * unit_rows)},
          mine.columns, e);
  });
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CPU_GEMM_BYTES_H
