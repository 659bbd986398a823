//===- gemm_q4.h - matmul by a constant of 4-bit codes --------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// C[..., M, N] = epilogue(A[..., M, K] * B[K, N]) in f32, with
///   B[k, n] = scale[k / block, n] * (code[k, n] - zero[k / block, n])
/// and codes 0 .. 15 that stay packed until they are in registers.
///
///   entry   tn::gemm_q4<Cfg, Epilogue>(args)
///
///   Cfg     static constexpr int64_t N, K   the sizes of B; K even, both >= 1
///           static constexpr int64_t block  even
///           static constexpr bool zeros     whether there is a view of zeros;
///           static constexpr float zero     else each of them
///           static constexpr int rank       rank of A, C and the epilogue's
///                                           operands; at least 2
///           using Operands = tn::types<...> as for gemm
///
///   views   0              A      f32, last dimension contiguous
///           1              codes  panels of 16 columns: for each, K / 2 rows
///           of
///                                 16 bytes, the code of k even in the low half
///                                 of a byte, of k + 1 in the high one
///           2              scales f32 B'[ceil(K / block), N], packed as
///                                 gemm_pack.h says
///           3              zeros  the same, if Cfg::zeros
///           then           epilogue operands (epilogue.h)
///           last           C      f32, last dimension contiguous
///   scratch none
///
/// Shapes as for gemm. C may not overlap any operand.
///
/// Numerics: up to `few_rows` rows sum code * a and a for each block and
/// multiply by the scale then; more rows multiply by the f32 value of B. Sums
/// are f32, in chains of fused multiply-adds in an order that does not depend
/// on threads. K / block * 16 additions bound the error as for f32.
///
/// Threads take ranges of panels. A few rows are bound by reading B once;
/// more rows unpack a tile of B to the stack for each 112 (AVX-512) of them.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CPU_GEMM_Q4_H
#define TENON_KERNELS_CPU_GEMM_Q4_H

#include "kernels/cpu/gemm.h"

namespace tn {
inline namespace TN_FORM {

/// Rows whose sums fit the registers beside the codes.
inline constexpr int few_rows = 4;
/// Vectors in a panel's row.
inline constexpr int panel_vectors = int(panel_columns / vf::width);

/// The bytes p[0 .. vf::width) as integers.
TN_FN vi load_codes(const uint8_t *p) {
#if defined(TN_AVX512)
  return vi(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p)));
#elif defined(TN_AVX2)
  return vi(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p)));
#else
  vi x;
  for (int i = 0; i < vf::width; ++i)
    x.v[i] = p[i];
  return x;
#endif
}
TN_FN vf low_codes(vi pairs) { return to_float(pairs & vi(15)); }
TN_FN vf high_codes(vi pairs) { return to_float(shift_right<4>(pairs)); }

/// B in panels.
template <class Cfg> struct QuantisedB {
  static constexpr int64_t blocks = ceil_div(Cfg::K, Cfg::block);
  const uint8_t *codes;
  const float *scales, *zeros;

  TN_FN const uint8_t *codes_of(int64_t panel) const {
    return codes + panel * (Cfg::K / 2) * panel_columns;
  }
  TN_FN vf scale(int64_t panel, int64_t b, int v) const {
    return load(scales + (panel * blocks + b) * panel_columns + v * vf::width);
  }
  TN_FN vf zero(int64_t panel, int64_t b, int v) const {
    if constexpr (!Cfg::zeros)
      return vf(Cfg::zero);
    return load(zeros + (panel * blocks + b) * panel_columns + v * vf::width);
  }

  /// Rows [first, first + n) of a panel, both even, in f32: out[n][16].
  TN_FN void unpack(int64_t panel, int64_t first, int64_t n, float *out) const {
    const uint8_t *c = codes_of(panel) + first / 2 * panel_columns;
    for (int64_t k = first; k < first + n;) {
      int64_t b = k / Cfg::block, end = min_of(first + n, (b + 1) * Cfg::block);
      vf s[panel_vectors], z[panel_vectors];
      for (int v = 0; v < panel_vectors; ++v) {
        s[v] = scale(panel, b, v);
        z[v] = zero(panel, b, v);
      }
      for (; k < end; k += 2, c += panel_columns)
        for (int v = 0; v < panel_vectors; ++v) {
          vi pairs = load_codes(c + v * vf::width);
          store(out + v * vf::width, (low_codes(pairs) - z[v]) * s[v]);
          store(out + panel_columns + v * vf::width,
                (high_codes(pairs) - z[v]) * s[v]);
          if (v + 1 == panel_vectors)
            out += 2 * panel_columns;
        }
    }
  }
};

