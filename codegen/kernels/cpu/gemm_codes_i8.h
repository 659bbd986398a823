//===- gemm_codes_i8.h - matmul of rows in 8 bits by a constant of codes --===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// C[..., M, N] = epilogue(A'[..., M, K] * B[K, N]), B of 2-, 4- or 8-bit codes
/// and A' = A rounded to 8 bits: what MatMulNBits means by accuracy_level 4.
///
///   entry   tn::gemm_codes_i8<Cfg, Epilogue>(args)
///   Cfg, views   codes.h
///   scratch i8_scratch_per_row(K, block) bytes (codes_pack.h) for each row of
///   A
///
/// A row of A is cut into spans: the blocks of B, those of more than 256 rows
/// cut again. A span has the scale max |a| / 127 and the numbers
/// q = round(a / scale), halves to even, so |a' - a| <= max |a| / 254. A span
/// below 2^-100 counts as 0; one with an infinity or NaN gives NaN.
///
/// Numerics: a span's sum of code * q is exact in 32 bits; zero times the sum
/// of q is taken off (exactly, if one integral zero serves all); times both
/// scales, f32 sums over spans in order. Results do not depend on threads.
///
/// First the threads share the spans of A, then, after a barrier, the panels.
/// Up to `tile` rows are multiplied together; a few rows are bound by reading B
/// once.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CPU_GEMM_CODES_I8_H
#define TENON_KERNELS_CPU_GEMM_CODES_I8_H

#include "kernels/cpu/codes.h"
#include "kernels/cpu/dot.h"
#include "kernels/cpu/grid.h"

