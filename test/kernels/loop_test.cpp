//===- loop_test.cpp - elementwise clusters -------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/cpu/loop.h"
#include "support.h"

using namespace test;

namespace {

template <int Rank, bool Vector, class In, class Out> struct Cfg {
  static constexpr int rank = Rank;
  using Inputs = In;
  using Results = Out;
  static constexpr bool vector = Vector, index = false;
  static constexpr int params = 0;
};

struct Axpy {
  template <class A, class B> static auto apply(A a, B b) {
    return tn_add(tn_mul(a, 3.0f), b);
  }
};

template <bool Vector> void checkBroadcasts() {
  tn_unit unit = [](const tn_args *a) {
    tn::loop<Cfg<3, Vector, tn::types<float, float>, tn::types<float>>, Axpy>(
        a);
  };
  for (Dims shape : {Dims{1, 1, 1},
                     {2, 3, 5},
                     {3, 1, 40},
                     {0, 3, 4},
                     {2, 7, 0},
                     {4, 33, 17}})
    for (int form = 0; form < 5; ++form) {
      Tensor<float> a = randomTensor(shape), c(shape);
      Dims bs = form == 0   ? shape
                : form == 1 ? Dims{shape[2]}
                : form == 2 ? Dims{shape[1], 1}
                            : Dims{1};
      Tensor<float> b = randomTensor(bs);
      View bv = b.view().broadcast(shape), av = a.view();
      Tensor<float> t = randomTensor({shape[2], shape[0], shape[1]});
      if (form == 4)
        av = t.view().permuted({1, 2, 0});
      launchAll(unit, {av, bv, c}, c);
      forEachIndex(shape, [&](const Dims &i) {
        ASSERT_NEAR(c.view().at<float>(i),
                    av.at<float>(i) * 3.0 + bv.at<float>(i), 1e-6)
            << name(i);
      });
    }
}

TEST(Loop, BroadcastAndTranspose) {
  checkBroadcasts<true>();
  checkBroadcasts<false>();
}

struct ToBytes {
  template <class A> static auto apply(A a) {
    return tn_cast<uint8_t>(tn_add(tn_round(a), 3.0f));
  }
};

/// Vectors that become bytes, in and out of range, with and without strides.
TEST(Loop, Bytes) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  tn_unit unit = [](const tn_args *a) {
    tn::loop<Cfg<2, true, tn::types<float>, tn::types<uint8_t>>, ToBytes>(a);
  };
  for (int64_t n : {1, 7, 16, 45, 64}) {
    Tensor<float> x = randomTensor({3, n}, -300, 600);
    x.data[0] = NAN;
    if (n > 5)
      x.data[1] = inf, x.data[2] = -inf, x.data[3] = 3e9f, x.data[4] = -0.7f;
    Tensor<uint8_t> y({3, n}), z({n, 3});
    launchAll(unit, {x, y}, y);
    View turned = z.view().permuted({1, 0});
    launchAll(unit, {x, turned}, z);
    forEachIndex({3, n}, [&](const Dims &i) {
      uint8_t want =
          tn_cast<uint8_t>(std::nearbyintf(x.view().at<float>(i)) + 3.0f);
      ASSERT_EQ(y.view().at<uint8_t>(i), want) << name(i);
      ASSERT_EQ(turned.at<uint8_t>(i), want) << name(i);
    });
  }
}

TEST(Loop, InPlaceAndReversed) {
  tn_unit unit = [](const tn_args *a) {
    tn::loop<Cfg<1, true, tn::types<float, float>, tn::types<float>>, Axpy>(a);
  };
  Tensor<float> a = randomTensor({77}), b = randomTensor({77});
  std::vector<float> old = a.data;
  View reversed = b.view().slice(0, 76, 77, -1);
  launch(unit, {a, reversed, a}, 3);
  for (int i = 0; i < 77; ++i)
    EXPECT_NEAR(a.data[i], old[i] * 3.0 + b.data[76 - i], 1e-6);
}

/// Two results, a bool operand, a parameter.
struct Mixed {
  template <class A, class M> static auto apply(A a, M m, int64_t p) {
    auto less = tn_less(a, 0.25f);
    auto both = tn_and(less, m);
    return tn::results(tn_where(both, tn_exp(a), tn_add(a, tn_cast<float>(p))),
                       both);
  }
};

template <bool Vector>
struct MixedCfg
    : Cfg<2, Vector, tn::types<float, tn_bool>, tn::types<float, tn_bool>> {
  static constexpr int params = 1;
};

template <bool Vector> void checkMixed() {
  tn_unit unit = [](const tn_args *a) { tn::loop<MixedCfg<Vector>, Mixed>(a); };
  Dims shape = {9, 21};
  Tensor<float> a = randomTensor(shape), y(shape);
  Tensor<tn_bool> m = randomIntegers<tn_bool>({21}, 0, 1), z(shape);
  launch(unit, {a, m.view().broadcast(shape), y, z}, 2, {7});
  forEachIndex(shape, [&](const Dims &i) {
    float x = a.view().at<float>(i);
    bool both = x < 0.25f && m.data[i[1]];
    EXPECT_EQ(z.view().at<tn_bool>(i), both);
    EXPECT_NEAR(y.view().at<float>(i), both ? std::exp(x) : x + 7, 1e-6);
  });
}

TEST(Loop, SeveralResultsMasksParams) {
  checkMixed<true>();
  checkMixed<false>();
}

struct Shift {
  static float apply(int64_t a) {
    return tn_cast<float>(tn_sub(a, int64_t(1)));
  }
};

TEST(Loop, MixedTypesAndRankZero) {
  tn_unit unit = [](const tn_args *a) {
    tn::loop<Cfg<0, false, tn::types<int64_t>, tn::types<float>>, Shift>(a);
  };
  Tensor<int64_t> a(Dims{}, 41);
  Tensor<float> y(Dims{});
  launch(unit, {a, y}, 2);
  EXPECT_EQ(y.data[0], 40);
}

struct Triangle {
  static float apply(const int64_t *i, float x) {
    return i[1] <= i[0] ? x : 0.0f;
  }
};

struct IndexCfg : Cfg<2, false, tn::types<float>, tn::types<float>> {
  static constexpr bool index = true;
};

TEST(Loop, Index) {
  tn_unit unit = [](const tn_args *a) { tn::loop<IndexCfg, Triangle>(a); };
  Tensor<float> x({5, 7}, 2.0f), y({5, 7});
  launchAll(unit, {x, y}, y);
  forEachIndex(y.shape, [&](const Dims &i) {
    EXPECT_EQ(y.view().at<float>(i), i[1] <= i[0] ? 2 : 0);
  });
}

struct Same {
  template <class A> static A apply(A a) { return a; }
};

TEST(Loop, BigTranspose) {
  tn_unit unit = [](const tn_args *a) {
    tn::loop<Cfg<3, true, tn::types<float>, tn::types<float>>, Same>(a);
  };
  for (Dims shape : {Dims{2, 100, 67}, {3, 64, 32}, {1, 5, 300}}) {
    Tensor<float> x = randomTensor({shape[0], shape[2], shape[1]}), y(shape);
    View xv = x.view().permuted({0, 2, 1});
    launchAll(unit, {xv, y}, y);
    forEachIndex(shape, [&](const Dims &i) {
      ASSERT_EQ(y.view().at<float>(i), xv.at<float>(i));
    });
  }
}

} // namespace
