//===- gemm_bf16.h - matmul in bf16 ---------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// C[..., M, N] = epilogue(A[..., M, K] * B[K, N]), A and C of f32, B a
/// constant of bf16, where A may be rounded to bf16: what --precision=bf16 asks
/// for.
///
///   entry   tn::gemm_bf16<Cfg, Epilogue>(args)
///   Cfg     as for gemm, without B
///   views   0              A    f32, last dimension contiguous
///           1              B    packed (codes_pack.h, 16 bits)
///           2, 3, ...           epilogue operands (epilogue.h)
///           last           C    f32, last dimension contiguous
///   params  what the epilogue reads with tn::param
///   scratch half_row_bytes(K) for each row of A
///
/// Shapes as for gemm. C may not overlap any operand.
///
/// With AMX, products of 16 rows and more with K a multiple of 32: the threads
/// share the rows of A and round them to nearest even, then, after a barrier,
/// multiply as tile_product.h has it; what is denormal in bf16 counts as zero.
/// Else A stays f32 and B is widened, exactly: one chain of fused multiply-adds
/// per element in order of k, on up to 12 rows (AVX2: 2, generic: 1) and two
/// panels; few rows are bound by reading B once.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CPU_GEMM_BF16_H
#define TENON_KERNELS_CPU_GEMM_BF16_H

#include "kernels/cpu/amx_split.h"
#include "kernels/cpu/codes.h"
#include "kernels/cpu/tile_product.h"

