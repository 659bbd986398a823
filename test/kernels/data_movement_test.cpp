//===- data_movement_test.cpp - pad, scans, selections, rotary ------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/common/data_movement.h"
#include "support.h"

#include <algorithm>
#include <numeric>

using namespace test;

namespace {

template <tn::Pad Mode, bool Value, int Rank = 1> struct PadCfg {
  using T = int64_t;
  static constexpr int rank = Rank;
  static constexpr bool has_value = Value;
  static constexpr tn::Pad mode = Mode;
};

template <tn::Pad Mode>
std::vector<int64_t> padded(std::vector<int64_t> x, int64_t low, int64_t high) {
  Tensor<int64_t> t({int64_t(x.size())});
  t.data = x;
  Tensor<int64_t> y({std::max<int64_t>(0, int64_t(x.size()) + low + high)}, 99);
  launchAll([](const tn_args *a) { tn::pad<PadCfg<Mode, false>>(a); }, {t, y},
            y, {low, high});
  return y.data;
}

using V = std::vector<int64_t>;

TEST(Pad, Modes) {
  EXPECT_EQ(padded<tn::Pad::constant>({1, 2}, 1, 2), (V{0, 1, 2, 0, 0}));
  EXPECT_EQ(padded<tn::Pad::constant>({1, 2, 3}, -1, 1), (V{2, 3, 0}));
  EXPECT_EQ(padded<tn::Pad::edge>({1, 2}, 2, 1), (V{1, 1, 1, 2, 2}));
  EXPECT_EQ(padded<tn::Pad::edge>({1, 2, 3}, 2, -1), (V{1, 1, 1, 2}));
  EXPECT_EQ(padded<tn::Pad::reflect>({1, 2, 3}, 5, 3),
            (V{2, 1, 2, 3, 2, 1, 2, 3, 2, 1, 2}));
  EXPECT_EQ(padded<tn::Pad::reflect>({7}, 2, 1), (V{7, 7, 7, 7}));
  EXPECT_EQ(padded<tn::Pad::wrap>({1, 2, 3}, 2, 4),
            (V{2, 3, 1, 2, 3, 1, 2, 3, 1}));
  EXPECT_EQ(padded<tn::Pad::constant>({}, 1, 1), (V{0, 0}));
  EXPECT_EQ(padded<tn::Pad::edge>({}, 1, 1), (V{0, 0}));
  EXPECT_EQ(padded<tn::Pad::constant>({1, 2}, -1, -1), (V{}));
}

TEST(Pad, ValueInTwoDimensions) {
  Tensor<int64_t> x({2, 2}), value(Dims{}, 5), y({3, 4});
  x.data = {1, 2, 3, 4};
  launchAll(
      [](const tn_args *a) { tn::pad<PadCfg<tn::Pad::constant, true, 2>>(a); },
      {x, value, y}, y, {1, 0, 0, 2});
  EXPECT_EQ(y.data, (V{5, 5, 5, 5, 1, 2, 5, 5, 3, 4, 5, 5}));
}

template <bool Upper> struct TriluCfg {
  using T = float;
  static constexpr int rank = 3;
  static constexpr bool upper = Upper;
};

template <bool Upper> void checkTrilu() {
  for (int64_t k : {-9, -1, 0, 2, 9}) {
    Tensor<float> x = randomTensor({2, 4, 5}), y(x.shape);
    launchAll([](const tn_args *a) { tn::trilu<TriluCfg<Upper>>(a); }, {x, y},
              y, {k});
    forEachIndex(x.shape, [&](const Dims &i) {
      bool keep = Upper ? i[2] - i[1] >= k : i[2] - i[1] <= k;
      ASSERT_EQ(y.view().at<float>(i), keep ? x.view().at<float>(i) : 0);
    });
  }
}

TEST(Trilu, BothTriangles) {
  checkTrilu<true>();
  checkTrilu<false>();
}

struct RangeCfg {
  using T = int64_t;
};

TEST(Range, Counts) {
  Tensor<int64_t> start(Dims{}, 10), delta(Dims{}, -3), y({4});
  launchAll([](const tn_args *a) { tn::range<RangeCfg>(a); }, {start, delta, y},
            y);
  EXPECT_EQ(y.data, (V{10, 7, 4, 1}));
}

template <int Axis> struct OneHotCfg {
  using T = float;
  using Index = int64_t;
  static constexpr int rank = 3, axis = Axis;
};

template <int Axis> void checkOneHot() {
  Tensor<int64_t> indices({2, 3});
  indices.data = {0, -1, 4, 5, -5, -6};
  Tensor<float> choice({2});
  choice.data = {-2, 7};
  Dims shape = {2, 3};
  shape.insert(shape.begin() + Axis, 5);
  Tensor<float> y(shape);
  launchAll([](const tn_args *a) { tn::one_hot<OneHotCfg<Axis>>(a); },
            {indices, choice, y}, y);
  forEachIndex(shape, [&](const Dims &i) {
    Dims at = i;
    at.erase(at.begin() + Axis);
    int64_t v = indices.view().at<int64_t>(at);
    ASSERT_EQ(y.view().at<float>(i), (v < 0 ? v + 5 : v) == i[Axis] ? 7 : -2);
  });
}

TEST(OneHot, Axes) {
  checkOneHot<0>();
  checkOneHot<1>();
  checkOneHot<2>();
}

template <bool Exclusive, bool Reverse, bool Product> struct CumSumCfg {
  using T = int64_t;
  static constexpr int rank = 2, axis = 1;
  static constexpr bool exclusive = Exclusive, reverse = Reverse,
                        product = Product;
};

template <bool Exclusive, bool Reverse, bool Product = false> V cumSum() {
  Tensor<int64_t> x({2, 3}), y({2, 3});
  x.data = {1, 2, 3, 10, 20, 30};
  launchAll(
      [](const tn_args *a) {
        tn::cum_sum<CumSumCfg<Exclusive, Reverse, Product>>(a);
      },
      {x, y}, y);
  return y.data;
}

TEST(CumSum, Forms) {
  EXPECT_EQ((cumSum<false, false>()), (V{1, 3, 6, 10, 30, 60}));
  EXPECT_EQ((cumSum<true, false>()), (V{0, 1, 3, 0, 10, 30}));
  EXPECT_EQ((cumSum<false, true>()), (V{6, 5, 3, 60, 50, 30}));
  EXPECT_EQ((cumSum<true, false, true>()), (V{1, 1, 2, 1, 10, 200}));
  EXPECT_EQ((cumSum<true, true>()), (V{5, 3, 0, 50, 30, 0}));
}

struct NonZeroCfg {
  using T = float;
  static constexpr int rank = 2;
};

TEST(NonZero, CountThenIndices) {
  Tensor<float> x({2, 3});
  x.data = {0, 1, NAN, -0.0f, 0, 5};
  Tensor<int64_t> count(Dims{});
  launchAll([](const tn_args *a) { tn::count_non_zero<NonZeroCfg>(a); },
            {x, count}, count);
  ASSERT_EQ(count.data[0], 3);
  Tensor<int64_t> y({2, 3});
  launchAll([](const tn_args *a) { tn::non_zero<NonZeroCfg>(a); }, {x, y}, y);
  EXPECT_EQ(y.data, (V{0, 0, 1, 1, 2, 2}));
}

template <bool Largest> struct TopKCfg {
  using T = float;
  static constexpr int rank = 2, axis = 1;
  static constexpr bool largest = Largest;
};

template <bool Largest> void checkTopK() {
  for (int64_t n : {1, 2, 7, 40})
    for (int64_t k : {int64_t(0), int64_t(1), n / 2, n}) {
      Tensor<float> x({5, n});
      for (float &v : x.data)
        v = generator()() % 9 ? float(generator()() % 6) : NAN;
      Tensor<float> values({5, k});
      Tensor<int64_t> indices({5, k});
      tn_unit unit = [](const tn_args *a) { tn::top_k<TopKCfg<Largest>>(a); };
      launchAll(unit, {x, values, indices}, indices);
      for (int64_t r = 0; r < 5; ++r) {
        const float *row = x.data.data() + r * n;
        std::vector<int64_t> order(n);
        std::iota(order.begin(), order.end(), 0);
        auto above = [&](int64_t i, int64_t j) {
          return !std::isnan(row[j]) && (std::isnan(row[i]) || row[i] > row[j]);
        };
        std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
          return Largest ? above(i, j) : above(j, i);
        });
        for (int64_t i = 0; i < k; ++i) {
          ASSERT_EQ(indices.data[r * k + i], order[i]) << n << " " << k;
          ASSERT_TRUE(isClose(values.data[r * k + i], row[order[i]], 0, 0));
        }
      }
    }
}

