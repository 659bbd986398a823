//===- small_weights_bench.cpp - products with weights below 32 bits ------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "bench/kernels/kernel_bench.h"
#include "kernels/cpu/gemm_bf16.h"
#include "kernels/cpu/gemm_bytes.h"
#include "kernels/cpu/gemm_codes.h"
#include "kernels/cpu/gemm_codes_i8.h"

using namespace bench;

namespace {

template <int64_t N_, int64_t K_> struct HalfCfg {
  static constexpr int64_t N = N_, K = K_;
  static constexpr int rank = 2;
  using Operands = tn::types<>;
};

/// So many rows go to the tiles, where there are any.
constexpr int64_t tileRows = 16;

template <int64_t K, int64_t N> void bf16(benchmark::State &state) {
  int64_t m = state.range(0);
  Operand a({m, K}), b({K * N}, 2), c({m, N});
  tn_unit unit = [](const tn_args *x) { tn::gemm_bf16<HalfCfg<N, K>>(x); };
  measure(state, unit, {a.view(), b.view(), c.view()}, 2.0 * double(m) * N * K,
          2.0 * N * K, {m >= tileRows ? tilesPeak<false> : fmaPeak},
          m * tn::half_row_bytes(K));
}

template <int64_t K, int64_t N> void bytes(benchmark::State &state) {
  int64_t m = state.range(0);
  Operand a({m, K}, 1), zero({1}), b({K * N}, 1), sums({N}), c({m, N});
  *reinterpret_cast<float *>(zero.data.data()) = 3;
  tn_unit unit = [](const tn_args *x) { tn::gemm_bytes<HalfCfg<N, K>>(x); };
  measure(state, unit, {a.view(), zero.view(), b.view(), sums.view(), c.view()},
          2.0 * double(m) * N * K, double(N * K),
          {m >= tileRows ? tilesPeak<true> : bytesPeak});
}

template <int64_t N_, int64_t K_> struct CodesCfg : HalfCfg<N_, K_> {
  static constexpr int64_t block = 32;
  static constexpr int bits = 4;
  static constexpr bool zeros = false;
  static constexpr float zero = 8;
};

template <int64_t K, int64_t N, bool EightBitRows>
void codes(benchmark::State &state) {
  using Cfg = CodesCfg<N, K>;
  int64_t m = state.range(0);
  Operand a({m, K}), b({K * N / 2}, 1), scales({K / Cfg::block * N}), c({m, N});
  tn_unit unit = [](const tn_args *x) {
    if constexpr (EightBitRows)
      tn::gemm_codes_i8<Cfg>(x);
    else
      tn::gemm_codes<Cfg>(x);
  };
  measure(state, unit, {a.view(), b.view(), scales.view(), c.view()},
          2.0 * double(m) * N * K, N * K * (0.5 + 4.0 / Cfg::block),
          {EightBitRows ? bytesPeak : fmaPeak},
          m * tn::i8_scratch_per_row(K, Cfg::block));
}

} // namespace

void addSmallWeights() {
  std::vector<std::vector<int64_t>> rows = {{1}, {16}, {128}, {1024}};
  add("gemm_bf16/768x3072", bf16<768, 3072>, rows);
  add("gemm_bf16/3072x768", bf16<3072, 768>, rows);
  add("gemm_bytes/768x3072", bytes<768, 3072>, rows);
  add("gemm_bytes/3072x768", bytes<3072, 768>, rows);
  add("gemm_codes/896x4864", codes<896, 4864, false>, {{1}, {16}, {128}});
  add("gemm_codes_i8/896x4864", codes<896, 4864, true>, {{1}, {16}, {128}});
}
