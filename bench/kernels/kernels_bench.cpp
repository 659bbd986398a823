//===- kernels_bench.cpp - how close kernels come to the machine's peak ---===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Each benchmark runs on one thread, is timed by that thread's CPU time, and
/// says in `best` what share of the peak its fastest repetition reached: of the
/// fused multiply-adds that the same thread was just then seen to do from
/// registers, for products; of copying within the L2 cache, for the rest
/// (`GB/s`, no share).
///
//===----------------------------------------------------------------------===//

#include "kernels/cpu/attention.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/loop.h"
#include "kernels/cpu/norm.h"

#include <algorithm>
#include <benchmark/benchmark.h>
#include <string>
#include <time.h>
#include <vector>

namespace {

double cpuSeconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
}

/// Multiply-adds of registers a second, as FLOP/s.
double measurePeak() {
  constexpr int chains = 12, rounds = 100000;
  tn::vf acc[chains], a = tn::vf(1.0000001f), b = tn::vf(1e-9f);
  for (int i = 0; i < chains; ++i)
    acc[i] = tn::vf(float(i));
  double start = cpuSeconds();
  for (int n = 0; n < rounds; ++n) {
    TN_UNROLL
    for (int i = 0; i < chains; ++i)
      acc[i] = tn::fma(acc[i], a, b);
  }
  double seconds = cpuSeconds() - start;
  for (int i = 1; i < chains; ++i)
    acc[0] += acc[i];
  benchmark::DoNotOptimize(reduce_add(acc[0]));
  return 2.0 * tn::vf::width * chains * rounds / seconds;
}

struct Operand {
  std::vector<int64_t> shape, stride;
  std::vector<float> data;

  explicit Operand(std::vector<int64_t> s) : shape(std::move(s)) {
    int64_t n = 1;
    stride.resize(shape.size());
    for (size_t d = shape.size(); d-- > 0; n *= shape[d])
      stride[d] = n;
    data.resize(size_t(n) + 16);
    for (size_t i = 0; i < data.size(); ++i)
      data[i] = float(i % 61) * 0.03f - 0.9f;
  }
  tn_view view() { return {(char *)data.data(), shape.data(), stride.data()}; }
};

/// Runs a unit again and again; `flops` and `bytes` are of one run.
void measure(benchmark::State &state, tn_unit unit, std::vector<tn_view> views,
             double flops, double bytes, char *scratch = nullptr) {
  tn_args args = {};
  args.views = views.data();
  args.threads = 1;
  args.scratch = scratch;
  args.barrier = [](const tn_args *) {};
  double peak = 0, best = 1e30;
  for (int i = 0; i < 20; ++i)
    peak = std::max(peak, measurePeak());
  for (auto _ : state) {
    double start = cpuSeconds();
    unit(&args);
    double seconds = cpuSeconds() - start;
    state.SetIterationTime(seconds);
    best = std::min(best, seconds);
  }
  for (int i = 0; i < 20; ++i)
    peak = std::max(peak, measurePeak());
  state.counters["us"] = best * 1e6;
  if (flops > 0) {
    state.counters["GFLOP/s"] = flops / best * 1e-9;
    state.counters["peak"] = peak * 1e-9;
    state.counters["best"] = flops / best / peak;
  }
  if (bytes > 0)
    state.counters["GB/s"] = bytes / best * 1e-9;
}

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

template <int64_t K, int64_t N, class Epilogue>
void gemm(benchmark::State &state) {
  int64_t m = state.range(0);
  Operand a({m, K}), b({K * N}), bias({1, N}), c({m, N});
  bias.stride[0] = 0;
  tn_unit unit = [](const tn_args *x) { tn::gemm<GemmCfg<N, K>, Epilogue>(x); };
  measure(state, unit, {a.view(), b.view(), bias.view(), c.view()},
          2.0 * double(m) * N * K, 4.0 * N * K);
}

template <int64_t K, int64_t N, class Epilogue = Bias>
void registerGemm(const char *what) {
  for (int64_t m : {1, 16, 128, 512, 1024})
    benchmark::RegisterBenchmark((std::string("gemm/") + what).c_str(),
                                 gemm<K, N, Epilogue>)
        ->Arg(m)
        ->UseManualTime();
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
  std::vector<char> scratch(size_t(4 * heads * sq * (skv / 256 + 1) * (D + 2)));
  tn_unit full = [](const tn_args *x) { tn::attention<AttentionCfg<D>>(x); };
  tn_unit decode = [](const tn_args *x) {
    tn::attention_decode<AttentionCfg<D>>(x);
  };
  measure(state, sq <= 4 ? decode : full,
          {q.view(), k.view(), v.view(), mask.view(), o.view()},
          4.0 * double(sq * skv * heads * D), 8.0 * double(skv * heads * D),
          scratch.data());
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
  registerGemm<768, 2304>("768x2304");
  registerGemm<768, 768>("768x768");
  registerGemm<768, 3072, Gelu>("768x3072/gelu");
  registerGemm<3072, 768>("3072x768");
  registerGemm<384, 1152>("384x1152");
  registerGemm<384, 384>("384x384");
  registerGemm<384, 1536, Gelu>("384x1536/gelu");
  registerGemm<1536, 384>("1536x384");
  for (int64_t s : {16, 128, 197, 512})
    benchmark::RegisterBenchmark("attention/64", attention<64>)
        ->Args({s, s, 12})
        ->UseManualTime();
  for (int64_t s : {16, 128})
    benchmark::RegisterBenchmark("attention/32", attention<32>)
        ->Args({s, s, 12})
        ->UseManualTime();
  benchmark::RegisterBenchmark("decode/64", attention<64>)
      ->Args({1, 1024, 12})
      ->UseManualTime();
  benchmark::RegisterBenchmark("layer_norm", layerNorm)
      ->Arg(128)
      ->UseManualTime();
  benchmark::RegisterBenchmark("softmax", softmax)->Arg(128)->UseManualTime();
  for (int64_t broadcast : {0, 1}) {
    benchmark::RegisterBenchmark("loop/add", elementwise<AddBody>)
        ->Arg(broadcast)
        ->UseManualTime();
    benchmark::RegisterBenchmark("loop/gelu", elementwise<GeluBody>)
        ->Arg(broadcast)
        ->UseManualTime();
  }
  benchmark::RegisterBenchmark("loop/transpose", transpose)->UseManualTime();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
