//===- Peaks.cpp - what the processor computes at most -------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/main/Peaks.h"

#include "runtime/Cpu.h"
#include "runtime/Team.h"
#include "runtime/format/abi.h"

#include <algorithm>
#include <ctime>
#include <memory>
#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace tenon::rt {
namespace {

#ifdef __x86_64__

double now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}

/// The shortest time in which all threads have done `work` once.
double shortest(Team &team, double seconds, void (*work)()) {
  double best = 1e30;
  for (double begin = now(), last = begin; last - begin < seconds;) {
    team.run([](void *context, unsigned) { ((void (*)())context)(); },
             (void *)work);
    double end = now();
    best = std::min(best, end - last);
    last = end;
  }
  return best;
}

constexpr int fmaRounds = 200000, fmaChains = 12;
/// Where results go, so that they are computed.
thread_local volatile float sink;

__attribute__((target("avx512f"))) void fma512() {
  __m512 acc[fmaChains], a = _mm512_set1_ps(1.0000001f),
                         b = _mm512_set1_ps(1e-9f);
  for (int i = 0; i < fmaChains; ++i)
    acc[i] = _mm512_set1_ps(float(i));
  for (int n = 0; n < fmaRounds; ++n) {
#pragma GCC unroll 12
    for (int i = 0; i < fmaChains; ++i)
      acc[i] = _mm512_fmadd_ps(acc[i], a, b);
  }
  for (int i = 1; i < fmaChains; ++i)
    acc[0] = _mm512_add_ps(acc[0], acc[i]);
  sink = _mm512_cvtss_f32(acc[0]);
}

__attribute__((target("avx2,fma"))) void fma256() {
  __m256 acc[fmaChains], a = _mm256_set1_ps(1.0000001f),
                         b = _mm256_set1_ps(1e-9f);
  for (int i = 0; i < fmaChains; ++i)
    acc[i] = _mm256_set1_ps(float(i));
  for (int n = 0; n < fmaRounds; ++n) {
#pragma GCC unroll 12
    for (int i = 0; i < fmaChains; ++i)
      acc[i] = _mm256_fmadd_ps(acc[i], a, b);
  }
  for (int i = 1; i < fmaChains; ++i)
    acc[0] = _mm256_add_ps(acc[0], acc[i]);
  sink = _mm256_cvtss_f32(acc[0]);
}

constexpr int tileRounds = 20000;

/// Four sums of products of two by two tiles. The bytes are numbers near 1 as
/// bf16 and 0x3f and 0x80 as int8.
template <bool Bytes>
__attribute__((target("amx-tile,amx-bf16,amx-int8"))) void tiles() {
  struct alignas(64) Config {
    uint8_t palette = 1, start = 0, reserved[14] = {};
    uint16_t rowBytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  } config;
  static const struct alignas(64) Numbers {
    uint16_t data[16 * 32];
    Numbers() {
      for (int i = 0; i < 16 * 32; ++i)
        data[i] = uint16_t(0x3f80 | ((i * 37) & 0x7f));
    }
  } numbers;
  asm volatile("ldtilecfg %0" : : "m"(config));
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(4, numbers.data, 64);
  _tile_loadd(5, numbers.data, 64);
  _tile_loadd(6, numbers.data, 64);
  _tile_loadd(7, numbers.data, 64);
  for (int n = 0; n < tileRounds; ++n) {
    if (Bytes) {
      _tile_dpbusd(0, 4, 6);
      _tile_dpbusd(1, 4, 7);
      _tile_dpbusd(2, 5, 6);
      _tile_dpbusd(3, 5, 7);
    } else {
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(1, 4, 7);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_release();
}

void measure(Team &team, double seconds, Peaks &peaks) {
  uint32_t features = cpuFeatures();
  if (!(features & TN_AVX2_FMA))
    return;
  bool wide = features & TN_AVX512;
  peaks.vectorBits = wide ? 512 : 256;
  peaks.fma = 2.0 * fmaRounds * fmaChains * (peaks.vectorBits / 32) *
              team.size() / shortest(team, seconds, wide ? fma512 : fma256);
  if (!(features & TN_AMX))
    return;
  double products = 4.0 * tileRounds * team.size() * 2 * 16 * 16;
  peaks.bf16 = products * 32 / shortest(team, seconds, tiles<false>);
  peaks.bytes = products * 64 / shortest(team, seconds, tiles<true>);
}

#else

void measure(Team &, double, Peaks &) {}

#endif

} // namespace

Peaks measurePeaks(unsigned threads, double seconds) {
  Peaks peaks;
  if (auto team = Team::create(threads); team.ok())
    measure(**team, seconds, peaks);
  return peaks;
}

} // namespace tenon::rt
