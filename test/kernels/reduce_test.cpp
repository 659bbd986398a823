//===- reduce_test.cpp - reductions ---------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/common/reduce.h"
#include "kernels/cpu/reduce_extreme.h"
#include "support.h"

using namespace test;

namespace {

template <class T_, uint32_t Axes, tn::Reduce Op> struct Cfg {
  using T = T_;
  static constexpr int rank = 3;
  static constexpr uint32_t axes = Axes;
  static constexpr tn::Reduce op = Op;
};

double combined(tn::Reduce op, const std::vector<double> &x) {
  double sum = 0, product = 1, l1 = 0, squares = 0, exps = 0;
  double max = -INFINITY, min = INFINITY;
  for (double v : x) {
    sum += v;
    product *= v;
    l1 += std::fabs(v);
    squares += v * v;
    exps += std::exp(v);
    max = std::isnan(v) || std::isnan(max) ? NAN : std::max(max, v);
    min = std::isnan(v) || std::isnan(min) ? NAN : std::min(min, v);
  }
  switch (op) {
  case tn::Reduce::sum:
    return sum;
  case tn::Reduce::mean:
    return sum / double(x.size());
  case tn::Reduce::max:
    return max;
  case tn::Reduce::min:
    return min;
  case tn::Reduce::prod:
    return product;
  case tn::Reduce::l1:
    return l1;
  case tn::Reduce::l2:
    return std::sqrt(squares);
  case tn::Reduce::sum_square:
    return squares;
  case tn::Reduce::log_sum:
    return std::log(sum);
  case tn::Reduce::log_sum_exp:
    return std::log(exps);
  }
  return 0;
}

template <class T, uint32_t Axes, tn::Reduce Op>
void check(const Tensor<T> &from, const View &x) {
  (void)from;
  Dims shape = x.shape;
  for (int d = 0; d < 3; ++d)
    if (Axes >> d & 1)
      shape[d] = 1;
  Tensor<T> y(shape);
  launchAll([](const tn_args *a) { tn::reduce<Cfg<T, Axes, Op>>(a); }, {x, y},
            y);
  forEachIndex(shape, [&](const Dims &i) {
    std::vector<double> elements;
    Dims inner(3, 1);
    for (int d = 0; d < 3; ++d)
      if (Axes >> d & 1)
        inner[d] = x.shape[d];
    forEachIndex(inner, [&](const Dims &j) {
      Dims at = i;
      for (int d = 0; d < 3; ++d)
        at[d] += j[d];
      elements.push_back(double(x.at<T>(at)));
    });
    double want = combined(Op, elements);
    if (std::is_integral_v<T>)
      want = std::isfinite(want) ? double(T(want)) : 0;
    if (std::is_integral_v<T> && elements.empty() &&
        (Op == tn::Reduce::max || Op == tn::Reduce::min))
      want = double(Op == tn::Reduce::max ? std::numeric_limits<T>::lowest()
                                          : std::numeric_limits<T>::max());
    ASSERT_TRUE(isClose(double(y.view().template at<T>(i)), want, 2e-7, 1e-30))
        << int(Op) << " " << Axes << name(i) << y.view().template at<T>(i)
        << " for " << want;
  });
}

template <class T, uint32_t Axes> void checkOps(Tensor<T> x) {
  View v = x.view();
  check<T, Axes, tn::Reduce::sum>(x, v);
  check<T, Axes, tn::Reduce::mean>(x, v);
  check<T, Axes, tn::Reduce::max>(x, v);
  check<T, Axes, tn::Reduce::min>(x, v);
  check<T, Axes, tn::Reduce::prod>(x, v);
  check<T, Axes, tn::Reduce::l1>(x, v);
  check<T, Axes, tn::Reduce::sum_square>(x, v);
  if constexpr (std::is_floating_point_v<T>) {
    check<T, Axes, tn::Reduce::l2>(x, v);
    check<T, Axes, tn::Reduce::log_sum>(x, v);
    check<T, Axes, tn::Reduce::log_sum_exp>(x, v);
  }
}

TEST(Reduce, FloatAxes) {
  checkOps<float, 0>(randomTensor({3, 4, 5}, 0.1f, 2));
  checkOps<float, 1>(randomTensor({9, 4, 5}, 0.1f, 2));
  checkOps<float, 2>(randomTensor({3, 17, 5}, 0.1f, 2));
  checkOps<float, 4>(randomTensor({3, 4, 35}, 0.1f, 2));
  checkOps<float, 6>(randomTensor({3, 4, 5}, 0.1f, 2));
  checkOps<float, 5>(randomTensor({3, 4, 5}, 0.1f, 2));
  checkOps<float, 7>(randomTensor({3, 4, 5}, 0.1f, 2));
}

TEST(Reduce, NothingAndNan) {
  checkOps<float, 2>(Tensor<float>({3, 0, 2}));
  checkOps<float, 2>(Tensor<float>({0, 4, 2}));
  checkOps<int32_t, 4>(Tensor<int32_t>({3, 4, 0}));
  Tensor<float> x = randomTensor({2, 3, 9}, 0.1f, 2);
  x.data[4] = NAN;
  x.data[30] = INFINITY;
  checkOps<float, 4>(x);
  Tensor<float> low({2, 1, 3}, -INFINITY);
  check<float, 4, tn::Reduce::log_sum_exp>(low, low.view());
  Tensor<float> big({2, 1, 3}, 1000.0f), y({2, 1, 1});
  launch(
      [](const tn_args *a) {
        tn::reduce<Cfg<float, 4, tn::Reduce::log_sum_exp>>(a);
      },
      {big, y});
  EXPECT_NEAR(y.data[0], 1000 + std::log(3.0), 1e-4);
}

template <bool Greatest> struct ExtremeCfg {
  static constexpr int rank = 2;
  static constexpr bool greatest = Greatest;
};

TEST(Reduce, ExtremesOfAll) {
  tn_unit most = [](const tn_args *a) {
    tn::reduce_extreme<ExtremeCfg<true>>(a);
  };
  tn_unit least = [](const tn_args *a) {
    tn::reduce_extreme<ExtremeCfg<false>>(a);
  };
  constexpr int64_t scratch = 4 * tn::most_threads;
  for (Dims shape : {Dims{1, 1}, {3, 5}, {1, 300}, {7, 129}, {40, 64}}) {
    Tensor<float> x = randomTensor(shape), y({1, 1});
    auto check = [&](View view) {
      auto [low, high] = std::minmax_element(x.data.begin(), x.data.end());
      launchAll(most, {view, y}, y, {}, scratch);
      ASSERT_EQ(y.data[0], *high);
      launchAll(least, {view, y}, y, {}, scratch);
      ASSERT_EQ(y.data[0], *low);
    };
    check(x);
    check(x.view().permuted({1, 0}));
    x.data.back() = NAN;
    launchAll(most, {x, y}, y, {}, scratch);
    ASSERT_TRUE(std::isnan(y.data[0]));
    x.data.back() = -x.data[0];
    x.data.front() = -NAN;
    launchAll(least, {x, y}, y, {}, scratch);
    ASSERT_TRUE(std::isnan(y.data[0]));
  }
  Tensor<float> none({0, 4}), y({1, 1});
  launchAll(most, {none, y}, y, {}, scratch);
  EXPECT_EQ(y.data[0], -std::numeric_limits<float>::infinity());
}

TEST(Reduce, LongSumsAreExact) {
  Tensor<float> x({1, 1, 1 << 20}, 0.1f), y({1, 1, 1});
  launch(
      [](const tn_args *a) { tn::reduce<Cfg<float, 4, tn::Reduce::sum>>(a); },
      {x, y});
  EXPECT_EQ(y.data[0], float(double(0.1f) * (1 << 20)));
}

TEST(Reduce, Integers) {
  checkOps<int32_t, 5>(randomIntegers<int32_t>({3, 4, 5}, 1, 3));
  checkOps<int64_t, 2>(randomIntegers<int64_t>({3, 4, 5}, -3, 3));
  checkOps<uint8_t, 4>(randomIntegers<uint8_t>({3, 4, 2}, 0, 9));
  checkOps<double, 3>([] {
    Tensor<double> t({3, 4, 5}, 0.5);
    return t;
  }());
}

template <bool Largest, bool Last> struct ArgCfg {
  using T = float;
  static constexpr int rank = 3, axis = 1;
  static constexpr bool largest = Largest, select_last = Last;
};

template <bool Largest, bool Last> void checkArg() {
  Tensor<float> x({4, 9, 3});
  for (float &v : x.data)
    v = float(generator()() % 4);
  x.data[3 * 5] = NAN;
  Tensor<int64_t> y({4, 1, 3});
  launchAll([](const tn_args *a) { tn::arg_reduce<ArgCfg<Largest, Last>>(a); },
            {x, y}, y);
  forEachIndex(y.shape, [&](const Dims &i) {
    int64_t best = 0;
    bool isNan = false;
    float value = 0;
    for (int64_t j = 0; j < 9; ++j) {
      float v = x.view().at<float>({i[0], j, i[2]});
      if (std::isnan(v)) {
        isNan = true;
        best = j;
      }
      if (isNan)
        continue;
      float s = Largest ? v : -v;
      if (j == 0 || s > value || (Last && s == value)) {
        best = j;
        value = s;
      }
    }
    ASSERT_EQ(y.view().at<int64_t>(i), best) << name(i);
  });
}

TEST(Reduce, Arg) {
  checkArg<true, false>();
  checkArg<true, true>();
  checkArg<false, false>();
  checkArg<false, true>();
  Tensor<float> nothing({4, 0, 3}), none({0, 0, 3});
  Tensor<int64_t> y({4, 1, 3}), empty({0, 1, 3});
  tn_unit unit = [](const tn_args *a) {
    tn::arg_reduce<ArgCfg<true, false>>(a);
  };
  expectFault(unit, {nothing, y}, {TN_FAULT_EMPTY, 0, 1, 0, 0, 0, 0});
  expectFault(unit, {none, empty}, {});
}

} // namespace
