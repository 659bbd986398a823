//===- kernels_bench.cpp - how close kernels come to the machine's peak ---===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "bench/kernels/kernel_bench.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/loop.h"
#include "kernels/cpu/norm.h"

using namespace bench;

void addSmallWeights();

namespace {

template <int64_t N_, int64_t K_> struct GemmCfg {
  using B = float;
  static constexpr int64_t N = N_, K = K_;
  static constexpr int rank = 2;
  using Operands = tn::types<float>;
};

struct Bias {
  template <class V>
  static V apply(V acc, const tn::EpilogueArgs &e, int64_t r, int64_t c) {
    return tn_add(acc, tn::load_row<V>(e, 0, r, c));
  }
};

struct Gelu {
  template <class V>
  static V apply(V acc, const tn::EpilogueArgs &e, int64_t r, int64_t c) {
    return tn_gelu_erf(tn_add(acc, tn::load_row<V>(e, 0, r, c)));
  }
};

/// Many rows on tiles: six products of bf16 make one of f32.
Limit gemmLimit(int64_t m) {
  return hasTiles && m >= 56 ? Limit{tilesPeak<false>, 6} : Limit{fmaPeak};
}

template <int64_t K, int64_t N, class Epilogue = Bias>
void gemm(benchmark::State &state) {
  int64_t m = state.range(0);
  Operand a({m, K}), b({K * N}), bias({1, N}), c({m, N});
  bias.stride[0] = 0;
  tn_unit unit = [](const tn_args *x) { tn::gemm<GemmCfg<N, K>, Epilogue>(x); };
  measure(state, unit, {a.view(), b.view(), bias.view(), c.view()},
          2.0 * double(m) * N * K, 4.0 * N * K, gemmLimit(m));
}

template <int64_t Size> struct AttentionCfg {
  static constexpr int64_t D = Size, Dv = Size;
  static constexpr float scale = 0.125f, softcap = 0;
  static constexpr tn::Mask mask = tn::Mask::additive;
  static constexpr tn::Align align = tn::Align::bottom_right;
  static constexpr int64_t left = tn::dynamic, right = tn::dynamic;
  static constexpr bool alibi = false;
  static constexpr tn::MaskedRow masked_row = tn::MaskedRow::uniform;
};

template <int64_t D> void attention(benchmark::State &state) {
  int64_t sq = state.range(0), skv = state.range(1), heads = state.range(2);
  Operand q({1, sq, heads, D}), k({1, skv, heads, D}), v({1, skv, heads, D});
  Operand mask({1, heads, sq, skv}), o({1, sq, heads, D});
  mask.stride = {0, 0, 0, 1};
  tn_unit full = [](const tn_args *x) { tn::attention<AttentionCfg<D>>(x); };
  tn_unit decode = [](const tn_args *x) {
    tn::attention_decode<AttentionCfg<D>>(x);
  };
  measure(state, sq <= 4 ? decode : full,
          {q.view(), k.view(), v.view(), mask.view(), o.view()},
          4.0 * double(sq * skv * heads * D), 8.0 * double(skv * heads * D),
          {fmaPeak}, 4 * heads * sq * (skv / 256 + 1) * (D + 2));
}

struct NormCfg {
  static constexpr int rank = 2, axes = 1;
  static constexpr int64_t N = 768;
  static constexpr float epsilon = 1e-12f;
  static constexpr bool has_residual = false, has_gamma = true, has_beta = true,
                        has_mean = false, has_inv_std = false, has_sum = false;
};

void layerNorm(benchmark::State &state) {
  int64_t rows = state.range(0);
  Operand x({rows, 768}), g({768}), b({768}), y({rows, 768});
  measure(
      state, [](const tn_args *a) { tn::layer_norm<NormCfg>(a); },
      {x.view(), g.view(), b.view(), y.view()}, 0, 8.0 * double(rows) * 768);
}

void softmax(benchmark::State &state) {
  int64_t rows = state.range(0);
  Operand x({rows, 768}), y({rows, 768});
  measure(
      state, [](const tn_args *a) { tn::softmax<NormCfg>(a); },
      {x.view(), y.view()}, 0, 8.0 * double(rows) * 768);
}

struct LoopCfg {
  static constexpr int rank = 2, params = 0;
  using Inputs = tn::types<float, float>;
  using Results = tn::types<float>;
  static constexpr bool vector = true, index = false;
};
struct AddBody {
  template <class A, class B> static auto apply(A a, B b) {
    return tn_add(a, b);
  }
};
struct GeluBody {
  template <class A, class B> static auto apply(A a, B b) {
    return tn_gelu_erf(tn_add(a, b));
  }
};

template <class Body> void elementwise(benchmark::State &state) {
  Operand x({128, 768}), b({128, 768}), y({128, 768});
  if (state.range(0))
    b.stride[0] = 0;
  measure(
      state, [](const tn_args *a) { tn::loop<LoopCfg, Body>(a); },
      {x.view(), b.view(), y.view()}, 0, 12.0 * 128 * 768);
}

struct CopyCfg {
  static constexpr int rank = 3, params = 0;
  using Inputs = tn::types<float>;
  using Results = tn::types<float>;
  static constexpr bool vector = true, index = false;
};
struct CopyBody {
  template <class A> static A apply(A a) { return a; }
};

void transpose(benchmark::State &state) {
  Operand x({4, 128, 768}), y({4, 768, 128});
  x.stride = {128 * 768, 1, 768};
  x.shape = {4, 768, 128};
  measure(
      state, [](const tn_args *a) { tn::loop<CopyCfg, CopyBody>(a); },
      {x.view(), y.view()}, 0, 8.0 * 4 * 128 * 768);
}

} // namespace

int main(int argc, char **argv) {
  std::vector<std::vector<int64_t>> rows = {{1}, {16}, {128}, {512}, {1024}};
  add("gemm/768x2304", gemm<768, 2304>, rows);
  add("gemm/768x768", gemm<768, 768>, rows);
  add("gemm/768x3072/gelu", gemm<768, 3072, Gelu>, rows);
  add("gemm/3072x768", gemm<3072, 768>, rows);
  add("gemm/384x1152", gemm<384, 1152>, rows);
  add("gemm/384x384", gemm<384, 384>, rows);
  add("gemm/384x1536/gelu", gemm<384, 1536, Gelu>, rows);
  add("gemm/1536x384", gemm<1536, 384>, rows);
  addSmallWeights();
  add("attention/64", attention<64>,
      {{16, 16, 12}, {128, 128, 12}, {197, 197, 12}, {512, 512, 12}});
  add("attention/32", attention<32>, {{16, 16, 12}, {128, 128, 12}});
  add("decode/64", attention<64>, {{1, 1024, 12}});
  add("layer_norm", layerNorm, {{128}});
  add("softmax", softmax, {{128}});
  add("loop/add", elementwise<AddBody>, {{0}, {1}});
  add("loop/gelu", elementwise<GeluBody>, {{0}, {1}});
  add("loop/transpose", transpose, {{}});
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
