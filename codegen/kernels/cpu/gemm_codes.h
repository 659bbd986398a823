//===- gemm_codes.h - matmul of f32 by a constant of codes ----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// C[..., M, N] = epilogue(A[..., M, K] * B[K, N]) in f32, B of 2-, 4- or 8-bit
/// codes that stay packed until they are in registers.
///
///   entry   tn::gemm_codes<Cfg, Epilogue>(args)
///   Cfg, views   codes.h
///   scratch none
///
/// Numerics: up to `few_rows` rows sum code * a (with AVX-512 and one zero for
/// all of 2- or 4-bit codes: (code - zero) * a) for each block, take zero times
/// the sum of a off and multiply by the scale then; more rows multiply by the
/// f32 value of B. Sums are f32, in chains of fused multiply-adds in an order
/// that does not depend on threads. K / block * 16 additions bound the error as
/// for f32, relative to the greatest code times |a| times the scale.
///
/// Threads take ranges of panels. A few rows are bound by reading B once;
/// more rows unpack a tile of B to the stack for each 112 (AVX-512) of them.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CPU_GEMM_CODES_H
#define TENON_KERNELS_CPU_GEMM_CODES_H

#include "kernels/cpu/codes.h"
#include "kernels/cpu/micro.h"

namespace tn {
inline namespace TN_FORM {

/// Rows whose sums fit the registers beside the codes.
inline constexpr int few_rows = 4;

/// Lanes of 32 bits at p.
TN_FN vi load_words(const uint8_t *p) { return bits(load((const float *)p)); }

/// What a code counts as: a number less its zero where one shuffle gives that,
/// else the number.
template <class Cfg> struct Decoder {
  static constexpr uint32_t mask = (1u << Cfg::bits) - 1;
#if defined(TN_AVX512)
  /// A shuffle looks at four bits and ignores those above.
  static constexpr bool takes_zero = Cfg::bits <= 4 && !Cfg::zeros;
  __m512 table;
  TN_FN Decoder() {
    alignas(64) float values[16];
    for (uint32_t i = 0; i < 16; ++i)
      values[i] = float(i & mask) - Cfg::zero;
    table = _mm512_load_ps(values);
  }
#else
  static constexpr bool takes_zero = false;
#endif

  /// The codes at bit `At` of each word.
  template <int At> TN_FN vf at(vi words) const {
#if defined(TN_AVX512)
    if constexpr (takes_zero)
      return vf(_mm512_permutexvar_ps(shift_right<At>(words).v, table));
#endif
    return to_float(shift_right<At>(words) & vi(int32_t(mask)));
  }
};

/// Calls f.template operator()<row, bit>() for the rows of a group, with the
/// bit at which their codes lie in a column's word.
template <int Bits, class F, int Row = 0> TN_FN void for_rows(F f) {
  if constexpr (Row < group_rows(Bits)) {
    f.template operator()<Row, Row % 4 * 8 + Row / 4 * Bits>();
    for_rows<Bits, F, Row + 1>(f);
  }
}

/// The sums of one block, in `chains` chains to hide the latency of additions.
template <class Cfg, int Rows> struct BlockSums {
  static constexpr int pv = panel_vectors, chains = Rows == 1 ? 4 : 2;
  vf sum[Rows][chains][pv];

  TN_FN BlockSums() {
    TN_UNROLL
    for (int i = 0; i < Rows; ++i)
      TN_UNROLL
    for (int c = 0; c < chains; ++c)
      TN_UNROLL
    for (int v = 0; v < pv; ++v)
      sum[i][c][v] = vf(0);
  }

  /// One group of codes with a[rows][group].
  TN_FN void add(const Decoder<Cfg> &decoder, const uint8_t *c, const float *a,
                 int64_t lda) {
    vi words[pv];
    TN_UNROLL
    for (int v = 0; v < pv; ++v)
      words[v] = load_words(c + v * vf::width * 4);
    for_rows<Cfg::bits>([&]<int Row, int Bit>() {
      TN_UNROLL
      for (int v = 0; v < pv; ++v) {
        vf code = decoder.template at<Bit>(words[v]);
        TN_UNROLL
        for (int i = 0; i < Rows; ++i)
          sum[i][Row % chains][v] =
              fma(vf(a[i * lda + Row]), code, sum[i][Row % chains][v]);
      }
    });
  }

  TN_FN vf total(int i, int v) const {
    vf x = sum[i][0][v] + sum[i][1][v];
    if constexpr (chains == 4)
      x = x + (sum[i][2][v] + sum[i][3][v]);
    return x;
  }
};

/// sums[Rows][16] = A[Rows, K] * panel; `totals` has A's sum in each block.
template <class Cfg, int Rows>
__attribute__((noinline)) void
few_rows_panel(const CodesB<Cfg> &b, int64_t panel, const float *a, int64_t lda,
               const float *totals, float *sums) {
  using B = CodesB<Cfg>;
  constexpr int pv = panel_vectors;
  constexpr int64_t whole = Cfg::K / B::group * B::group;
  Decoder<Cfg> decoder;
  vf acc[Rows][pv];
  TN_UNROLL
  for (int i = 0; i < Rows; ++i)
    TN_UNROLL
  for (int v = 0; v < pv; ++v)
    acc[i][v] = vf(0);
  const uint8_t *c = b.group_of(panel, 0);
  for (int64_t block = 0; block < B::blocks; ++block) {
    int64_t k = block * Cfg::block, end = min_of(Cfg::K, k + Cfg::block);
    BlockSums<Cfg, Rows> block_sums;
    for (; k < min_of(end, whole); k += B::group, c += group_bytes) {
      if constexpr (Rows == 1)
        fetch(c + codes_ahead);
      block_sums.add(decoder, c, a + k, lda);
    }
    if constexpr (Rows == 1)
      b.fetch_scales(panel, block);
    if (k < end) { // a last group that is cut short
      float rest[Rows][B::group] = {};
      for (int i = 0; i < Rows; ++i)
        for (int64_t j = k; j < end; ++j)
          rest[i][j - k] = a[i * lda + j];
      block_sums.add(decoder, c, rest[0], B::group);
    }
    TN_UNROLL
    for (int i = 0; i < Rows; ++i) {
      TN_UNROLL
      for (int v = 0; v < pv; ++v) {
        vf sum = block_sums.total(i, v);
        if constexpr (!Decoder<Cfg>::takes_zero)
          sum = fnma(b.zero(panel, block, v), vf(totals[i * B::blocks + block]),
                     sum);
        acc[i][v] = fma(b.scale(panel, block, v), sum, acc[i][v]);
      }
    }
  }
  store_sums(acc, sums);
}

/// totals[rows][blocks]: the sum of each block of A's rows.
template <class Cfg>
TN_FN void block_totals(const float *a, int64_t lda, int64_t rows,
                        float *totals) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t block = 0; block < CodesB<Cfg>::blocks; ++block) {
      int64_t k = block * Cfg::block, end = min_of(Cfg::K, k + Cfg::block);
      vf sum = vf(0);
      for (; k + vf::width <= end; k += vf::width)
        sum += load(a + i * lda + k);
      sum += load_n(a + i * lda + k, end - k);
      totals[i * CodesB<Cfg>::blocks + block] = reduce_add(sum);
    }
}

