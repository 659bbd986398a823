//===- kernel_bench.h - times a kernel against the machine's peak ---------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A kernel runs on one thread and is timed by that thread's CPU time. Products
/// say in `share` what part of the peak their fastest repetition reached: of
/// what the same thread was just then seen to do from registers. The rest say
/// `GB/s`, without a share: they copy within the L2 cache.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_BENCH_KERNELS_KERNEL_BENCH_H
#define TENON_BENCH_KERNELS_KERNEL_BENCH_H

#include "kernels/cpu/amx_tile.h"
#include "kernels/cpu/dot.h"
#include "kernels/cpu/epilogue.h"

#include <algorithm>
#include <benchmark/benchmark.h>
#include <string>
#include <time.h>
#include <vector>

namespace bench {

inline double cpuSeconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
}

/// Operations a second of `rounds` calls of `round`, each of so many.
template <class Round> double rateOf(double operations, Round round) {
  constexpr int rounds = 50000;
  double start = cpuSeconds();
  for (int n = 0; n < rounds; ++n)
    round();
  return operations * rounds / (cpuSeconds() - start);
}

/// Multiply-adds of f32 from registers, as FLOP/s.
inline double fmaPeak() {
  constexpr int chains = 12;
  tn::vf acc[chains], a = tn::vf(1.0000001f), b = tn::vf(1e-9f);
  for (int i = 0; i < chains; ++i)
    acc[i] = tn::vf(float(i));
  double rate = rateOf(2.0 * tn::vf::width * chains, [&] {
    TN_UNROLL
    for (int i = 0; i < chains; ++i)
      acc[i] = tn::fma(acc[i], a, b);
  });
  for (int i = 1; i < chains; ++i)
    acc[0] += acc[i];
  benchmark::DoNotOptimize(reduce_add(acc[0]));
  return rate;
}

/// Products of bytes, summed in 32 bits: operations a second.
inline double bytesPeak() {
  constexpr int chains = 12;
  tn::vi acc[chains];
  alignas(64) uint8_t data[64];
  for (int i = 0; i < 64; ++i)
    data[i] = uint8_t(i + 1);
  benchmark::DoNotOptimize(data);
  tn::vb x = tn::load_bytes(data), w = x;
  for (int i = 0; i < chains; ++i)
    acc[i] = tn::vi(i);
  double rate = rateOf(2.0 * 4 * tn::vf::width * chains, [&] {
    TN_UNROLL
    for (int i = 0; i < chains; ++i)
      acc[i] = tn::dot<8>(acc[i], x, w);
  });
  for (int i = 1; i < chains; ++i)
    acc[0] = acc[0] + acc[i];
  benchmark::DoNotOptimize(reduce_add(to_float(acc[0])));
  return rate;
}

#if defined(TN_AMX_TILES)
constexpr bool hasTiles = true;
/// Products of tiles of numbers that are not zero: operations a second.
template <bool Bytes> double tilesPeak() {
  alignas(64) static uint16_t data[tn::tile_elements];
  std::fill_n(data, tn::tile_elements, 0x3f81);
  tn::Tiles tiles;
  tn::tile_zero<0>();
  tn::tile_zero<1>();
  tn::tile_zero<2>();
  tn::tile_zero<3>();
  tn::tile_load<4>(data);
  tn::tile_load<5>(data);
  return rateOf(4.0 * 16 * 16 * (Bytes ? 128 : 64), [&] {
    if constexpr (Bytes) {
      tn::tile_multiply_bytes<0, 4, 5>();
      tn::tile_multiply_bytes<1, 4, 5>();
      tn::tile_multiply_bytes<2, 4, 5>();
      tn::tile_multiply_bytes<3, 4, 5>();
    } else {
      tn::tile_multiply<0, 4, 5>();
      tn::tile_multiply<1, 4, 5>();
      tn::tile_multiply<2, 4, 5>();
      tn::tile_multiply<3, 4, 5>();
    }
  });
}
#else
constexpr bool hasTiles = false;
template <bool Bytes> double tilesPeak() {
  return Bytes ? bytesPeak() : fmaPeak();
}
#endif

/// What bounds a kernel: a peak in operations a second, and how many of these
/// make one of the kernel's.
struct Limit {
  double (*peak)() = nullptr;
  double each = 1;
};

/// A tensor of elements of `bytes` bytes, small numbers of f32 where that is 4.
struct Operand {
  std::vector<int64_t> shape, stride;
  std::vector<char> data;

  explicit Operand(std::vector<int64_t> s, int64_t bytes = 4)
      : shape(std::move(s)) {
    int64_t n = 1;
    stride.resize(shape.size());
    for (size_t d = shape.size(); d-- > 0; n *= shape[d])
      stride[d] = n;
    data.resize(size_t(n * bytes) + 64);
    for (size_t i = 0; i < data.size(); ++i)
      data[i] = char(i % 61);
    for (int64_t i = 0; bytes == 4 && i < n; ++i)
      reinterpret_cast<float *>(data.data())[i] = float(i % 61) * 0.03f - 0.9f;
  }
  tn_view view() { return {data.data(), shape.data(), stride.data()}; }
};

/// Runs a unit again and again; `flops` and `bytes` are of one run.
inline void measure(benchmark::State &state, tn_unit unit,
                    std::vector<tn_view> views, double flops, double bytes,
                    Limit limit = {}, int64_t scratchBytes = 0) {
  std::vector<char> scratch(size_t(scratchBytes) + 64);
  tn_args args = {};
  args.views = views.data();
  args.threads = 1;
  args.scratch = scratch.data() + (-uintptr_t(scratch.data()) & 63);
  args.barrier = [](const tn_args *) {};
  double peak = 0, best = 1e30;
  auto watch = [&] {
    for (int i = 0; limit.peak && i < 20; ++i)
      peak = std::max(peak, limit.peak());
  };
  watch();
  for (auto _ : state) {
    double start = cpuSeconds();
    unit(&args);
    double seconds = cpuSeconds() - start;
    state.SetIterationTime(seconds);
    best = std::min(best, seconds);
  }
  watch();
  state.counters["us"] = best * 1e6;
  if (bytes > 0)
    state.counters["GB/s"] = bytes / best * 1e-9;
  if (!limit.peak)
    return;
  state.counters["GFLOP/s"] = flops / best * 1e-9;
  state.counters["peak"] = peak / limit.each * 1e-9;
  state.counters["share"] = flops * limit.each / best / peak;
}

/// Registers `run` for each argument.
inline void add(const std::string &name, void (*run)(benchmark::State &),
                std::vector<std::vector<int64_t>> arguments) {
  for (const std::vector<int64_t> &a : arguments)
    benchmark::RegisterBenchmark(name.c_str(), run)->Args(a)->UseManualTime();
}

} // namespace bench

#endif // TENON_BENCH_KERNELS_KERNEL_BENCH_H
