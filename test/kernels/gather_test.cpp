//===- gather_test.cpp - gather and scatter -------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/common/gather.h"
#include "kernels/cpu/gather_panels.h"
#include "support.h"

using namespace test;

namespace {

/// What the contract does with an index.
int64_t wrapped(int64_t i, int64_t n) { return i < 0 ? i + n : i; }

template <class T_, class I, int DataRank, int Axis, int IndicesRank>
struct GatherCfg {
  using T = T_;
  using Index = I;
  static constexpr int data_rank = DataRank, axis = Axis,
                       indices_rank = IndicesRank;
};

template <int Axis, class I> void checkGather(bool permuted) {
  tn_unit unit = [](const tn_args *a) {
    tn::gather<GatherCfg<float, I, 3, Axis, 2>>(a);
  };
  Tensor<float> data = randomTensor({4, 5, 6});
  View dv = permuted ? data.view().permuted({2, 0, 1}) : data.view();
  Tensor<I> indices = randomIntegers<I>({2, 3}, -4, 3);
  Dims shape;
  for (int d = 0; d < 3; ++d) {
    if (d == Axis) {
      shape.push_back(2);
      shape.push_back(3);
    } else {
      shape.push_back(dv.shape[d]);
    }
  }
  Tensor<float> y(shape);
  launchAll(unit, {dv, indices, y}, y);
  forEachIndex(shape, [&](const Dims &i) {
    Dims at = i;
    at.erase(at.begin() + Axis);
    at[Axis] = wrapped(indices.view().template at<I>({i[Axis], i[Axis + 1]}),
                       dv.shape[Axis]);
    ASSERT_EQ(y.view().at<float>(i), dv.at<float>(at));
  });
}

TEST(Gather, AxesTypesLayouts) {
  checkGather<0, int64_t>(false);
  checkGather<1, int32_t>(false);
  checkGather<2, int64_t>(false);
  checkGather<0, int64_t>(true);
  checkGather<1, int64_t>(true);
}

constexpr int64_t lowest = std::numeric_limits<int64_t>::min();

TEST(Gather, ScalarIndexAndEmptyData) {
  tn_unit unit = [](const tn_args *a) {
    tn::gather<GatherCfg<int64_t, int64_t, 1, 0, 0>>(a);
  };
  Tensor<int64_t> data({3}), index(Dims{}, -1), y(Dims{}, 99);
  data.data = {5, 6, 7};
  launch(unit, {data, index, y});
  EXPECT_EQ(y.data[0], 7);
  Tensor<int64_t> empty({0});
  expectFault(unit, {empty, index, y}, {TN_FAULT_INDEX, 1, 0, 0, 0, -1, 0});
  index.data[0] = lowest;
  expectFault(unit, {data, index, y}, {TN_FAULT_INDEX, 1, 0, 0, 0, lowest, 3});
}

TEST(Gather, ReportsTheFirstIndexOutOfRange) {
  tn_unit unit = [](const tn_args *a) {
    tn::gather<GatherCfg<float, int32_t, 3, 1, 2>>(a);
  };
  Tensor<float> data = randomTensor({4, 5, 6}), y({4, 3, 7, 6}, 1);
  Tensor<int32_t> indices = randomIntegers<int32_t>({3, 7}, -5, 4);
  indices.data[20] = 5;
  expectFault(unit, {data, indices, y}, {TN_FAULT_INDEX, 1, 1, 0, 20, 5, 5});
  indices.data[13] = -6;
  expectFault(unit, {data, indices, y}, {TN_FAULT_INDEX, 1, 1, 0, 13, -6, 5});
  // Nobody is chosen from, or nothing of it: the same.
  Tensor<float> none({4, 0, 6}), thin({4, 5, 0}), nothing({4, 3, 7, 0});
  expectFault(unit, {none, indices, y},
              {TN_FAULT_INDEX, 1, 1, 0, 0, indices.data[0], 0});
  expectFault(unit, {thin, indices, nothing},
              {TN_FAULT_INDEX, 1, 1, 0, 13, -6, 5});
  // A caller that asks for no fault gets none.
  View views[] = {data, indices, y};
  tn_view raw[] = {views[0].get(), views[1].get(), views[2].get()};
  tn_args args = {};
  args.views = raw;
  args.threads = 1;
  unit(&args);
}

struct ElementsCfg {
  using T = float;
  using Index = int64_t;
  static constexpr int rank = 2, axis = 1;
};

TEST(Gather, Elements) {
  tn_unit unit = [](const tn_args *a) { tn::gather_elements<ElementsCfg>(a); };
  Tensor<float> data = randomTensor({4, 7}), y({3, 9});
  Tensor<int64_t> indices = randomIntegers<int64_t>({3, 9}, -7, 6);
  launchAll(unit, {data, indices, y}, y);
  forEachIndex(y.shape, [&](const Dims &i) {
    int64_t j = wrapped(indices.view().at<int64_t>(i), 7);
    ASSERT_EQ(y.view().at<float>(i), data.view().at<float>({i[0], j}));
  });
}

TEST(Gather, ElementsFaults) {
  tn_unit unit = [](const tn_args *a) { tn::gather_elements<ElementsCfg>(a); };
  Tensor<float> data = randomTensor({4, 7}), y({4, 9});
  Tensor<int64_t> indices({4, 9}, 6);
  indices.data[30] = indices.data[35] = -8;
  expectFault(unit, {data, indices, y}, {TN_FAULT_INDEX, 1, 1, 0, 30, -8, 7});
  Tensor<float> wide({5, 9});
  Tensor<int64_t> many({5, 9});
  expectFault(unit, {data, many, wide}, {TN_FAULT_SIZE, 1, 0, 0, 0, 5, 4});
}

struct NdCfg {
  using T = float;
  using Index = int64_t;
  static constexpr int data_rank = 4, indices_rank = 3, batch_dims = 1,
                       depth = 2;
};

TEST(Gather, Nd) {
  tn_unit unit = [](const tn_args *a) { tn::gather_nd<NdCfg>(a); };
  Tensor<float> data = randomTensor({2, 3, 4, 5}), y({2, 6, 5});
  Tensor<int64_t> indices = randomIntegers<int64_t>({2, 6, 2}, -3, 2);
  launchAll(unit, {data, indices, y}, y);
  forEachIndex(y.shape, [&](const Dims &i) {
    int64_t r = wrapped(indices.view().at<int64_t>({i[0], i[1], 0}), 3);
    int64_t s = wrapped(indices.view().at<int64_t>({i[0], i[1], 1}), 4);
    ASSERT_EQ(y.view().at<float>(i), data.view().at<float>({i[0], r, s, i[2]}));
  });
}

template <bool Pairs> struct PanelsCfg {
  static constexpr bool pairs = Pairs;
  using T = float;
  using Index = int32_t;
  static constexpr int indices_rank = 2;
  static constexpr int64_t entries = 37;
};

TEST(Gather, Panels) {
  tn_unit unit = [](const tn_args *a) {
    tn::gather_panels<PanelsCfg<false>>(a);
  };
  constexpr int64_t columns = 9;
  Tensor<float> table = randomTensor({37, columns});
  Tensor<float> panels({3, columns, 16}), y({4, columns, 5});
  // The matrix that is packed is the transposed table.
  tn::pack_b(table.data.data(), columns, 37, 1, columns, panels.data.data());
  Tensor<int32_t> indices = randomIntegers<int32_t>({4, 5}, -37, 36);
  indices.data[7] = 36, indices.data[8] = -37;
  View out = y.view().permuted({0, 2, 1});
  launchAll(unit, {panels, indices, out}, y);
  forEachIndex(out.shape, [&](const Dims &i) {
    int64_t at = wrapped(indices.view().at<int32_t>({i[0], i[1]}), 37);
    ASSERT_EQ(out.at<float>(i), table.view().at<float>({at, i[2]}));
  });
  // Past the table, but not past the last panel.
  indices.data[11] = 37, indices.data[13] = -38;
  expectFault(unit, {panels, indices, out},
              {TN_FAULT_INDEX, 1, 0, 0, 11, 37, 37});
}

/// Two columns of the table to a line, as bf16 is packed.
TEST(Gather, PairsInPanels) {
  constexpr int64_t columns = 9, lines = 5;
  Tensor<float> table = randomTensor({37, columns});
  Tensor<float> panels({3, lines, 32}), y({20, columns});
  for (int64_t n = 0; n < 37; ++n)
    for (int64_t k = 0; k < columns; ++k)
      panels.data[(n / 16 * lines + k / 2) * 32 + n % 16 * 2 + k % 2] =
          table.data[n * columns + k];
  Tensor<int32_t> indices = randomIntegers<int32_t>({4, 5}, -37, 36);
  launchAll([](const tn_args *a) { tn::gather_panels<PanelsCfg<true>>(a); },
            {panels, indices,
             View{(char *)y.data.data(),
                  {4, 5, columns},
                  {5 * columns, columns, 1},
                  4}},
            y);
  for (int64_t r = 0; r < 20; ++r)
    for (int64_t k = 0; k < columns; ++k)
      ASSERT_EQ(y.data[r * columns + k],
                table.data[wrapped(indices.data[r], 37) * columns + k]);
}

TEST(Gather, NdFaults) {
  tn_unit unit = [](const tn_args *a) { tn::gather_nd<NdCfg>(a); };
  Tensor<float> data = randomTensor({2, 3, 4, 5}), y({2, 6, 5});
  Tensor<int64_t> indices({2, 6, 2}, 2);
  indices.data[23] = 4;
  expectFault(unit, {data, indices, y}, {TN_FAULT_INDEX, 1, 2, 0, 23, 4, 4});
  indices.data[10] = 3;
  expectFault(unit, {data, indices, y}, {TN_FAULT_INDEX, 1, 1, 0, 10, 3, 3});
}

template <tn::Reduction R> struct ScatterCfg {
  using T = int64_t;
  using Index = int64_t;
  static constexpr int rank = 2, axis = 0;
  static constexpr int data_rank = 2, indices_rank = 2, depth = 1;
  static constexpr tn::Reduction reduction = R;
};

template <tn::Reduction R> void checkScatter() {
  auto join = [](int64_t a, int64_t b) {
    switch (R) {
    case tn::Reduction::none:
      return b;
    case tn::Reduction::add:
      return a + b;
    case tn::Reduction::mul:
      return a * b;
    case tn::Reduction::min:
      return std::min(a, b);
    case tn::Reduction::max:
      return std::max(a, b);
    }
    return b;
  };
  Tensor<int64_t> data = randomIntegers<int64_t>({4, 5}, -9, 9), y({4, 5});
  Tensor<int64_t> updates = randomIntegers<int64_t>({6, 5}, -9, 9);
  Tensor<int64_t> indices = randomIntegers<int64_t>({6, 5}, -4, 3);
  launchAll([](const tn_args *a) { tn::scatter_elements<ScatterCfg<R>>(a); },
            {data, indices, updates, y}, y);
  Tensor<int64_t> want = data;
  forEachIndex(updates.shape, [&](const Dims &i) {
    int64_t r = wrapped(indices.view().at<int64_t>(i), 4);
    int64_t &t = want.view().at<int64_t>({r, i[1]});
    t = join(t, updates.view().at<int64_t>(i));
  });
  EXPECT_EQ(y.data, want.data);

  Tensor<int64_t> rows = randomIntegers<int64_t>({6, 1}, -4, 3);
  launchAll([](const tn_args *a) { tn::scatter_nd<ScatterCfg<R>>(a); },
            {data, rows, updates, y}, y);
  want = data;
  forEachIndex(updates.shape, [&](const Dims &i) {
    int64_t &t = want.view().at<int64_t>({wrapped(rows.data[i[0]], 4), i[1]});
    t = join(t, updates.view().at<int64_t>(i));
  });
  EXPECT_EQ(y.data, want.data);
}

TEST(Scatter, Reductions) {
  checkScatter<tn::Reduction::none>();
  checkScatter<tn::Reduction::add>();
  checkScatter<tn::Reduction::mul>();
  checkScatter<tn::Reduction::min>();
  checkScatter<tn::Reduction::max>();
}

TEST(Scatter, Faults) {
  using Cfg = ScatterCfg<tn::Reduction::add>;
  tn_unit elements = [](const tn_args *a) { tn::scatter_elements<Cfg>(a); };
  tn_unit nd = [](const tn_args *a) { tn::scatter_nd<Cfg>(a); };
  Tensor<int64_t> data({4, 5}), y({4, 5}), updates({6, 5}), empty({0, 5});
  Tensor<int64_t> indices({6, 5}, 3), rows({6, 1}, -4), wide({6, 6});
  indices.data[17] = 4;
  rows.data[5] = -5;
  expectFault(elements, {data, indices, updates, y},
              {TN_FAULT_INDEX, 1, 0, 0, 17, 4, 4});
  expectFault(elements, {empty, indices, updates, empty},
              {TN_FAULT_INDEX, 1, 0, 0, 0, 3, 0});
  expectFault(elements, {data, wide, wide, y},
              {TN_FAULT_SIZE, 1, 1, 0, 0, 6, 5});
  expectFault(nd, {data, rows, updates, y},
              {TN_FAULT_INDEX, 1, 0, 0, 5, -5, 4});
}

} // namespace
