//===- norm_test.cpp - layer_norm, rms_norm, softmax ----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/cpu/norm.h"
#include "support.h"

using namespace test;

namespace {

struct Plain {
  static constexpr int rank = 2, axes = 1;
  static constexpr int64_t N = tn::dynamic;
  static constexpr float epsilon = 1e-5f;
  static constexpr bool has_residual = false, has_gamma = false,
                        has_beta = false, has_mean = false, has_inv_std = false,
                        has_sum = false;
};

/// (s - mean) * inv of a row in double.
struct Statistics {
  double mean = 0, inv = 0;
  Statistics(const std::vector<double> &s, bool centred, double epsilon) {
    double n = double(s.size()), squares = 0;
    if (centred)
      for (double x : s)
        mean += x / n;
    for (double x : s)
      squares += (x - mean) * (x - mean) / n;
    inv = 1 / std::sqrt(squares + epsilon);
  }
};

template <bool Centred, bool Unit> void checkPlain(float shift) {
  tn_unit unit = [](const tn_args *a) {
    Centred ? tn::layer_norm<Plain>(a) : tn::rms_norm<Plain>(a);
  };
  for (int64_t n : {1, 2, 7, 16, 31, 64, 65, 130, 768}) {
    Dims shape = {5, n};
    Tensor<float> x =
        randomTensor(Unit ? shape : Dims{n, 5}, shift - 1, shift + 1);
    Tensor<float> y(shape);
    View xv = Unit ? x.view() : x.view().permuted({1, 0});
    launchAll(unit, {xv, y}, y);
    for (int64_t r = 0; r < 5; ++r) {
      std::vector<double> s;
      for (int64_t j = 0; j < n; ++j)
        s.push_back(xv.at<float>({r, j}));
      Statistics st(s, Centred, 1e-5f);
      // One f32 rounding of the mean, seen through inv.
      double slack = 2e-6 + std::fabs(st.mean) * 1.2e-7 * st.inv;
      for (int64_t j = 0; j < n; ++j)
        ASSERT_NEAR(y.view().at<float>({r, j}), (s[j] - st.mean) * st.inv,
                    slack + 1e-6 * std::fabs((s[j] - st.mean) * st.inv))
            << n;
    }
  }
}

TEST(Norm, Plain) {
  checkPlain<true, true>(0);
  checkPlain<true, false>(0);
  checkPlain<false, true>(0);
  checkPlain<false, false>(0.5);
}

TEST(Norm, LargeMeanDoesNotCancel) { checkPlain<true, true>(1000); }

struct Cfg {
  static constexpr int rank = 4, axes = 2;
  static constexpr int64_t N = 3 * 29;
  static constexpr float epsilon = 1e-12f;
  static constexpr bool has_residual = true, has_gamma = true, has_beta = true,
                        has_mean = true, has_inv_std = true, has_sum = true;
};

TEST(Norm, EverythingAtOnce) {
  tn_unit unit = [](const tn_args *a) { tn::layer_norm<Cfg>(a); };
  Dims shape = {2, 4, 3, 29};
  Tensor<float> x = randomTensor({4, 2, 3, 29}), r = randomTensor({4, 3, 29});
  Tensor<float> gamma = randomTensor({3, 29}), beta = randomTensor({3, 29});
  Tensor<float> y(shape), mean({2, 4}), inv({2, 4}), sum(shape);
  View xv = x.view().permuted({1, 0, 2, 3}), rv = r.view().broadcast(shape);
  launchAll(unit, {xv, rv, gamma, beta, y, mean, inv, sum}, y);
  for (int64_t row = 0; row < 8; ++row) {
    std::vector<double> s;
    for (int64_t j = 0; j < Cfg::N; ++j) {
      Dims i = {row / 4, row % 4, j / 29, j % 29};
      s.push_back(double(xv.at<float>(i)) + rv.at<float>(i));
    }
    Statistics st(s, true, 1e-12);
    EXPECT_NEAR(mean.data[row], st.mean, 1e-6);
    EXPECT_NEAR(inv.data[row], st.inv, 1e-5);
    for (int64_t j = 0; j < Cfg::N; ++j) {
      EXPECT_NEAR(sum.data[row * Cfg::N + j], s[j], 1e-6);
      EXPECT_NEAR(y.data[row * Cfg::N + j],
                  (s[j] - st.mean) * st.inv * gamma.data[j] + beta.data[j],
                  5e-6);
    }
  }
}

struct WithResidual : Plain {
  static constexpr bool has_residual = true;
};

TEST(Norm, ResidualInPlace) {
  tn_unit unit = [](const tn_args *a) { tn::rms_norm<WithResidual>(a); };
  Tensor<float> x = randomTensor({3, 50}), r = randomTensor({3, 50});
  Tensor<float> apart({3, 50}), rest = r;
  launch(unit, {x, r, apart});
  launch(unit, {x, rest, rest}, 2);
  EXPECT_EQ(apart.data, rest.data);
}

template <bool Log> void checkSoftmax(const View &x, Tensor<float> &y) {
  tn_unit unit = [](const tn_args *a) {
    Log ? tn::log_softmax<Plain>(a) : tn::softmax<Plain>(a);
  };
  launchAll(unit, {x, y}, y);
  for (int64_t r = 0; r < x.shape[0]; ++r) {
    double max = -INFINITY, sum = 0;
    bool bad = false;
    for (int64_t j = 0; j < x.shape[1]; ++j) {
      double v = x.at<float>({r, j});
      bad |= std::isnan(v);
      max = std::max(max, v);
    }
    for (int64_t j = 0; j < x.shape[1]; ++j)
      sum += std::exp(x.at<float>({r, j}) - max);
    for (int64_t j = 0; j < x.shape[1]; ++j) {
      double v = x.at<float>({r, j}) - max;
      double want = bad ? NAN : Log ? v - std::log(sum) : std::exp(v) / sum;
      ASSERT_TRUE(isClose(y.view().at<float>({r, j}), want, 2e-6, 3e-7))
          << r << " " << j << " " << y.view().at<float>({r, j}) << " " << want;
    }
  }
}

TEST(Softmax, Sizes) {
  for (int64_t n : {1, 3, 16, 17, 64, 200}) {
    Tensor<float> x = randomTensor({4, n}, -20, 20), y({4, n});
    checkSoftmax<false>(x.view(), y);
    checkSoftmax<true>(x.view(), y);
    Tensor<float> t = randomTensor({n, 4}, -20, 20);
    checkSoftmax<false>(t.view().permuted({1, 0}), y);
  }
}

TEST(Softmax, Extremes) {
  Tensor<float> x({7, 20}, 1.0f), y({7, 20});
  auto row = [&](int r) { return x.data.data() + r * 20; };
  for (int j = 0; j < 20; ++j) {
    row(0)[j] = -INFINITY;
    row(1)[j] = j == 18 ? NAN : 0.0f;
    row(2)[j] = j == 3 ? INFINITY : 0.0f;
    row(3)[j] = j % 2 ? -INFINITY : float(j);
    row(4)[j] = -3.4028235e38f;
    row(5)[j] = j == 2 ? 3e38f : -3e38f;
  }
  checkSoftmax<false>(x.view(), y);
}

} // namespace
