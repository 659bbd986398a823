//===- gemm_bf16_test.cpp - products in bf16 ------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/common/half.h"
#include "kernels/cpu/gemm_bf16.h"
#include "support.h"

using namespace test;

namespace {

template <int64_t N_, int64_t K_, int Rank, class... T> struct HalfCfg {
  static constexpr int64_t N = N_, K = K_;
  static constexpr int rank = Rank;
  using Operands = tn::types<T...>;
};

template <class Cfg> struct Matrix {
  static constexpr int64_t panels = (Cfg::N + 15) / 16,
                           bytes = tn::panel_bytes(Cfg::K, 16);
  Tensor<tn_bf16> b{{Cfg::K, Cfg::N}};
  Tensor<uint8_t> packed{{panels * bytes}};

  Matrix() {
    Tensor<float> numbers = randomTensor({Cfg::K, Cfg::N});
    for (size_t i = 0; i < b.data.size(); ++i)
      b.data[i] = tn_round_to<tn_bf16>(numbers.data[i]);
    for (int64_t p = 0; p < panels; ++p)
      tn::pack_codes(
          [&](int64_t k, int64_t n) { return b.data[k * Cfg::N + n].bits; },
          Cfg::K, 16, p * 16, std::min<int64_t>(16, Cfg::N - p * 16),
          packed.data.data() + p * bytes);
  }

  /// A row of `m` times column n; A is rounded where the kernel says it is.
  double at(const float *a, int64_t m, int64_t n) const {
    bool rounds = tn::tiles_serve(m, 2 * Cfg::K);
    double sum = 0;
    for (int64_t k = 0; k < Cfg::K; ++k) {
      double x = rounds ? tn_to_float(tn_round_to<tn_bf16>(a[k])) : a[k];
      sum += x * tn_to_float(b.data[k * Cfg::N + n]);
    }
    return sum;
  }
};

int64_t scratch(int64_t rows, int64_t k) {
  return rows * tn::half_row_bytes(k);
}

/// Sums of K products below 1 in f32, each sum below K.
constexpr double tolerance(int64_t k) { return double(k) * 6e-8 * 4 + 1e-6; }

template <int64_t N, int64_t K> void check() {
  using Cfg = HalfCfg<N, K, 2>;
  Matrix<Cfg> b;
  for (int64_t m : {0, 1, 2, 5, 12, 13, 15, 16, 17, 31, 32, 33, 47, 130}) {
    Tensor<float> a = randomTensor({m, K}), c({m, N}, -7.0f);
    launchAll([](const tn_args *args) { tn::gemm_bf16<Cfg>(args); },
              {a, b.packed, c}, c, {}, scratch(m, K));
    for (int64_t i = 0; i < m; ++i)
      for (int64_t n = 0; n < N; ++n)
        ASSERT_NEAR(c.data[i * N + n], b.at(a.data.data() + i * K, m, n),
                    tolerance(K))
            << "row " << i << " of " << m << ", column " << n;
  }
}

TEST(GemmBf16, Ragged) {
  check<1, 1>();
  check<16, 2>();
  check<17, 63>();
  check<33, 71>();
  check<47, 130>();
}

TEST(GemmBf16, WholeTiles) {
  check<1, 32>();
  check<32, 64>();
  check<48, 96>();
  check<70, 224>();
  check<96, 768>();
}

struct AddRelu {
  template <class V>
  static V apply(V acc, const tn::EpilogueArgs &e, int64_t r, int64_t c) {
    return tn_relu(tn_add(acc, tn_add(tn::load_row<V>(e, 0, r, c),
                                      tn::load_full<V>(e, 1, r, c))));
  }
};

/// Batches with strides of their own, and an epilogue.
TEST(GemmBf16, BatchesAndEpilogue) {
  using Cfg = HalfCfg<40, 128, 3, float, float>;
  Matrix<Cfg> b;
  int64_t batch = 3, m = 21, n = Cfg::N, k = Cfg::K;
  Tensor<float> a = randomTensor({m, batch, k + 5}), bias = randomTensor({n}),
                residual = randomTensor({batch, m, n}), c({batch, m, n});
  View in = a.view().permuted({1, 0, 2}).slice(2, 0, k);
  launchAll([](const tn_args *args) { tn::gemm_bf16<Cfg, AddRelu>(args); },
            {in, b.packed, bias.view().broadcast({batch, m, n}), residual, c},
            c, {}, scratch(batch * m, k));
  forEachIndex({batch, m, n}, [&](const Dims &i) {
    double want = b.at(&in.at<float>({i[0], i[1], 0}), m, i[2]) +
                  bias.data[i[2]] + residual.view().at<float>(i);
    ASSERT_NEAR(c.view().at<float>(i), std::max(want, 0.0), tolerance(k));
  });
}

/// What is not finite stays so, in its row alone.
TEST(GemmBf16, NotFinite) {
  using Cfg = HalfCfg<16, 64, 2>;
  Matrix<Cfg> b;
  constexpr float inf = std::numeric_limits<float>::infinity();
  for (int64_t m : {3, 40}) {
    Tensor<float> a = randomTensor({m, 64}), c({m, 16});
    uint32_t smallNan = 0x7f800001;
    std::memcpy(&a.data[64 + 5], &smallNan, sizeof(smallNan));
    a.data[2 * 64 + 7] = inf;
    launchAll([](const tn_args *args) { tn::gemm_bf16<Cfg>(args); },
              {a, b.packed, c}, c, {}, scratch(m, 64));
    for (int64_t i = 0; i < m; ++i)
      for (int64_t n = 0; n < 16; ++n) {
        float got = c.data[i * 16 + n];
        if (i == 1)
          ASSERT_TRUE(std::isnan(got));
        else if (i == 2)
          ASSERT_TRUE(std::isnan(got) || std::isinf(got));
        else
          ASSERT_TRUE(std::isfinite(got));
      }
  }
}

} // namespace