/// Rows [first, first + n) of a panel in f32: out[n][16]; `first` and, unless
/// the matrix ends there, `n` are multiples of 16. Writes whole groups.
template <class Cfg>
TN_FN void unpack_codes(const CodesB<Cfg> &b, int64_t panel, int64_t first,
                        int64_t n, float *out) {
  Decoder<Cfg> decoder;
  const uint8_t *c = b.group_of(panel, first);
  for (int64_t k = first; k < first + n;) {
    int64_t block = k / Cfg::block;
    int64_t end = min_of(first + n, (block + 1) * Cfg::block);
    vf s[panel_vectors], z[panel_vectors];
    for (int v = 0; v < panel_vectors; ++v) {
      s[v] = b.scale(panel, block, v);
      z[v] = b.zero(panel, block, v);
    }
    for (; k < end; k += CodesB<Cfg>::group, c += group_bytes) {
      for (int v = 0; v < panel_vectors; ++v) {
        vi words = load_words(c + v * vf::width * 4);
        for_rows<Cfg::bits>([&]<int Row, int Bit>() {
          vf code = decoder.template at<Bit>(words);
          if constexpr (!Decoder<Cfg>::takes_zero)
            code = code - z[v];
          store(out + Row * panel_columns + v * vf::width, code * s[v]);
        });
      }
      out += CodesB<Cfg>::group * panel_columns;
    }
  }
}

/// sums[rows][tile_columns] = A[rows, K] * column tile x, by pieces of B in
/// f32.
template <class Cfg>
TN_FN void many_rows_tile(const CodesB<Cfg> &b, int64_t x, const float *a,
                          int64_t lda, int64_t rows, float *sums) {
  constexpr int64_t piece = 256;
  alignas(64) float unpacked[tile_panels][piece * panel_columns];
  Tile t = {};
  t.lda = lda;
  t.ldc = tile_columns;
  for (int64_t k = 0; k < Cfg::K; k += piece) {
    t.k = min_of(piece, Cfg::K - k);
    t.accumulate = k > 0;
    for (int p = 0; p < tile_panels; ++p) {
      // A last tile of one panel reads it twice.
      int64_t panel = min_of(x * tile_panels + p, CodesB<Cfg>::panels - 1);
      unpack_codes<Cfg>(b, panel, k, t.k, unpacked[p]);
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
TN_FN void run_codes(const tn_args *args, const CodesB<Cfg> &b, const float *a,
                     int64_t lda, float *c, int64_t ldc, int64_t m,
                     EpilogueArgs &e) {
  constexpr int64_t chunk = 8 * tile_rows;
  alignas(64) float sums[chunk * tile_columns];
  if (m <= few_rows) {
    float totals[few_rows * CodesB<Cfg>::blocks];
    if constexpr (!Decoder<Cfg>::takes_zero)
      block_totals<Cfg>(a, lda, m, totals);
    Range mine = share(args, CodesB<Cfg>::panels);
    for (int64_t p = mine.begin; p < mine.end; ++p) {
      int64_t col = p * panel_columns;
      with_rows<few_rows>(m, [&](auto n) {
        few_rows_panel<Cfg, n>(b, p, a, lda, totals, sums);
      });
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
void gemm_codes(const tn_args *args) {
  CodesB<Cfg> b(args->views);
  EpilogueArgs e;
  for_each_product<Cfg>(args, e,
                        [&](const float *a, int64_t lda, float *c, int64_t ldc,
                            int64_t m, int64_t) {
                          run_codes<Cfg, Epilogue>(args, b, a, lda, c, ldc, m,
                                                   e);
                        });
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CPU_GEMM_CODES_H
