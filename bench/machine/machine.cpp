//===- machine.cpp - what the machine can do at most ----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// machine-peak THREADS [SECONDS]: prints, as JSON, the rates that this machine
/// reaches with that many threads in loops that do nothing else:
///
///   fma_gflops      multiply-adds of f32 from registers, the widest there are
///   amx_bf16_gflops, amx_int8_gops
///                   products of tiles, from registers; numbers that are not
///                   zero, for zeros are multiplied faster. 0 without AMX
///   read_4k_gbps, read_huge_gbps
///                   reading 512 MiB a thread in pages of 4 KiB, and in huge
///                   ones; lines are fetched a page ahead
///
/// Each is the best of many short repetitions: a limit is wanted, and another
/// program's work would lower a mean.
///
//===----------------------------------------------------------------------===//
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <immintrin.h>
#include <string>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

double now() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

/// Runs `work(thread)` on all threads at once, again and again for `seconds`,
/// and returns the shortest time that one round took.
template <class Work>
double shortest(unsigned threads, double seconds, Work work) {
  std::atomic<unsigned> arrived{0}, round{0};
  std::atomic<bool> stop{false};
  auto meet = [&] {
    unsigned seen = round.load();
    if (arrived.fetch_add(1) + 1 == threads) {
      arrived = 0;
      ++round;
    } else {
      while (round.load() == seen)
        _mm_pause();
    }
  };
  double best = 1e30, end = now() + seconds;
  auto serve = [&](unsigned thread) {
    for (;;) {
      meet();
      double start = now();
      work(thread);
      meet();
      if (thread == 0) {
        best = std::min(best, now() - start);
        stop = now() > end;
      }
      meet();
      if (stop)
        return;
    }
  };
  std::vector<std::thread> others;
  for (unsigned i = 1; i < threads; ++i)
    others.emplace_back(serve, i);
  serve(0);
  for (std::thread &other : others)
    other.join();
  return best;
}

constexpr int fmaRounds = 200000, fmaChains = 12;
/// Where results go, so that they are computed.
volatile float sink;

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
  alignas(64) static uint16_t data[4][16 * 32];
  for (int t = 0; t < 4; ++t)
    for (int i = 0; i < 16 * 32; ++i)
      data[t][i] = uint16_t(0x3f80 | ((i * 37 + t * 11) & 0x7f));
  __asm__ volatile("ldtilecfg %0" : : "m"(config));
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(4, data[0], 64);
  _tile_loadd(5, data[1], 64);
  _tile_loadd(6, data[2], 64);
  _tile_loadd(7, data[3], 64);
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

bool hasTiles() {
  unsigned eax, ebx, ecx, edx;
  __asm__("cpuid"
          : "=a"(eax), "=b"(ebx), "=c"(ecx), "=d"(edx)
          : "a"(7), "c"(0));
  constexpr unsigned wanted = 1u << 22 | 1u << 24 | 1u << 25;
  constexpr long requestPermission = 0x1023, tileData = 18;
  return (edx & wanted) == wanted &&
         syscall(SYS_arch_prctl, requestPermission, tileData) == 0;
}

__attribute__((target("avx2"))) uint64_t readAll(const char *p, size_t size) {
  __m256i sums[4] = {};
  for (size_t at = 0; at < size; at += 128) {
    _mm_prefetch(p + at + 4096, _MM_HINT_T1);
    _mm_prefetch(p + at + 4096 + 64, _MM_HINT_T1);
    for (int i = 0; i < 4; ++i)
      sums[i] = _mm256_add_epi64(
          sums[i], _mm256_load_si256((const __m256i *)(p + at) + i));
  }
  __m256i sum = _mm256_add_epi64(_mm256_add_epi64(sums[0], sums[1]),
                                 _mm256_add_epi64(sums[2], sums[3]));
  return uint64_t(_mm256_extract_epi64(sum, 0));
}

/// GB/s in pages of 4 KiB or in huge ones; 0 without memory.
double readRate(unsigned threads, double seconds, bool huge) {
  constexpr size_t share = size_t(512) << 20, align = size_t(2) << 20;
  size_t bytes = share * threads + align;
  void *base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED)
    return 0;
  madvise(base, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  char *data = (char *)((uintptr_t(base) + align - 1) / align * align);
  for (size_t at = 0; at < share * threads; at += 4096)
    data[at] = 1;
  double best = shortest(threads, seconds, [&](unsigned thread) {
    sink = float(readAll(data + thread * share, share - 8192));
  });
  munmap(base, bytes);
  return double(share - 8192) * threads / best * 1e-9;
}

} // namespace

int main(int argc, char **argv) {
  unsigned threads = argc > 1 ? unsigned(std::atoi(argv[1])) : 1;
  double seconds = argc > 2 ? std::atof(argv[2]) : 0.5;
  if (threads < 1 || !__builtin_cpu_supports("avx2")) {
    std::fprintf(stderr, "usage: machine-peak THREADS [SECONDS]; needs AVX2\n");
    return 1;
  }
  bool wide = __builtin_cpu_supports("avx512f");
  double fma =
      2.0 * fmaRounds * fmaChains * (wide ? 16 : 8) * threads /
      shortest(threads, seconds, [&](unsigned) { wide ? fma512() : fma256(); });
  double bf16 = 0, int8 = 0;
  if (hasTiles()) {
    double products = 4.0 * tileRounds * threads * 2 * 16 * 16;
    bf16 = products * 32 /
           shortest(threads, seconds, [](unsigned) { tiles<false>(); });
    int8 = products * 64 /
           shortest(threads, seconds, [](unsigned) { tiles<true>(); });
  }
  std::printf("{\"threads\": %u, \"vector_bits\": %d, \"fma_gflops\": %.1f, "
              "\"amx_bf16_gflops\": %.1f, \"amx_int8_gops\": %.1f, "
              "\"read_4k_gbps\": %.2f, \"read_huge_gbps\": %.2f}\n",
              threads, wide ? 512 : 256, fma * 1e-9, bf16 * 1e-9, int8 * 1e-9,
              readRate(threads, seconds, false),
              readRate(threads, seconds, true));
}
