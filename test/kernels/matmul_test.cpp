//===- matmul_test.cpp - gemm, batch_matmul, matmul_generic ---------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/cpu/batch_matmul.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/matmul_generic.h"
#include "support.h"

using namespace test;

namespace {

/// The product in double, of strided views with equal batch dimensions.
template <class T>
Tensor<double> reference(const View &a, const View &b, const Dims &shape) {
  Tensor<double> c(shape);
  View cv = c.view();
  size_t r = shape.size();
  int64_t k = a.shape[r - 1];
  forEachIndex(shape, [&](const Dims &i) {
    Dims ai = i, bi = i;
    double sum = 0;
    for (int64_t x = 0; x < k; ++x) {
      ai[r - 1] = x;
      bi[r - 2] = x;
      sum += double(a.at<T>(ai)) * double(b.at<T>(bi));
    }
    cv.at<double>(i) = sum;
  });
  return c;
}

void expectClose(Tensor<float> &got, const Tensor<double> &want, double k) {
  for (size_t i = 0; i < want.data.size(); ++i)
    ASSERT_TRUE(isClose(got.data[i], want.data[i], 1e-5, 1e-5 + 2e-8 * k))
        << "at " << i << ": " << got.data[i] << " for " << want.data[i];
}

Tensor<float> packed(Tensor<float> &b) {
  int64_t k = b.shape[0], n = b.shape[1];
  Tensor<float> p({tn::packed_size(k, n)});
  tn::pack_b(b.data.data(), k, n, n, 1, p.data.data());
  return p;
}

template <int64_t N_, int64_t K_, class... T> struct GemmCfg {
  using B = float;
  static constexpr int64_t N = N_, K = K_;
  static constexpr int rank = 2;
  using Operands = tn::types<T...>;
};

template <int64_t N, int64_t K> void checkPlain() {
  tn_unit unit = [](const tn_args *a) { tn::gemm<GemmCfg<N, K>>(a); };
  for (int64_t m : {0, 1, 2, 5, 6, 7, 13, 14, 15, 16, 29, 57}) {
    Tensor<float> a = randomTensor({m, K}), b = randomTensor({K, N});
    Tensor<float> p = packed(b), c({m, N}, -7.0f);
    launchAll(unit, {a, p, c}, c);
    expectClose(c, reference<float>(a.view(), b.view(), c.shape), double(K));
  }
}

TEST(Gemm, Sizes) {
  checkPlain<1, 1>();
  checkPlain<16, 5>();
  checkPlain<17, 33>();
  checkPlain<32, 64>();
  checkPlain<48, 7>();
  checkPlain<100, 130>();
  checkPlain<33, 0>();
}

TEST(Gemm, ManyRowsInBlocks) {
  constexpr int64_t N = 70, K = 3000;
  tn_unit unit = [](const tn_args *a) { tn::gemm<GemmCfg<N, K>>(a); };
  Tensor<float> a = randomTensor({200, K}), b = randomTensor({K, N});
  Tensor<float> p = packed(b), c({200, N});
  launchAll(unit, {a, p, c}, c);
  expectClose(c, reference<float>(a.view(), b.view(), c.shape), double(K));
}

template <class T> struct HalfCfg : GemmCfg<37, 130> {
  using B = T;
};

/// Halves are widened exactly, so the result is that of an f32 matrix.
template <class T> void checkHalves() {
  using Cfg = HalfCfg<T>;
  constexpr int64_t N = Cfg::N, K = Cfg::K;
  tn_unit unit = [](const tn_args *a) { tn::gemm<Cfg>(a); };
  Tensor<float> b = randomTensor({K, N}), wide({K, N});
  Tensor<T> narrow({K, N}), p({tn::packed_size(K, N)});
  b.data[5] = 1e-6f; // a denormal of f16
  for (size_t i = 0; i < b.data.size(); ++i) {
    narrow.data[i] = tn_round_to<T>(b.data[i]);
    wide.data[i] = tn_to_float(narrow.data[i]);
    ASSERT_NEAR(wide.data[i], b.data[i], 1.0 / 256);
  }
  tn::pack_b(narrow.data.data(), K, N, N, 1, p.data.data());
  for (int64_t m : {1, 3, 14, 15, 57}) {
    Tensor<float> a = randomTensor({m, K}), c({m, N}, -7.0f);
    launchAll(unit, {a, p, c}, c);
    expectClose(c, reference<float>(a.view(), wide.view(), c.shape), double(K));
  }
}

TEST(Gemm, Halves) {
  checkHalves<tn_f16>();
  checkHalves<tn_bf16>();
}

/// where(mask, relu(acc * scale + bias) + residual, per_row)
struct Everything {
  template <class V>
  static V apply(V acc, const tn::EpilogueArgs &e, int64_t row, int64_t col) {
    V scaled = tn_mul(acc, tn::load_scalar<V>(e, 0, row, col));
    V biased = tn_add(scaled, tn::load_row<V>(e, 1, row, col));
    V sum = tn_add(tn_relu(biased), tn::load_full<V>(e, 2, row, col));
    return tn_where(
        tn::load_any<tn::mask_type<V>>(e, 4, row, col), sum,
        tn_add(tn::load_col<V>(e, 3, row, col), tn::param<V>(e, 0)));
  }
};

struct BatchesCfg : GemmCfg<37, 20, float, float, float, float, tn_bool> {
  static constexpr int rank = 3;
};

TEST(Gemm, EpilogueOnStridedBatches) {
  tn_unit unit = [](const tn_args *a) { tn::gemm<BatchesCfg, Everything>(a); };
  constexpr int64_t B = 3, M = 17, N = 37, K = 20;
  Dims shape = {B, M, N};
  // A is every second row of a longer tensor's middle, so batches do not merge.
  Tensor<float> whole = randomTensor({B, 2 * M + 3, K});
  View a = whole.view().slice(1, 1, M, 2);
  Tensor<float> b = randomTensor({K, N}), p = packed(b), c(shape);
  Tensor<float> scale = randomTensor({1}), bias = randomTensor({N});
  Tensor<float> residual = randomTensor(shape), rows = randomTensor({B, M, 1});
  Tensor<tn_bool> mask = randomIntegers<tn_bool>({M, N}, 0, 1);
  launchAll(unit,
            {a, p, scale.view().broadcast(shape), bias.view().broadcast(shape),
             residual, rows.view().broadcast(shape),
             mask.view().broadcast(shape), c},
            c, {5});
  Tensor<double> want =
      reference<float>(a, b.view().broadcast({B, K, N}), shape);
  View wv = want.view();
  forEachIndex(shape, [&](const Dims &i) {
    double &w = wv.at<double>(i);
    w = w * scale.data[0] + bias.data[i[2]];
    w = (w < 0 ? 0 : w) + residual.view().at<float>(i);
    if (!mask.view().at<tn_bool>({i[1], i[2]}))
      w = rows.view().at<float>({i[0], i[1], 0}) + 5;
  });
  expectClose(c, want, K);
}

TEST(Gemm, NanAndInfinity) {
  tn_unit unit = [](const tn_args *a) { tn::gemm<GemmCfg<3, 2>>(a); };
  Tensor<float> a({2, 2}), b({2, 3}, 1.0f), c({2, 3});
  a.data = {INFINITY, 1, NAN, 1};
  Tensor<float> p = packed(b);
  launch(unit, {a, p, c});
  EXPECT_EQ(c.data[0], INFINITY);
  EXPECT_TRUE(std::isnan(c.data[3]));
}

template <class... T> struct BatchCfg {
  static constexpr int rank = 4;
  using Operands = tn::types<T...>;
};

struct ScaleAndMask {
  template <class V>
  static V apply(V acc, const tn::EpilogueArgs &e, int64_t row, int64_t col) {
    return tn_add(tn_mul(acc, 0.125f), tn::load_any<V>(e, 0, row, col));
  }
};

TEST(BatchMatmul, LayoutsAndSizes) {
  tn_unit unit = [](const tn_args *a) { tn::batch_matmul<BatchCfg<>>(a); };
  struct Size {
    int64_t m, n, k;
  };
  for (Size s : {Size{0, 3, 4},
                 {3, 0, 4},
                 {3, 4, 0},
                 {1, 1, 1},
                 {1, 70, 9},
                 {5, 3, 300},
                 {130, 65, 64},
                 {131, 33, 520},
                 {16, 16, 32}})
    for (int layout = 0; layout < 4; ++layout) {
      bool ta = layout & 1, tb = layout & 2;
      Tensor<float> at =
          randomTensor(ta ? Dims{2, 1, s.k, s.m} : Dims{2, 1, s.m, s.k});
      Tensor<float> bt =
          randomTensor(tb ? Dims{1, 3, s.n, s.k} : Dims{1, 3, s.k, s.n});
      View a = ta ? at.view().permuted({0, 1, 3, 2}) : at.view();
      View b = tb ? bt.view().permuted({0, 1, 3, 2}) : bt.view();
      a = a.broadcast({2, 3, s.m, s.k});
      b = b.broadcast({2, 3, s.k, s.n});
      // broadcast() drops the strides of dimensions of size 1, as it may.
      Tensor<float> c({2, 3, s.m, s.n}, 9.0f);
      launchAll(unit, {a, b, c}, c);
      expectClose(c, reference<float>(a, b, c.shape), double(s.k));
    }
}

TEST(BatchMatmul, Epilogue) {
  tn_unit unit = [](const tn_args *a) {
    tn::batch_matmul<BatchCfg<float>, ScaleAndMask>(a);
  };
  Dims shape = {2, 3, 19, 35};
  Tensor<float> a = randomTensor({2, 3, 19, 8}),
                b = randomTensor({2, 3, 8, 35});
  Tensor<float> mask = randomTensor({2, 1, 1, 35}), c(shape);
  View m = mask.view().broadcast(shape);
  launchAll(unit, {a, b, m, c}, c);
  Tensor<double> want = reference<float>(a.view(), b.view(), shape);
  View wv = want.view();
  forEachIndex(shape, [&](const Dims &i) {
    wv.at<double>(i) = wv.at<double>(i) * 0.125 + m.at<float>(i);
  });
  expectClose(c, want, 8);
}

template <class T> struct GenericCfg {
  using A = T;
  using B = T;
  using C = T;
  static constexpr int rank = 3;
  using Operands = tn::types<T>;
};

struct AddOperand {
  template <class V>
  static V apply(V acc, const tn::EpilogueArgs &e, int64_t row, int64_t col) {
    return tn_add(acc, tn::load_any<V>(e, 0, row, col));
  }
};

template <class T> void checkGeneric() {
  tn_unit unit = [](const tn_args *a) {
    tn::matmul_generic<GenericCfg<T>, AddOperand>(a);
  };
  for (int64_t k : {0, 1, 7})
    for (int64_t m : {0, 1, 5}) {
      Dims shape = {2, m, 67};
      Tensor<T> a = randomIntegers<T>({2, m, k}, 0, 3);
      Tensor<T> b = randomIntegers<T>({1, 67, k}, 0, 3);
      Tensor<T> bias = randomIntegers<T>({67}, 0, 9), c(shape);
      View bv = b.view().permuted({0, 2, 1});
      bv.shape[0] = 2;
      bv.stride[0] = 0;
      launchAll(unit, {a, bv, bias.view().broadcast(shape), c}, c);
      Tensor<double> want = reference<T>(a.view(), bv, shape);
      for (size_t i = 0; i < want.data.size(); ++i)
        ASSERT_EQ(double(c.data[i]), want.data[i] + double(bias.data[i % 67]));
    }
}

TEST(MatmulGeneric, Types) {
  checkGeneric<double>();
  checkGeneric<int32_t>();
  checkGeneric<uint8_t>();
  checkGeneric<int64_t>();
}

} // namespace