TEST(TopK, StableAndNan) {
  checkTopK<true>();
  checkTopK<false>();
  Tensor<float> x({2, 3}), values({2, 4});
  Tensor<int64_t> indices({2, 4});
  expectFault([](const tn_args *a) { tn::top_k<TopKCfg<true>>(a); },
              {x, values, indices}, {TN_FAULT_SIZE, 1, 1, 0, 0, 4, 3});
}

template <bool Interleaved> struct RotaryCfg {
  using T = float;
  static constexpr int64_t rotary_dim = 6, half = 3;
  static constexpr bool interleaved = Interleaved;
};

template <bool Interleaved> void checkRotary() {
  Tensor<float> x = randomTensor({2, 3, 2, 8}), y(x.shape);
  Tensor<float> cos = randomTensor({1, 3, 3}), sin = randomTensor({2, 3, 3});
  View cv = cos.view().broadcast({2, 3, 3});
  launchAll([](const tn_args *a) { tn::rotary<RotaryCfg<Interleaved>>(a); },
            {x, cv, sin, y}, y);
  forEachIndex(x.shape, [&](const Dims &i) {
    double want = x.view().at<float>(i);
    if (i[3] < 6) {
      int64_t pair = Interleaved ? i[3] / 2 : i[3] % 3;
      bool second = Interleaved ? i[3] % 2 : i[3] >= 3;
      Dims other = i;
      other[3] = Interleaved ? i[3] ^ 1 : (i[3] + 3) % 6;
      double o = x.view().at<float>(other),
             c = cv.at<float>({i[0], i[1], pair});
      double s = sin.view().at<float>({i[0], i[1], pair});
      want = second ? o * s + want * c : want * c - o * s;
    }
    ASSERT_NEAR(y.view().at<float>(i), want, 1e-6) << name(i);
  });
}

TEST(Rotary, BothPairings) {
  checkRotary<true>();
  checkRotary<false>();
}

} // namespace
