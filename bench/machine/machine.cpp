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
///                   products of tiles, from registers; 0 without AMX
///   read_4k_gbps, read_huge_gbps
///                   reading 512 MiB a thread in pages of 4 KiB, and in huge
///                   ones
///
/// Each is the best of many short repetitions.
///
//===----------------------------------------------------------------------===//
#include "runtime/main/Bandwidth.h"
#include "runtime/main/Peaks.h"

#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>

using namespace tenon::rt;

/// GB/s in pages of 4 KiB or in huge ones; 0 without memory.
static double readRate(unsigned threads, double seconds, bool huge) {
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
  double rate = readBandwidth({(const unsigned char *)data, share * threads},
                              threads, seconds);
  munmap(base, bytes);
  return rate * 1e-9;
}

int main(int argc, char **argv) {
  unsigned threads = argc > 1 ? unsigned(std::atoi(argv[1])) : 1;
  double seconds = argc > 2 ? std::atof(argv[2]) : 0.5;
  if (threads < 1) {
    std::fprintf(stderr, "usage: machine-peak THREADS [SECONDS]\n");
    return 1;
  }
  Peaks peaks = measurePeaks(threads, seconds);
  std::printf("{\"threads\": %u, \"vector_bits\": %u, \"fma_gflops\": %.1f, "
              "\"amx_bf16_gflops\": %.1f, \"amx_int8_gops\": %.1f, "
              "\"read_4k_gbps\": %.2f, \"read_huge_gbps\": %.2f}\n",
              threads, peaks.vectorBits, peaks.fma * 1e-9, peaks.bf16 * 1e-9,
              peaks.bytes * 1e-9, readRate(threads, seconds, false),
              readRate(threads, seconds, true));
}
