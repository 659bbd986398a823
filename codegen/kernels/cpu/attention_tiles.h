//===- attention_tiles.h - attention's products in bf16, on tiles ---------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The block of queries of attention.h for a Cfg with products = 1, on AMX: q,
/// k, v and the weights are rounded to bf16, scores and sums stay f32. Keys,
/// the depth of heads and the weights are filled up with zeros to whole tiles.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CPU_ATTENTION_TILES_H
#define TENON_KERNELS_CPU_ATTENTION_TILES_H

#include "kernels/cpu/amx_split.h"
#include "kernels/cpu/attention_block.h"
#include "kernels/cpu/transpose.h"

namespace tn {
inline namespace TN_FORM {

#if defined(TN_AMX_TILES)

/// Rows of A in bf16 by panels of B (codes_pack.h, 16 bits), all in whole
/// steps of 32 k; panels `panel` bytes apart.
struct TilePanels {
  const uint16_t *a;
  int64_t lda; ///< elements
  const char *b;
  int64_t panel;
  float *c;
  int64_t ldc, steps;
  bool accumulate;

  /// C[16 RowTiles, 16 or 32] from row r and panel p on.
  template <int RowTiles, int Panels> TN_FN void unit(int64_t r, int64_t p) {
    constexpr bool two_rows = RowTiles > 1, two_panels = Panels > 1;
    const uint16_t *a0 = a + r * lda, *a1 = a0 + 16 * lda;
    const char *b0 = b + p * panel, *b1 = b0 + panel;
    float *c0 = c + r * ldc + p * panel_columns, *c1 = c0 + 16 * ldc;
    each_sum<RowTiles, Panels>(c0, c1, Begin{accumulate, ldc * 4});
    for (int64_t s = 0; s < steps; ++s, b0 += 1024, b1 += 1024) {
      tile_load<4>(a0 + s * 32, lda * 2);
      tile_load<6>(b0);
      tile_multiply<0, 4, 6>();
      if constexpr (two_panels) {
        tile_load<7>(b1);
        tile_multiply<1, 4, 7>();
      }
      if constexpr (two_rows) {
        tile_load<5>(a1 + s * 32, lda * 2);
        tile_multiply<2, 5, 6>();
        if constexpr (two_panels)
          tile_multiply<3, 5, 7>();
      }
    }
    each_sum<RowTiles, Panels>(c0, c1, End{ldc * 4});
  }

  struct Begin {
    bool accumulate;
    int64_t line;
    template <int Tile> TN_FN void operator()(float *p) const {
      if (accumulate)
        tile_load<Tile>(p, line);
      else
        tile_zero<Tile>();
    }
  };
  struct End {
    int64_t line;
    template <int Tile> TN_FN void operator()(float *p) const {
      tile_store<Tile>(p, line);
    }
  };
  /// Calls f<i>(its place) for the tiles of sums.
  template <int RowTiles, int Panels, class F>
  TN_FN static void each_sum(float *c0, float *c1, const F &f) {
    f.template operator()<0>(c0);
    if constexpr (Panels > 1)
      f.template operator()<1>(c0 + panel_columns);
    if constexpr (RowTiles > 1)
      f.template operator()<2>(c1);
    if constexpr (RowTiles > 1 && Panels > 1)
      f.template operator()<3>(c1 + panel_columns);
  }

  /// C[rows, 16 panels], rows rounded up to 16.
  __attribute__((noinline)) void run(int64_t rows, int64_t panels) {
    for (int64_t p = 0; p < panels; p += 2)
      for (int64_t r = 0; r < rows; r += 32) {
        if (r + 16 < rows && p + 1 < panels)
          unit<2, 2>(r, p);
        else if (r + 16 < rows)
          unit<2, 1>(r, p);
        else if (p + 1 < panels)
          unit<1, 2>(r, p);
        else
          unit<1, 1>(r, p);
      }
  }
};

/// A panel of 16 columns, the first `width` of B[k, n] and zeros, of bf16 in
/// whole steps of 32 k.
TN_FN void halve_panel(const float *b, int64_t k, int64_t row_stride,
                       int64_t width, char *out) {
  for (int64_t i = 0; i < round_up(k, 32); i += 2, out += tile_line) {
    vf x = i < k ? load_n(b + i * row_stride, width) : vf(0);
    vf y = i + 1 < k ? load_n(b + (i + 1) * row_stride, width) : vf(0);
    _mm512_store_si512(out, join_upper(round_upper(x), round_upper(y)));
  }
}

template <class Cfg> struct TileBlock : SoftmaxBlock<Cfg> {
  using Base = SoftmaxBlock<Cfg>;
  using Base::D, Base::Dv, Base::wide_v;
  using typename Base::A;
  static constexpr int64_t deep = round_up(D, 32);
  static constexpr int64_t key_panels = key_block / panel_columns,
                           value_panels = ceil_div(Dv, panel_columns);

  alignas(64) uint16_t q[query_block * deep];
  alignas(64) uint16_t weights[query_block * key_block];
  alignas(64) char k[key_panels * deep * 32];
  alignas(64) char v[value_panels * key_block * 32];
  /// 16 rows in bf16, or columns of f32 side by side.
  alignas(64) uint16_t some_rows[16 * deep];
  alignas(64) float panel[max_of(D, key_block *panel_columns)];
  Tiles tiles;

  /// Rows of D floats, `row_stride` apart, as bf16.
  TN_FN void halve_rows(const float *in, int64_t row_stride, int64_t stride,
                        int64_t rows, uint16_t *out) {
    for (int64_t i = 0; i < rows; ++i, in += row_stride, out += deep) {
      for (int64_t d = 0; stride != 1 && d < D; ++d)
        panel[d] = in[d * stride];
      halve_row(stride == 1 ? in : panel, D, out);
    }
  }

  TN_FN void load_queries(const A &a, const float *row, int64_t rows) {
    const int64_t *stride = a.views[0].stride;
    halve_rows(row, stride[1], stride[3], rows, q);
  }

  TN_FN void load_keys(const A &a, const float *keys, const float *values,
                       int64_t n) {
    const int64_t *ks = a.views[1].stride, *vs = a.views[2].stride;
    char *out = k;
    for (int64_t j = 0; j < n; j += panel_columns, out += deep * 32) {
      int64_t rows = min_of(panel_columns, n - j);
      if (rows < panel_columns)
        __builtin_memset(some_rows, 0, sizeof(some_rows));
      halve_rows(keys + j * ks[1], ks[1], ks[3], rows, some_rows);
      // Pairs of numbers are moved as one.
      transpose((const float *)some_rows, deep / 2, (float *)out, panel_columns,
                panel_columns, deep / 2);
    }
    out = v;
    for (int64_t j = 0; j < Dv; j += panel_columns, out += key_block * 32) {
      const float *in = values + j * vs[3];
      int64_t width = min_of(panel_columns, Dv - j);
      if (vs[3] != 1)
        pack_panels(in, n, width, vs[1], vs[3], panel);
      halve_panel(vs[3] == 1 ? in : panel, n,
                  vs[3] == 1 ? vs[1] : panel_columns, width, out);
    }
  }

  /// scores[rows, n] = q[rows, D] * k[n, D]^T.
  TN_FN void multiply_keys(int64_t rows, int64_t n) {
    TilePanels{q, deep, k, deep * 32, this->scores, key_block, deep / 32, false}
        .run(rows, ceil_div(n, panel_columns));
  }

  /// acc[rows, Dv] (+)= scores[rows, n] * v[n, Dv].
  TN_FN void multiply_values(int64_t rows, int64_t n) {
    for (int64_t r = 0; r < rows; ++r)
      halve_row(this->scores + r * key_block, n, weights + r * key_block);
    TilePanels{weights,         key_block,         v,
               key_block * 32,  this->acc,         wide_v,
               ceil_div(n, 32), !this->first_block}
        .run(rows, value_panels);
  }
};

/// Whether a Cfg's products may be rounded, and there are tiles for them.
template <class Cfg> constexpr bool attends_by_tiles() {
  return requires { requires Cfg::products == 1; };
}

#else

template <class Cfg> struct TileBlock;
template <class Cfg> constexpr bool attends_by_tiles() { return false; }

#endif

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CPU_ATTENTION_TILES_H