/// sums[Rows][16] = A[Rows, K] * panel.
template <class Cfg, int Rows>
__attribute__((noinline)) void few_rows_panel(const QuantisedB<Cfg> &b,
                                              int64_t panel, const float *a,
                                              int64_t lda, float *sums) {
  constexpr int pv = panel_vectors;
  vf acc[Rows][pv];
  TN_UNROLL
  for (int i = 0; i < Rows; ++i)
    TN_UNROLL
  for (int v = 0; v < pv; ++v)
    acc[i][v] = vf(0);
  const uint8_t *c = b.codes_of(panel);
  for (int64_t block = 0; block < b.blocks; ++block) {
    int64_t first = block * Cfg::block,
            end = min_of(Cfg::K, first + Cfg::block);
    vf even[Rows][pv], odd[Rows][pv];
    float total[Rows];
    TN_UNROLL
    for (int i = 0; i < Rows; ++i) {
      total[i] = 0;
      TN_UNROLL
      for (int v = 0; v < pv; ++v)
        even[i][v] = odd[i][v] = vf(0);
    }
    for (int64_t k = first; k < end; k += 2, c += panel_columns) {
      vf low[pv], high[pv];
      TN_UNROLL
      for (int v = 0; v < pv; ++v) {
        vi pairs = load_codes(c + v * vf::width);
        low[v] = low_codes(pairs);
        high[v] = high_codes(pairs);
      }
      TN_UNROLL
      for (int i = 0; i < Rows; ++i) {
        float x = a[i * lda + k], y = a[i * lda + k + 1];
        total[i] += x + y;
        TN_UNROLL
        for (int v = 0; v < pv; ++v) {
          even[i][v] = fma(vf(x), low[v], even[i][v]);
          odd[i][v] = fma(vf(y), high[v], odd[i][v]);
        }
      }
    }
    TN_UNROLL
    for (int i = 0; i < Rows; ++i) {
      TN_UNROLL
      for (int v = 0; v < pv; ++v) {
        vf sum =
            fnma(b.zero(panel, block, v), vf(total[i]), even[i][v] + odd[i][v]);
        acc[i][v] = fma(b.scale(panel, block, v), sum, acc[i][v]);
      }
    }
  }
  TN_UNROLL
  for (int i = 0; i < Rows; ++i)
    TN_UNROLL
  for (int v = 0; v < pv; ++v)
    store(sums + i * panel_columns + v * vf::width, acc[i][v]);
}

template <class Cfg, int Rows = few_rows>
TN_FN void few_rows_of(int64_t rows, const QuantisedB<Cfg> &b, int64_t panel,
                       const float *a, int64_t lda, float *sums) {
  if (rows == Rows)
    return few_rows_panel<Cfg, Rows>(b, panel, a, lda, sums);
  if constexpr (Rows > 1)
    few_rows_of<Cfg, Rows - 1>(rows, b, panel, a, lda, sums);
}