namespace tn {
inline namespace TN_FORM {

/// A in 8 bits, in the launch's scratch memory.
template <class Cfg> struct RowsI8 {
  static constexpr int64_t row_bytes = i8_row_bytes(Cfg::K);
  static constexpr int64_t per_block = spans_of_block(Cfg::block);
  static constexpr int64_t spans = span_count(Cfg::K, Cfg::block);
  /// Whether zero * sum is an integer, which sums begin with.
  static constexpr bool exact_zero = !Cfg::zeros &&
                                     Cfg::zero == float(int32_t(Cfg::zero)) &&
                                     Cfg::zero >= 0 && Cfg::zero < 256;

  int8_t *codes;   ///< [rows][row_bytes]
  float *scales;   ///< [rows][spans]
  int32_t *starts; ///< [rows][spans]: -zero * sum, or the sum

  TN_FN RowsI8(char *scratch, int64_t rows)
      : codes((int8_t *)scratch), scales((float *)(codes + rows * row_bytes)),
        starts((int32_t *)(scales + rows * spans)) {}

  /// The rows of B of span `s`.
  static TN_FN Range span(int64_t s) {
    if constexpr (per_block == 1 && Cfg::K % Cfg::block == 0)
      return {s * Cfg::block, (s + 1) * Cfg::block};
    int64_t block = s / per_block, part = s % per_block;
    int64_t begin = block * Cfg::block + part * span_rows(Cfg::block);
    int64_t end =
        min_of((block + 1) * Cfg::block, begin + span_rows(Cfg::block));
    return {min_of(begin, Cfg::K), min_of(end, Cfg::K)};
  }

  /// Rounds span `s` of row `row`, which is `a`.
  void round_span(const float *a, int64_t row, int64_t s) const {
    Range r = span(s);
    constexpr int w = vf::width;
    vf most = vf(0), poison = vf(0);
    for (int64_t k = r.begin; k < r.end; k += w) {
      vf x = load_n(a + k, r.end - k);
      most = max_raw(abs(x), most);
      poison = fma(x, vf(0), poison); // NaN if x is not finite
    }
    float greatest = reduce_max(most), poisoned = reduce_add(poison);
    bool counts = greatest >= 0x1p-100f && poisoned == 0;
    vf inverse = vf(counts ? 127 / greatest : 0);
    vi sum = vi(0);
    int8_t *q = codes + row * row_bytes;
    // Up to a multiple of 16, where the group that K ends in is filled with 0.
    for (int64_t k = r.begin; k < round_up(r.end, 16); k += w) {
      vf x = counts && k < r.end ? load_n(a + k, r.end - k) : vf(0);
      vi rounded = to_int(x * inverse);
      sum = sum + rounded;
      store_i8(q + k, rounded);
    }
    scales[row * spans + s] = (counts ? greatest / 127 : 0) + poisoned;
    int32_t total = int32_t(reduce_add(to_float(sum)));
    starts[row * spans + s] = exact_zero ? -int32_t(Cfg::zero) * total : total;
  }
};

#if defined(TN_AVX512)
inline constexpr int i8_tile = 8;
#else
inline constexpr int i8_tile = 2;
#endif

/// sums[Rows][16] = rows [row, row + Rows) of A * panel.
template <class Cfg, int Rows>
__attribute__((noinline)) void i8_panel(const CodesB<Cfg> &b,
                                        const RowsI8<Cfg> &a, int64_t panel,
                                        int64_t row, float *sums) {
  using A = RowsI8<Cfg>;
  constexpr int pv = panel_vectors, bits = Cfg::bits;
  constexpr bool is_few = Rows <= 2; // bound by memory
  vf acc[Rows][pv];
  TN_UNROLL
  for (int i = 0; i < Rows; ++i)
    TN_UNROLL
  for (int v = 0; v < pv; ++v)
    acc[i][v] = vf(0);
  const uint8_t *c = b.group_of(panel, 0);
  const int8_t *q = a.codes + row * A::row_bytes;
  for (int64_t s = 0; s < A::spans; ++s) {
    Range span = A::span(s);
    vi dots[Rows][pv];
    TN_UNROLL
    for (int i = 0; i < Rows; ++i) {
      int32_t start = A::exact_zero ? a.starts[(row + i) * A::spans + s] : 0;
      TN_UNROLL
      for (int v = 0; v < pv; ++v)
        dots[i][v] = vi(start);
    }
    for (int64_t k = span.begin; k < span.end;
         k += CodesB<Cfg>::group, c += group_bytes) {
      if constexpr (is_few)
        fetch(c + codes_ahead);
      for_fields<bits>([&]<int Field>() {
        vb w[pv];
        TN_UNROLL
        for (int v = 0; v < pv; ++v)
          w[v] =
              code_bytes<Field * bits, bits>(load_bytes(c + v * vf::width * 4));
        TN_UNROLL
        for (int i = 0; i < Rows; ++i) {
          vb x = splat_word(q + i * A::row_bytes + k + Field * 4);
          TN_UNROLL
          for (int v = 0; v < pv; ++v)
            dots[i][v] = dot<bits>(dots[i][v], w[v], x);
        }
      });
    }
    int64_t block = s / A::per_block;
    if constexpr (is_few)
      b.fetch_scales(panel, block);
    TN_UNROLL
    for (int v = 0; v < pv; ++v) {
      vf scale = b.scale(panel, block, v);
      TN_UNROLL
      for (int i = 0; i < Rows; ++i) {
        vf x = to_float(dots[i][v]);
        if constexpr (!A::exact_zero)
          x = fnma(b.zero(panel, block, v),
                   vf(float(a.starts[(row + i) * A::spans + s])), x);
        acc[i][v] =
            fma(x * scale, vf(a.scales[(row + i) * A::spans + s]), acc[i][v]);
      }
    }
  }
  store_sums(acc, sums);
}

/// The panels that are this thread's, for rows [first, first + m) of A.
template <class Cfg, class Epilogue>
TN_FN void run_codes_i8(const tn_args *args, const CodesB<Cfg> &b,
                        const RowsI8<Cfg> &a, int64_t first, float *c,
                        int64_t ldc, int64_t m, EpilogueArgs &e) {
  // So many rows of A stay in a cache while panels of B go by.
  constexpr int64_t chunk =
      max_of(1, (1 << 19) / RowsI8<Cfg>::row_bytes / i8_tile) * i8_tile;
  alignas(64) float sums[i8_tile * panel_columns];
  Range mine = share(args, CodesB<Cfg>::panels);
  for (int64_t from = 0; from < m; from += chunk)
    for (int64_t p = mine.begin; p < mine.end; ++p)
      for (int64_t r = from; r < min_of(m, from + chunk); r += i8_tile) {
        int64_t rows = min_of(i8_tile, m - r), col = p * panel_columns;
        with_rows<i8_tile>(
            rows, [&](auto n) { i8_panel<Cfg, n>(b, a, p, first + r, sums); });
        finish_tile<Epilogue>(sums, panel_columns, c + r * ldc + col, ldc, rows,
                              min_of(panel_columns, Cfg::N - col), r, col, e);
      }
}

template <class Cfg, class Epilogue = Identity>
void gemm_codes_i8(const tn_args *args) {
  using A = RowsI8<Cfg>;
  const tn_view &result = args->views[3 + Cfg::zeros + Cfg::Operands::count];
  A a(args->scratch, extent(result, 0, Cfg::rank - 1));
  CodesB<Cfg> b(args->views);
  EpilogueArgs e;
  for_each_product<Cfg>(args, e,
                        [&](const float *x, int64_t lda, float *, int64_t,
                            int64_t m, int64_t first) {
                          Range mine = share(args, m * A::spans);
                          for (int64_t i = mine.begin; i < mine.end; ++i)
                            a.round_span(x + i / A::spans * lda,
                                         first + i / A::spans, i % A::spans);
                        });
  args->barrier(args);
  for_each_product<Cfg>(args, e,
                        [&](const float *, int64_t, float *c, int64_t ldc,
                            int64_t m, int64_t first) {
                          run_codes_i8<Cfg, Epilogue>(args, b, a, first, c, ldc,
                                                      m, e);
                        });
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CPU_GEMM_CODES_I8_H