namespace tn {
inline namespace TN_FORM {

#if defined(TN_AVX512)
inline constexpr int half_tile = 12;
#elif defined(TN_AVX2)
inline constexpr int half_tile = 2;
#else
inline constexpr int half_tile = 1;
#endif

/// One product with plain row strides, A in f32.
template <class Cfg> struct HalfGemm {
  static constexpr int64_t panel = panel_bytes(Cfg::K, 16);
  const float *a;
  int64_t lda;
  const uint8_t *b; ///< packed
  float *c;
  int64_t ldc, m;
};

/// sums[Rows][32] of two panels.
template <class Cfg, int Rows>
__attribute__((noinline)) void halves_tile(const HalfGemm<Cfg> &g, int64_t row,
                                           const uint8_t *b0, const uint8_t *b1,
                                           float *sums) {
  constexpr int pv = panel_vectors;
  vf acc[Rows][2 * pv];
  TN_UNROLL
  for (int i = 0; i < Rows; ++i)
    TN_UNROLL
  for (int v = 0; v < 2 * pv; ++v)
    acc[i][v] = vf(0);
  const float *a = g.a + row * g.lda;
  // A line has two rows of B: the first in the lower halves of its lanes.
  auto line = [&](int v) {
    const uint8_t *b = v < pv ? b0 : b1;
    return bits(load((const float *)(const void *)b + v % pv * vf::width));
  };
  auto add = [&](vf(&w)[2 * pv], int64_t k) {
    TN_UNROLL
    for (int i = 0; i < Rows; ++i) {
      vf x = vf(a[i * g.lda + k]);
      TN_UNROLL
      for (int v = 0; v < 2 * pv; ++v)
        acc[i][v] = fma(x, w[v], acc[i][v]);
    }
  };
  for (int64_t k = 0; k < Cfg::K;
       k += 2, b0 += group_bytes, b1 += group_bytes) {
    if constexpr (Rows <= 2) {
      fetch(b0 + codes_ahead);
      fetch(b1 + codes_ahead);
    }
    vf w[2 * pv];
    TN_UNROLL
    for (int v = 0; v < 2 * pv; ++v)
      w[v] = from_bits(shift_left<16>(line(v)));
    add(w, k);
    if (Cfg::K % 2 == 1 && k + 1 == Cfg::K)
      break;
    TN_UNROLL
    for (int v = 0; v < 2 * pv; ++v)
      w[v] = from_bits(line(v) & vi(int32_t(0xffff0000)));
    add(w, k + 1);
  }
  TN_UNROLL
  for (int i = 0; i < Rows; ++i)
    TN_UNROLL
  for (int v = 0; v < 2 * pv; ++v)
    store(sums + i * unit_columns + v * vf::width, acc[i][v]);
}

/// Rows `rows` and pairs of panels `columns` without tiles.
template <class Cfg, class Epilogue>
TN_FN void run_halves(const HalfGemm<Cfg> &g, Range rows, Range columns,
                      EpilogueArgs &e) {
  alignas(64) float sums[half_tile * unit_columns];
  // So many rows of A stay in a cache while panels of B go by.
  constexpr int64_t block =
      max_of(1, (1 << 18) / max_of(Cfg::K, 1) / half_tile) * half_tile;
  for (int64_t from = rows.begin; from < rows.end; from += block)
    for (int64_t x = columns.begin; x < columns.end; ++x) {
      int64_t col = x * unit_columns, to = min_of(rows.end, from + block);
      const uint8_t *b0 = g.b + col / panel_columns * g.panel;
      // The first of the two panels again, where there is but one.
      const uint8_t *b1 = col + panel_columns < Cfg::N ? b0 + g.panel : b0;
      for (int64_t r = from; r < to; r += half_tile) {
        int64_t count = min_of(half_tile, to - r);
        with_rows<half_tile>(
            count, [&](auto n) { halves_tile<Cfg, n>(g, r, b0, b1, sums); });
        finish_tile<Epilogue>(sums, unit_columns, g.c + r * g.ldc + col, g.ldc,
                              count, min_of(unit_columns, Cfg::N - col), r, col,
                              e);
      }
    }
}

/// A panel's tiles of bf16.
struct TilesOfHalves {
  using Sum = float;
#if defined(TN_AMX_TILES)
  template <int C, int A, int B> static TN_FN void multiply() {
    tile_multiply<C, A, B>();
  }
#endif
  static TN_FN vf to_f32(const float *sums) { return load(sums); }
};

#if !defined(TN_AMX_TILES)
TN_FN void halve_row(const float *, int64_t, uint16_t *) {}
#endif

template <class Cfg, class Epilogue = Identity>
void gemm_bf16(const tn_args *args) {
  constexpr int operands = Cfg::Operands::count, count = 2 + operands;
  static_assert(operands <= max_epilogue && Cfg::rank >= 2);
  constexpr int64_t row_bytes = half_row_bytes(Cfg::K);
  const tn_view *v = args->views, &result = v[2 + operands];
  int which[count] = {0, 2 + operands};
  for (int i = 0; i < operands; ++i)
    which[2 + i] = 2 + i;
  Space<count> s = space_of<count>(v, which, result.shape, Cfg::rank - 1);
  int64_t m = s.shape[s.rank - 1], outer = s.count(s.rank - 1);
  if (m == 0 || outer == 0 || Cfg::N == 0)
    return;
  int64_t offset[count];
  bool tiled = tiles_serve(m, 2 * Cfg::K);
  if (tiled) {
    Range mine = share(args, outer * m);
    for (int64_t r = mine.begin; r < mine.end; ++r) {
      s.locate(r / m, s.rank - 1, offset);
      halve_row((const float *)v[0].data + offset[0] +
                    r % m * s.stride[0][s.rank - 1],
                Cfg::K, (uint16_t *)(args->scratch + r * row_bytes));
    }
    args->barrier(args);
  }
  int64_t row_units = ceil_div(m, unit_rows);
  GridShare mine = share_units(args, outer * row_units, Cfg::N);
  EpilogueArgs e;
  e.params = args->params;
  each_matrix(mine.rows, row_units, [&](int64_t index, Range units) {
    s.locate(index, s.rank - 1, offset);
    set_operands<typename Cfg::Operands>(e, v + 2, s, 2, offset, Cfg::rank);
    HalfGemm<Cfg> g = {(const float *)v[0].data + offset[0],
                       s.stride[0][s.rank - 1],
                       (const uint8_t *)v[1].data,
                       (float *)result.data + offset[1],
                       s.stride[1][s.rank - 1],
                       m};
    if (tiled)
      run_tiles<TilesOfHalves, Cfg::N, 2 * Cfg::K, Epilogue>(
          {args->scratch + index * m * row_bytes, row_bytes, (const char *)g.b,
           g.panel, g.c, g.ldc, m},
          units, mine.columns, e, [](int64_t, float *starts) {
            __builtin_memset(starts, 0, panel_columns * sizeof(float));
          });
    else
      run_halves<Cfg, Epilogue>(
          g, {units.begin * unit_rows, min_of(m, units.end * unit_rows)},
          mine.columns, e);
  });
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CPU_GEMM_BF16_H
