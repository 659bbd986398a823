//===- amx_test.cpp - gemm with so many rows that it may use tiles
//---------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Products of many rows, which gemm.h computes with gemm_amx.h in the form
/// with tiles: every form must pass.
///
//===----------------------------------------------------------------------===//

#include "kernels/cpu/gemm.h"
#include "support.h"

using namespace test;

namespace {

template <int64_t N_, int64_t K_, int Products = 6> struct Cfg {
  using B = float;
  static constexpr int64_t N = N_, K = K_;
  static constexpr int rank = 2, products = Products;
  using Operands = tn::types<>;
};

/// A[m, k] * B[k, n] in double, and the sums of the products' magnitudes.
struct Reference {
  std::vector<double> c, magnitude;

  Reference(const Tensor<float> &a, const Tensor<float> &b) {
    int64_t m = a.shape[0], k = a.shape[1], n = b.shape[1];
    c.resize(m * n);
    magnitude.resize(m * n);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t x = 0; x < k; ++x)
        for (int64_t j = 0; j < n; ++j) {
          double p = double(a.data[i * k + x]) * double(b.data[x * n + j]);
          c[i * n + j] += p;
          magnitude[i * n + j] += std::fabs(p);
        }
  }
};

template <class C> Tensor<float> multiply(Tensor<float> &a, Tensor<float> &b) {
  Tensor<float> p({tn::packed_size(C::K, C::N)}), c({a.shape[0], C::N}, -7.0f);
  tn::pack_b(b.data.data(), C::K, C::N, C::N, 1, p.data.data());
  launchAll([](const tn_args *x) { tn::gemm<C>(x); }, {a, p, c}, c);
  return c;
}

/// Every element within what f32 may do to it: `relative` of the magnitudes,
/// and what is lost where f32 has no more bits.
void expectAsF32(const Tensor<float> &c, const Reference &want,
                 double relative) {
  constexpr double largest = std::numeric_limits<float>::max();
  for (size_t i = 0; i < want.c.size(); ++i) {
    double w = want.c[i], got = c.data[i];
    if (std::isnan(w)) {
      ASSERT_TRUE(std::isnan(got)) << "at " << i << ": " << got << " for NaN";
      continue;
    }
    if (std::fabs(w) > largest) {
      ASSERT_EQ(got, std::copysign(INFINITY, w)) << "at " << i;
      continue;
    }
    ASSERT_LE(std::fabs(got - w), relative * want.magnitude[i] + 1e-42)
        << "at " << i << ": " << got << " for " << w;
  }
}

template <int64_t N, int64_t K> void checkSizes(std::vector<int64_t> rows) {
  for (int64_t m : rows) {
    Tensor<float> a = randomTensor({m, K}), b = randomTensor({K, N});
    expectAsF32(multiply<Cfg<N, K>>(a, b), Reference(a, b), 1e-6);
    expectAsF32(multiply<Cfg<N, K, 3>>(a, b), Reference(a, b), 1e-5);
    expectAsF32(multiply<Cfg<N, K, 0>>(a, b), Reference(a, b), 1e-6);
  }
}

TEST(ManyRows, Sizes) {
  checkSizes<1, 64>({55, 56, 64, 65});
  checkSizes<16, 95>({32, 63, 80, 81});
  checkSizes<33, 100>({97, 129});
  checkSizes<64, 128>({160, 300});
  checkSizes<100, 769>({77, 193});
  checkSizes<70, 1601>({200});
  checkSizes<1100, 64>({210});
  // One more row than a block has: many rows by a short K, seven row pairs.
  checkSizes<33, 64>({512, 513});
  checkSizes<40, 768>({197, 225});
}

/// Relative root mean square error.
double rms(const Tensor<float> &c, const Reference &want) {
  double error = 0, norm = 0;
  for (size_t i = 0; i < want.c.size(); ++i) {
    error += (c.data[i] - want.c[i]) * (c.data[i] - want.c[i]);
    norm += want.c[i] * want.c[i];
  }
  return std::sqrt(error / norm);
}

TEST(ManyRows, ExactAsF32) {
  constexpr int64_t K = 3072, N = 48, M = 64;
  Tensor<float> a({M, K}), b({K, N});
  std::normal_distribution<float> normal;
  for (float &x : a.data)
    x = normal(generator());
  for (float &x : b.data)
    x = normal(generator()) * 0.02f;
  Reference want(a, b);
  double six = rms(multiply<Cfg<N, K>>(a, b), want);
  double three = rms(multiply<Cfg<N, K, 3>>(a, b), want);
  double none = rms(multiply<Cfg<N, K, 0>>(a, b), want);
  RecordProperty("six", std::to_string(six));
#if defined(TN_AMX_TILES)
  EXPECT_LE(six, 5e-7);
  EXPECT_LE(three, 5e-6);
  EXPECT_GE(three, 1e-6) << "not the three products";
#else
  EXPECT_EQ(six, none);
  EXPECT_EQ(three, none);
#endif
  EXPECT_LE(none, 2e-6);
}

template <int Products> struct Bf16Cfg : Cfg<45, 700, Products> {
  using B = tn_bf16;
};

