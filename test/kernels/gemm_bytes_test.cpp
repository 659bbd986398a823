//===- gemm_bytes_test.cpp - products of bytes ----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/cpu/gemm_bytes.h"
#include "support.h"

using namespace test;

namespace {

template <int64_t N_, int64_t K_, int Rank, class... T> struct BytesCfg {
  static constexpr int64_t N = N_, K = K_;
  static constexpr int rank = Rank;
  using Operands = tn::types<T...>;
};

/// A random matrix, packed, with the sums of its columns.
template <class Cfg> struct Matrix {
  static constexpr int64_t panels = (Cfg::N + 15) / 16,
                           bytes = tn::panel_bytes(Cfg::K, 8);
  Tensor<int8_t> b = randomIntegers<int8_t>({Cfg::K, Cfg::N}, -128, 127);
  Tensor<uint8_t> packed{{panels * bytes}};
  Tensor<float> sums{{1, Cfg::N}}, packedSums{{panels * 16}};

  Matrix() {
    for (int64_t p = 0; p < panels; ++p)
      tn::pack_codes(
          [&](int64_t k, int64_t n) { return uint8_t(b.data[k * Cfg::N + n]); },
          Cfg::K, 8, p * 16, std::min<int64_t>(16, Cfg::N - p * 16),
          packed.data.data() + p * bytes);
    for (int64_t i = 0; i < Cfg::K * Cfg::N; ++i)
      sums.data[i % Cfg::N] += float(b.data[i]);
    tn::pack_b(sums.data.data(), 1, Cfg::N, Cfg::N, 1, packedSums.data.data());
  }

  /// Row `a` times column n, rounded once.
  float at(const uint8_t *a, int zero, int64_t n) const {
    int64_t sum = 0;
    for (int64_t k = 0; k < Cfg::K; ++k)
      sum += (int64_t(a[k]) - zero) * b.data[k * Cfg::N + n];
    return float(sum);
  }
};

/// Exact: sums are whole numbers, and become f32 in one rounding.
template <int64_t N, int64_t K> void check() {
  using Cfg = BytesCfg<N, K, 2>;
  Matrix<Cfg> b;
  for (int64_t m : {0, 1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 47, 130}) {
    for (int zero : {0, 3, 255}) {
      Tensor<uint8_t> a = randomIntegers<uint8_t>({m, K}, 0, 255);
      Tensor<float> z({}, float(zero)), c({m, N}, -7.0f);
      launchAll([](const tn_args *args) { tn::gemm_bytes<Cfg>(args); },
                {a, z, b.packed, b.packedSums, c}, c);
      for (int64_t i = 0; i < m; ++i)
        for (int64_t n = 0; n < N; ++n)
          ASSERT_EQ(c.data[i * N + n], b.at(a.data.data() + i * K, zero, n))
              << "row " << i << " of " << m << ", column " << n << ", zero "
              << zero;
    }
  }
}

TEST(GemmBytes, Ragged) {
  check<1, 1>();
  check<16, 4>();
  check<17, 63>();
  check<33, 70>();
  check<47, 130>();
}

TEST(GemmBytes, WholeTiles) {
  check<1, 64>();
  check<32, 64>();
  check<48, 128>();
  check<70, 192>();
  check<96, 768>();
}

/// The largest sums that K allows: nothing saturates.
TEST(GemmBytes, Extremes) {
  using Cfg = BytesCfg<16, 3072, 2>;
  Matrix<Cfg> b;
  std::fill(b.packed.data.begin(), b.packed.data.end(), uint8_t(-128));
  std::fill(b.packedSums.data.begin(), b.packedSums.data.end(), -128.f * 3072);
  for (int zero : {0, 255}) {
    Tensor<uint8_t> a({40, Cfg::K}, uint8_t(255 - zero));
    Tensor<float> z({}, float(zero)), c({40, Cfg::N});
    launchAll([](const tn_args *args) { tn::gemm_bytes<Cfg>(args); },
              {a, z, b.packed, b.packedSums, c}, c);
    for (float x : c.data)
      ASSERT_EQ(x, float((255 - 2 * zero) * -128 * 3072));
  }
}

struct ScaleAddRelu {
  template <class V>
  static V apply(V acc, const tn::EpilogueArgs &e, int64_t r, int64_t c) {
    return tn_relu(tn_add(
        tn_mul(acc, tn::load_scalar<V>(e, 0, r, c)),
        tn_add(tn::load_row<V>(e, 1, r, c), tn::load_full<V>(e, 2, r, c))));
  }
};

/// Batches with strides of their own, and an epilogue.
TEST(GemmBytes, BatchesAndEpilogue) {
  using Cfg = BytesCfg<40, 128, 3, float, float, float>;
  Matrix<Cfg> b;
  int64_t batch = 3, m = 21, n = Cfg::N, k = Cfg::K;
  Tensor<uint8_t> a = randomIntegers<uint8_t>({m, batch, k + 5}, 0, 255);
  Tensor<float> z({}, 100), scale({}, 0.01f),
      bias = randomTensor({n}), residual = randomTensor({batch, m, n}),
      c({batch, m, n});
  View in = a.view().permuted({1, 0, 2}).slice(2, 0, k);
  launchAll(
      [](const tn_args *args) { tn::gemm_bytes<Cfg, ScaleAddRelu>(args); },
      {in, z, b.packed, b.packedSums, scale.view().broadcast({batch, m, n}),
       bias.view().broadcast({batch, m, n}), residual, c},
      c);
  forEachIndex({batch, m, n}, [&](const Dims &i) {
    float sum = b.at(&in.at<uint8_t>({i[0], i[1], 0}), 100, i[2]);
    float add = bias.data[i[2]] + residual.view().at<float>(i);
    ASSERT_EQ(c.view().at<float>(i), std::max(sum * 0.01f + add, 0.f));
  });
}

} // namespace
