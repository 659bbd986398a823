//===- conv_test.cpp - convolution and pooling ----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/cpu/conv.h"
#include "kernels/common/pool.h"
#include "support.h"

using namespace test;

namespace {

/// acc + bias of the filter, then relu.
struct BiasRelu {
  template <class V>
  static V apply(V acc, const tn::EpilogueArgs &e, int64_t row, int64_t col) {
    return tn_relu(tn_add(acc, tn::load_col<V>(e, 0, row, col)));
  }
};

/// The index into x that window element t of position p meets; false outside.
template <class Cfg>
bool source(const Dims &p, const Dims &t, const Dims &x, Dims &at) {
  for (int d = 0; d < Cfg::spatial; ++d) {
    at[2 + d] =
        p[2 + d] * Cfg::strides[d] + t[d] * Cfg::dilations[d] - Cfg::pad_low[d];
    if (at[2 + d] < 0 || at[2 + d] >= x[2 + d])
      return false;
  }
  return true;
}

template <class Cfg> Dims kernelOf() {
  return Dims(Cfg::kernel, Cfg::kernel + Cfg::spatial);
}

template <class Cfg> void checkConv(Dims xShape, Dims outSpatial) {
  Dims wShape = {Cfg::filters, Cfg::channels / Cfg::groups};
  for (int64_t k : kernelOf<Cfg>())
    wShape.push_back(k);
  Dims yShape = {xShape[0], Cfg::filters};
  yShape.insert(yShape.end(), outSpatial.begin(), outSpatial.end());
  Tensor<float> x = randomTensor(xShape), w = randomTensor(wShape), y(yShape);
  Dims biasShape(yShape.size() - 1, 1);
  biasShape[0] = Cfg::filters;
  Tensor<float> bias = randomTensor(biasShape);
  View b = bias.view().broadcast(yShape), xv = x.view(), wv = w.view();

  Tensor<double> want(yShape);
  forEachIndex(yShape, [&](const Dims &i) {
    double sum = bias.data[i[1]];
    int64_t perGroup = Cfg::channels / Cfg::groups;
    int64_t first = i[1] / (Cfg::filters / Cfg::groups) * perGroup;
    for (int64_t c = 0; c < perGroup; ++c)
      forEachIndex(kernelOf<Cfg>(), [&](const Dims &t) {
        Dims at = i, wat = {i[1], c};
        at[1] = first + c;
        wat.insert(wat.end(), t.begin(), t.end());
        if (source<Cfg>(i, t, xShape, at))
          sum += double(xv.at<float>(at)) * wv.at<float>(wat);
      });
    want.view().at<double>(i) = sum < 0 ? 0 : sum;
  });
  tn_unit units[] = {
      [](const tn_args *a) { tn::conv<Cfg, BiasRelu>(a); },
      [](const tn_args *a) { tn::conv_direct<Cfg, BiasRelu>(a); }};
  for (tn_unit unit : units) {
    launchAll(unit, {x, w, b, y}, y);
    for (size_t i = 0; i < want.data.size(); ++i)
      ASSERT_NEAR(y.data[i], want.data[i], 1e-4) << i;
  }
}

struct Base {
  using T = float;
  using Operands = tn::types<float>;
  static constexpr int64_t groups = 1;
};
struct Patch : Base {
  static constexpr int spatial = 2;
  static constexpr int64_t channels = 3, filters = 40;
  static constexpr int64_t kernel[] = {8, 8}, strides[] = {8, 8},
                           dilations[] = {1, 1}, pad_low[] = {0, 0};
};
struct Line : Base {
  static constexpr int spatial = 1;
  static constexpr int64_t channels = 5, filters = 17;
  static constexpr int64_t kernel[] = {3}, strides[] = {2}, dilations[] = {1},
                           pad_low[] = {1};
};
struct Grouped : Base {
  static constexpr int spatial = 2;
  static constexpr int64_t groups = 2, channels = 4, filters = 6;
  static constexpr int64_t kernel[] = {3, 2}, strides[] = {1, 2},
                           dilations[] = {2, 1}, pad_low[] = {2, 1};
};
struct Depthwise : Base {
  static constexpr int spatial = 2;
  static constexpr int64_t groups = 6, channels = 6, filters = 6;
  static constexpr int64_t kernel[] = {3, 3}, strides[] = {1, 1},
                           dilations[] = {1, 1}, pad_low[] = {1, 1};
};
struct Cube : Base {
  static constexpr int spatial = 3;
  static constexpr int64_t channels = 2, filters = 3;
  static constexpr int64_t kernel[] = {2, 2, 2}, strides[] = {1, 2, 1},
                           dilations[] = {1, 1, 1}, pad_low[] = {0, 1, 0};
};
struct ManyFilters : Base {
  static constexpr int spatial = 1;
  static constexpr int64_t channels = 100, filters = 600;
  static constexpr int64_t kernel[] = {3}, strides[] = {1}, dilations[] = {1},
                           pad_low[] = {1};
};

TEST(Conv, Kinds) {
  checkConv<Patch>({2, 3, 40, 24}, {5, 3});
  checkConv<Line>({2, 5, 151}, {76});
  checkConv<Grouped>({1, 4, 9, 11}, {9, 6});
  checkConv<Depthwise>({1, 6, 10, 150}, {10, 150});
  checkConv<Cube>({1, 2, 3, 4, 5}, {2, 2, 4});
  checkConv<ManyFilters>({1, 100, 20}, {20});
  checkConv<Line>({0, 5, 151}, {76});
}

template <bool Padding> struct PoolCfg {
  using T = float;
  static constexpr int spatial = 2, norm = 2;
  static constexpr int64_t kernel[] = {3, 2}, strides[] = {2, 2},
                           dilations[] = {1, 2}, pad_low[] = {1, 0},
                           pad_high[] = {1, 1};
  static constexpr bool has_indices = true, column_major = Padding,
                        count_include_pad = Padding;
};

template <bool Padding> void checkPool() {
  using Cfg = PoolCfg<Padding>;
  // The last row of windows hangs over the padding, as ceil_mode allows.
  Dims xShape = {2, 3, 8, 9}, yShape = {2, 3, 5, 4};
  Tensor<float> x = randomTensor(xShape);
  x.data[11] = NAN;
  Tensor<float> max(yShape), mean(yShape), lp(yShape);
  Tensor<int64_t> indices(yShape);
  View xv = x.view();
  launchAll([](const tn_args *a) { tn::max_pool<Cfg>(a); }, {x, max, indices},
            max);
  launchAll([](const tn_args *a) { tn::average_pool<Cfg>(a); }, {x, mean},
            mean);
  launchAll([](const tn_args *a) { tn::lp_pool<Cfg>(a); }, {x, lp}, lp);
  forEachIndex(yShape, [&](const Dims &i) {
    double best = -INFINITY, sum = 0, squares = 0;
    int64_t inside = 0, padded = 0, where = -1;
    forEachIndex({3, 2}, [&](const Dims &t) {
      Dims at = i;
      bool within = true;
      for (int d = 0; d < 2; ++d)
        within &= i[2 + d] * Cfg::strides[d] + t[d] * Cfg::dilations[d] -
                      Cfg::pad_low[d] <
                  xShape[2 + d] + Cfg::pad_high[d];
      padded += within;
      if (!source<Cfg>(i, t, xShape, at))
        return;
      double v = xv.at<float>(at);
      sum += v;
      squares += v * v;
      ++inside;
      if (std::isnan(best) || (where >= 0 && !std::isnan(v) && v <= best))
        return;
      best = v;
      where = (i[0] * 3 + i[1]) * 72 +
              (Padding ? at[3] * 8 + at[2] : at[2] * 9 + at[3]);
    });
    int64_t n = Padding ? padded : inside;
    ASSERT_TRUE(isClose(max.view().at<float>(i), best, 0, 0)) << name(i);
    ASSERT_EQ(indices.view().at<int64_t>(i), where) << name(i);
    ASSERT_TRUE(isClose(mean.view().at<float>(i), n ? sum / n : 0, 1e-6, 1e-6));
    ASSERT_TRUE(
        isClose(lp.view().at<float>(i), std::sqrt(squares), 1e-6, 1e-6));
  });
}

TEST(Pool, WindowsPaddingIndices) {
  checkPool<false>();
  checkPool<true>();
}

} // namespace
