//===- gemm_q4_test.cpp - products with 4-bit codes -----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/cpu/gemm_q4.h"
#include "support.h"

using namespace test;

namespace {

template <int64_t N_, int64_t K_, int64_t Block, bool Zeros, class... T>
struct Q4Cfg {
  static constexpr int64_t N = N_, K = K_, block = Block;
  static constexpr bool zeros = Zeros;
  static constexpr float zero = 8;
  static constexpr int rank = 2;
  using Operands = tn::types<T...>;
};

/// A random matrix: its codes, scales and zeros, and all of it packed.
template <class Cfg> struct Matrix {
  static constexpr int64_t blocks = (Cfg::K + Cfg::block - 1) / Cfg::block;
  Tensor<uint8_t> codes = randomIntegers<uint8_t>({Cfg::K, Cfg::N}, 0, 15);
  Tensor<float> scales = randomTensor({blocks, Cfg::N}, 0.5, 2),
                zeros = randomTensor({blocks, Cfg::N}, 0, 15);
  static constexpr int64_t panels = (Cfg::N + 15) / 16;
  Tensor<uint8_t> packedCodes{{panels * Cfg::K / 2 * 16}};
  Tensor<float> packedScales{{tn::packed_size(blocks, Cfg::N)}},
      packedZeros{{tn::packed_size(blocks, Cfg::N)}};

  Matrix() {
    for (int64_t k = 0; k < Cfg::K; ++k)
      for (int64_t n = 0; n < Cfg::N; ++n)
        packedCodes.data[(n / 16 * (Cfg::K / 2) + k / 2) * 16 + n % 16] |=
            codes.data[k * Cfg::N + n] << (k % 2 * 4);
    tn::pack_b(scales.data.data(), blocks, Cfg::N, Cfg::N, 1,
               packedScales.data.data());
    tn::pack_b(zeros.data.data(), blocks, Cfg::N, Cfg::N, 1,
               packedZeros.data.data());
  }

  double at(int64_t k, int64_t n) const {
    int64_t i = k / Cfg::block * Cfg::N + n;
    double zero = Cfg::zeros ? zeros.data[i] : Cfg::zero;
    return scales.data[i] * (codes.data[k * Cfg::N + n] - zero);
  }

  std::vector<View> operands(Tensor<float> &a) {
    std::vector<View> list = {a, packedCodes, packedScales};
    if (Cfg::zeros)
      list.push_back(packedZeros);
    return list;
  }
};

/// Sums of K products, each at most 30 in size: f32 has 24 bits.
constexpr double tolerance(int64_t k) { return 30 * double(k) * 1.2e-7; }

template <class Cfg> void check() {
  Matrix<Cfg> b;
  for (int64_t m : {0, 1, 2, 3, 4, 5, 15, 130}) {
    Tensor<float> a = randomTensor({m, Cfg::K}), c({m, Cfg::N}, -7.0f);
    std::vector<View> views = b.operands(a);
    views.push_back(c);
    launchAll([](const tn_args *args) { tn::gemm_q4<Cfg>(args); }, views, c);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t n = 0; n < Cfg::N; ++n) {
        double want = 0;
        for (int64_t k = 0; k < Cfg::K; ++k)
          want += a.data[i * Cfg::K + k] * b.at(k, n);
        ASSERT_NEAR(c.data[i * Cfg::N + n], want, tolerance(Cfg::K))
            << "row " << i << " of " << m << ", column " << n;
      }
  }
}

TEST(GemmQ4, Sizes) {
  check<Q4Cfg<1, 2, 16, false>>();
  check<Q4Cfg<16, 32, 32, true>>();
  check<Q4Cfg<33, 48, 32, false>>(); // the last block is cut short
  check<Q4Cfg<49, 300, 16, true>>(); // pieces of 256 rows end inside of blocks
  check<Q4Cfg<40, 520, 64, true>>();
}

/// acc * row + residual
struct Finish {
  template <class V>
  static V apply(V acc, const tn::EpilogueArgs &e, int64_t row, int64_t col) {
    return tn_add(tn_mul(acc, tn::load_row<V>(e, 0, row, col)),
                  tn::load_full<V>(e, 1, row, col));
  }
};

TEST(GemmQ4, Epilogue) {
  using Cfg = Q4Cfg<37, 64, 32, true, float, float>;
  Matrix<Cfg> b;
  for (int64_t m : {3, 20}) {
    Tensor<float> a = randomTensor({m, Cfg::K}), c({m, Cfg::N}),
                  row = randomTensor({Cfg::N}),
                  full = randomTensor({m, Cfg::N});
    std::vector<View> views = b.operands(a);
    views.push_back(row.view().broadcast({m, Cfg::N}));
    views.push_back(full);
    views.push_back(c);
    launchAll([](const tn_args *args) { tn::gemm_q4<Cfg, Finish>(args); },
              views, c);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t n = 0; n < Cfg::N; ++n) {
        double want = 0;
        for (int64_t k = 0; k < Cfg::K; ++k)
          want += a.data[i * Cfg::K + k] * b.at(k, n);
        want = want * row.data[n] + full.data[i * Cfg::N + n];
        ASSERT_NEAR(c.data[i * Cfg::N + n], want, tolerance(Cfg::K));
      }
  }
}

} // namespace