/// sums[rows][tile_columns] = A[rows, K] * column tile x, by pieces of B in
/// f32.
template <class Cfg>
TN_FN void many_rows_tile(const QuantisedB<Cfg> &b, int64_t x, const float *a,
                          int64_t lda, int64_t rows, float *sums) {
  constexpr int64_t piece = 256;
  alignas(64) float unpacked[tile_panels][piece * panel_columns];
  constexpr int64_t panels = ceil_div(Cfg::N, panel_columns);
  Tile t = {};
  t.lda = lda;
  t.ldc = tile_columns;
  for (int64_t k = 0; k < Cfg::K; k += piece) {
    t.k = min_of(piece, Cfg::K - k);
    t.accumulate = k > 0;
    for (int p = 0; p < tile_panels; ++p) {
      // A last tile of one panel reads it twice.
      int64_t panel = min_of(x * tile_panels + p, panels - 1);
      b.unpack(panel, k, t.k, unpacked[p]);
      t.b[p] = unpacked[p];
    }
    for (int64_t r = 0; r < rows; r += tile_rows) {
      t.a = a + r * lda + k;
      t.c = sums + r * tile_columns;
      micro_tile(min_of(tile_rows, rows - r), t);
    }
  }
}

/// One product with plain row strides, for the panels (few rows) or column
/// tiles that are this thread's.
template <class Cfg, class Epilogue>
TN_FN void run_q4(const tn_args *args, const QuantisedB<Cfg> &b, const float *a,
                  int64_t lda, float *c, int64_t ldc, int64_t m,
                  EpilogueArgs &e) {
  constexpr int64_t chunk = 8 * tile_rows;
  alignas(64) float sums[chunk * tile_columns];
  if (m <= few_rows) {
    Range mine = share(args, ceil_div(Cfg::N, panel_columns));
    for (int64_t p = mine.begin; p < mine.end; ++p) {
      int64_t col = p * panel_columns;
      few_rows_of<Cfg>(m, b, p, a, lda, sums);
      finish_tile<Epilogue>(sums, panel_columns, c + col, ldc, m,
                            min_of(panel_columns, Cfg::N - col), 0, col, e);
    }
    return;
  }
  Range mine = share(args, ceil_div(Cfg::N, tile_columns));
  for (int64_t x = mine.begin; x < mine.end; ++x)
    for (int64_t r = 0; r < m; r += chunk) {
      int64_t rows = min_of(chunk, m - r), col = x * tile_columns;
      many_rows_tile<Cfg>(b, x, a + r * lda, lda, rows, sums);
      finish_tile<Epilogue>(sums, tile_columns, c + r * ldc + col, ldc, rows,
                            min_of(tile_columns, Cfg::N - col), r, col, e);
    }
}

template <class Cfg, class Epilogue = Identity>
void gemm_q4(const tn_args *args) {
  constexpr int first = 3 + Cfg::zeros, operands = Cfg::Operands::count,
                count = 2 + operands;
  static_assert(operands <= max_epilogue && Cfg::rank >= 2);
  static_assert(Cfg::K % 2 == 0 && Cfg::block % 2 == 0);
  const tn_view *v = args->views;
  int which[count] = {0, first + operands};
  for (int i = 0; i < operands; ++i)
    which[2 + i] = first + i;
  const tn_view &result = v[first + operands];
  Space<count> s = space_of<count>(v, which, result.shape, Cfg::rank - 1);
  int64_t m = s.shape[s.rank - 1], outer = s.count(s.rank - 1);
  if (m == 0)
    return;
  QuantisedB<Cfg> b = {(const uint8_t *)v[1].data, (const float *)v[2].data,
                       Cfg::zeros ? (const float *)v[3].data : nullptr};
  EpilogueArgs e;
  e.params = args->params;
  for (int64_t index = 0; index < outer; ++index) {
    int64_t offset[count];
    s.locate(index, s.rank - 1, offset);
    set_operands<typename Cfg::Operands>(e, v + first, s, 2, offset, Cfg::rank);
    run_q4<Cfg, Epilogue>(
        args, b, (const float *)v[0].data + offset[0], s.stride[0][s.rank - 1],
        (float *)result.data + offset[1], s.stride[1][s.rank - 1], m, e);
  }
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CPU_GEMM_Q4_H