/// B in bf16: by default as exact as f32.
TEST(ManyRows, MatrixInBf16) {
  constexpr int64_t M = 75, N = 45, K = 700;
  Tensor<float> a = randomTensor({M, K}), b({K, N});
  Tensor<tn_bf16> half({K, N}), p({tn::packed_size(K, N)});
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (int64_t i = 0; i < K * N; ++i) {
    half.data[i] = tn_round_to<tn_bf16>(uniform(generator()));
    b.data[i] = tn_to_float(half.data[i]);
  }
  tn::pack_b(half.data.data(), K, N, N, 1, p.data.data());
  Reference want(a, b);
  auto error = [&](tn_unit unit) {
    Tensor<float> c({M, N}, -7.0f);
    launchAll(unit, {a, p, c}, c);
    return rms(c, want);
  };
  EXPECT_LE(error([](const tn_args *x) { tn::gemm<Bf16Cfg<6>>(x); }), 5e-7);
  EXPECT_LE(error([](const tn_args *x) { tn::gemm<Bf16Cfg<3>>(x); }), 5e-6);
  EXPECT_LE(error([](const tn_args *x) { tn::gemm<Bf16Cfg<0>>(x); }), 5e-7);
}

/// Magnitudes around 2^a times magnitudes around 2^b, so that some products or
/// all of them leave the range of f32's normal numbers.
TEST(ManyRows, MagnitudesAtTheRangesEnds) {
  constexpr int64_t K = 130, N = 35, M = 70;
  struct Powers {
    int a, b;
  };
  for (Powers p : {Powers{-140, 0},
                   {-126, 20},
                   {-110, 0},
                   {-120, 120},
                   {-70, -70},
                   {-60, -50},
                   {-50, -40},
                   {120, -120},
                   {126, -20},
                   {123, 0},
                   {100, 23},
                   {0, -130},
                   {0, 123}}) {
    Tensor<float> a = randomTensor({M, K}), b = randomTensor({K, N});
    for (float &x : a.data)
      x = float(std::ldexp(x, p.a));
    for (float &x : b.data)
      x = float(std::ldexp(x, p.b));
    Reference want(a, b);
    SCOPED_TRACE(std::to_string(p.a) + " " + std::to_string(p.b));
    expectAsF32(multiply<Cfg<N, K>>(a, b), want, 1e-6);
    expectAsF32(multiply<Cfg<N, K, 3>>(a, b), want, 1e-5);
  }
}

/// Ordinary numbers with a few that are not, alone in their row or column.
TEST(ManyRows, SpecialValues) {
  constexpr int64_t K = 96, N = 40, M = 66;
  constexpr float inf = INFINITY, tiny = 1e-41f;
  Tensor<float> a = randomTensor({M, K}), b = randomTensor({K, N});
  auto row = [&](int64_t i, float fill) {
    std::fill_n(a.data.begin() + i * K, K, fill);
    return a.data.begin() + i * K;
  };
  a.data[3 * K + 5] = NAN;
  a.data[17 * K + 95] = inf;
  a.data[18 * K] = -inf;
  uint32_t loudest = 0x7fffffff; // a NaN all of whose bits are set
  memcpy(&a.data[40 * K + 7], &loudest, 4);
  row(20, 0)[9] = tiny;
  row(33, 0);
  row(50, -0.0f)[1] = 1e-38f;
  row(51, 0)[2] = 3e38f;
  a.data[65 * K + 1] = inf;
  for (int64_t x = 0; x < K; ++x) {
    b.data[x * N + 4] = 0;
    b.data[x * N + 37] = x == 9 ? 1e5f : 0;
  }
  b.data[11 * N + 20] = inf;
  b.data[12 * N + 39] = NAN;
  Reference want(a, b);
  // What overflows in f32 alone is left out of the double's sums above.
  Tensor<float> six = multiply<Cfg<N, K>>(a, b),
                none = multiply<Cfg<N, K, 0>>(a, b),
                three = multiply<Cfg<N, K, 3>>(a, b);
  expectAsF32(six, want, 1e-6);
  expectAsF32(none, want, 1e-6);
  expectAsF32(three, want, 1e-5);
}

/// relu(acc + bias) + residual, into the residual's memory.
struct Residual {
  template <class V>
  static V apply(V acc, const tn::EpilogueArgs &e, int64_t row, int64_t col) {
    V x = tn_relu(tn_add(acc, tn::load_row<V>(e, 0, row, col)));
    return tn_add(x, tn::load_full<V>(e, 1, row, col));
  }
};

struct ResidualCfg : Cfg<75, 1000> {
  static constexpr int rank = 3;
  using Operands = tn::types<float, float>;
};

TEST(ManyRows, EpilogueInPlaceOfItsOperandOnStridedBatches) {
  constexpr int64_t B = 2, M = 101, N = 75, K = 1000;
  Dims shape = {B, M, N};
  Tensor<float> whole = randomTensor({B, 2 * M, K});
  View a = whole.view().slice(1, 1, M, 2);
  Tensor<float> b = randomTensor({K, N}), p({tn::packed_size(K, N)});
  tn::pack_b(b.data.data(), K, N, N, 1, p.data.data());
  Tensor<float> bias = randomTensor({N}), c = randomTensor(shape);
  std::vector<float> before = c.data;
  launchAll([](const tn_args *x) { tn::gemm<ResidualCfg, Residual>(x); },
            {a, p, bias.view().broadcast(shape), c, c}, c);
  for (int64_t n = 0; n < B; ++n) {
    Tensor<float> rows({M, K});
    for (int64_t i = 0; i < M; ++i)
      std::copy_n(whole.data.begin() + (n * 2 * M + 2 * i + 1) * K, K,
                  rows.data.begin() + i * K);
    Reference want(rows, b);
    for (int64_t i = 0; i < M * N; ++i) {
      double w = want.c[i] + bias.data[i % N];
      w = (w < 0 ? 0 : w) + before[n * M * N + i];
      ASSERT_NEAR(c.data[n * M * N + i], w, 1e-6 * want.magnitude[i] + 1e-5);
    }
  }
}

} // namespace
