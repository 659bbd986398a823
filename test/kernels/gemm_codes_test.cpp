//===- gemm_codes_test.cpp - products with 2-, 4- and 8-bit codes ---------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/cpu/gemm_codes.h"
#include "kernels/cpu/gemm_codes_i8.h"
#include "support.h"

using namespace test;

namespace {

template <int Bits, int64_t N_, int64_t K_, int64_t Block, bool Zeros,
          class... T>
struct CodesCfg {
  static constexpr int64_t N = N_, K = K_, block = Block;
  static constexpr int bits = Bits, rank = 2;
  static constexpr bool zeros = Zeros;
  static constexpr float zero = 1 << (Bits - 1);
  using Operands = tn::types<T...>;
};

/// A random matrix: its codes, scales and zeros, and all of it packed.
template <class Cfg> struct Matrix {
  static constexpr int64_t blocks = (Cfg::K + Cfg::block - 1) / Cfg::block;
  static constexpr int most = (1 << Cfg::bits) - 1;
  Tensor<uint8_t> codes = randomIntegers<uint8_t>({Cfg::K, Cfg::N}, 0, most);
  Tensor<float> scales = randomTensor({blocks, Cfg::N}, 0.5, 2),
                zeros = randomTensor({blocks, Cfg::N}, 0, most);
  static constexpr int64_t panels = (Cfg::N + 15) / 16,
                           bytes = tn::panel_bytes(Cfg::K, Cfg::bits);
  Tensor<uint8_t> packedCodes{{panels * bytes}};
  Tensor<float> packedScales{{tn::packed_size(blocks, Cfg::N)}},
      packedZeros{{tn::packed_size(blocks, Cfg::N)}};

  Matrix() {
    for (int64_t p = 0; p < panels; ++p)
      tn::pack_codes(
          [&](int64_t k, int64_t n) { return codes.data[k * Cfg::N + n]; },
          Cfg::K, Cfg::bits, p * 16, std::min<int64_t>(16, Cfg::N - p * 16),
          packedCodes.data.data() + p * bytes);
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

/// A row of A as 8 bits have it: by spans of at most 256 within the blocks.
template <class Cfg> std::vector<double> roundedRow(const float *a) {
  std::vector<double> row(Cfg::K);
  constexpr int64_t parts = (Cfg::block + 255) / 256,
                    length = ((Cfg::block + parts - 1) / parts + 15) / 16 * 16;
  for (int64_t block = 0; block < Cfg::K; block += Cfg::block)
    for (int64_t begin = block; begin < block + Cfg::block; begin += length) {
      int64_t end = std::min({begin + length, block + Cfg::block, Cfg::K});
      float most = 0;
      for (int64_t k = begin; k < end; ++k)
        most = std::max(most, std::fabs(a[k]));
      for (int64_t k = begin; k < end; ++k)
        row[k] = most == 0 ? 0
                           : double(std::nearbyintf(a[k] * (127 / most))) *
                                 (most / 127);
    }
  return row;
}

/// Sums of K products in f32, which has 24 bits; a code times a scale is below
/// 2^(bits + 1).
template <class Cfg>
constexpr double tolerance = double(2 << Cfg::bits) * Cfg::K * 1.2e-7;

/// a[m, K] times b as `rows` of doubles has A.
template <class Cfg>
void compare(const Matrix<Cfg> &b, const std::vector<double> &rows, int64_t m,
             const Tensor<float> &c) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t n = 0; n < Cfg::N; ++n) {
      double want = 0;
      for (int64_t k = 0; k < Cfg::K; ++k)
        want += rows[i * Cfg::K + k] * b.at(k, n);
      ASSERT_NEAR(c.data[i * Cfg::N + n], want, tolerance<Cfg>)
          << "row " << i << " of " << m << ", column " << n;
    }
}

template <class Cfg> void check() {
  Matrix<Cfg> b;
  for (int64_t m : {0, 1, 2, 3, 4, 5, 15, 130}) {
    Tensor<float> a = randomTensor({m, Cfg::K}), c({m, Cfg::N}, -7.0f);
    std::vector<View> views = b.operands(a);
    views.push_back(c);
    launchAll([](const tn_args *args) { tn::gemm_codes<Cfg>(args); }, views, c);
    std::vector<double> rows(a.data.begin(), a.data.end());
    compare(b, rows, m, c);

    launchAll([](const tn_args *args) { tn::gemm_codes_i8<Cfg>(args); }, views,
              c, {}, m * tn::i8_scratch_per_row(Cfg::K, Cfg::block));
    rows.clear();
    for (int64_t i = 0; i < m; ++i)
      for (double x : roundedRow<Cfg>(a.data.data() + i * Cfg::K))
        rows.push_back(x);
    compare(b, rows, m, c);
  }
}

TEST(GemmCodes, FourBits) {
  check<CodesCfg<4, 1, 1, 16, false>>();
  check<CodesCfg<4, 16, 32, 32, true>>();
  check<CodesCfg<4, 33, 45, 32, false>>(); // the last block is cut short
  check<CodesCfg<4, 49, 300, 16, true>>(); // pieces of 256 end inside of blocks
  check<CodesCfg<4, 40, 520, 64, true>>();
  check<CodesCfg<4, 17, 600, 304, false>>(); // blocks of two spans
}

TEST(GemmCodes, TwoBits) {
  check<CodesCfg<2, 1, 2, 16, false>>();
  check<CodesCfg<2, 33, 75, 32, true>>();
  check<CodesCfg<2, 20, 520, 256, false>>();
}

TEST(GemmCodes, EightBits) {
  check<CodesCfg<8, 1, 3, 16, false>>();
  check<CodesCfg<8, 33, 77, 32, true>>();
  check<CodesCfg<8, 20, 530, 128, false>>();
  check<CodesCfg<8, 35, 898, 912, false>>(); // a block for each column
  check<CodesCfg<8, 16, 700, 704, true>>();
}

/// acc * row + residual
struct Finish {
  template <class V>
  static V apply(V acc, const tn::EpilogueArgs &e, int64_t row, int64_t col) {
    return tn_add(tn_mul(acc, tn::load_row<V>(e, 0, row, col)),
                  tn::load_full<V>(e, 1, row, col));
  }
};

TEST(GemmCodes, Epilogue) {
  using Cfg = CodesCfg<4, 37, 64, 32, true, float, float>;
  Matrix<Cfg> b;
  for (int64_t m : {3, 20}) {
    Tensor<float> a = randomTensor({m, Cfg::K}), c({m, Cfg::N}),
                  row = randomTensor({Cfg::N}),
                  full = randomTensor({m, Cfg::N});
    std::vector<View> views = b.operands(a);
    views.push_back(row.view().broadcast({m, Cfg::N}));
    views.push_back(full);
    views.push_back(c);
    auto check = [&](bool rounded) {
      for (int64_t i = 0; i < m; ++i) {
        const float *x = a.data.data() + i * Cfg::K;
        std::vector<double> left(x, x + Cfg::K);
        if (rounded)
          left = roundedRow<Cfg>(x);
        for (int64_t n = 0; n < Cfg::N; ++n) {
          double want = 0;
          for (int64_t k = 0; k < Cfg::K; ++k)
            want += left[k] * b.at(k, n);
          want = want * row.data[n] + full.data[i * Cfg::N + n];
          ASSERT_NEAR(c.data[i * Cfg::N + n], want, tolerance<Cfg>);
        }
      }
    };
    launchAll([](const tn_args *args) { tn::gemm_codes<Cfg, Finish>(args); },
              views, c);
    check(false);
    launchAll([](const tn_args *args) { tn::gemm_codes_i8<Cfg, Finish>(args); },
              views, c, {}, m * tn::i8_scratch_per_row(Cfg::K, Cfg::block));
    check(true);
  }
}

/// Rows that 8 bits cannot hold: of zeros and of almost nothing give zeros, of
/// numbers without bounds or none NaN, where they stand and nowhere else.
TEST(GemmCodes, OddRows) {
  using Cfg = CodesCfg<4, 20, 64, 32, false>;
  Matrix<Cfg> b;
  Tensor<float> a = randomTensor({6, Cfg::K}), c({6, Cfg::N});
  for (int64_t k = 0; k < Cfg::K; ++k) {
    a.data[k] = 0;
    a.data[Cfg::K + k] = 1e-40f;
  }
  a.data[2 * Cfg::K + 40] = INFINITY;
  a.data[3 * Cfg::K + 5] = NAN;
  a.data[4 * Cfg::K + 5] = 3e38f;
  std::vector<View> views = b.operands(a);
  views.push_back(c);
  launchAll([](const tn_args *args) { tn::gemm_codes_i8<Cfg>(args); }, views, c,
            {}, 6 * tn::i8_scratch_per_row(Cfg::K, Cfg::block));
  for (int64_t n = 0; n < Cfg::N; ++n) {
    EXPECT_EQ(c.data[n], 0);
    EXPECT_EQ(c.data[Cfg::N + n], 0);
    EXPECT_TRUE(std::isnan(c.data[2 * Cfg::N + n]));
    EXPECT_TRUE(std::isnan(c.data[3 * Cfg::N + n]));
    EXPECT_FALSE(std::isnan(c.data[4 * Cfg::N + n]));
    EXPECT_FALSE(std::isnan(c.data[5 * Cfg::N + n]));
  }
}

} // namespace
