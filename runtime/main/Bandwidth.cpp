//===- Bandwidth.cpp - how fast memory can be read -----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/main/Bandwidth.h"

#include "runtime/Team.h"

#include <algorithm>
#include <ctime>
#include <memory>

namespace tenon::rt {
namespace {

double now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}

/// Reads every cache line with wide loads; the sum keeps them from going away.
/// Lines are fetched a page ahead, as the kernels do: the hardware's own
/// prefetching ends at each page, and a loop that leaves it at that reads two
/// thirds as fast.
uint64_t readAll(Bytes bytes) {
  typedef uint64_t Vector __attribute__((vector_size(32), aligned(1)));
  Vector sums[4] = {};
  constexpr size_t ahead = 4096;
  size_t at = 0;
  for (; at + 4 * sizeof(Vector) <= bytes.size(); at += 4 * sizeof(Vector)) {
    __builtin_prefetch(bytes.data() + at + ahead, 0, 2);
    __builtin_prefetch(bytes.data() + at + ahead + 64, 0, 2);
    for (int i = 0; i < 4; ++i)
      sums[i] += reinterpret_cast<const Vector *>(bytes.data() + at)[i];
  }
  Vector sum = sums[0] + sums[1] + sums[2] + sums[3];
  return sum[0] + sum[1] + sum[2] + sum[3];
}

struct Pass {
  Bytes bytes;
  unsigned threads;
  uint64_t *sums; ///< one for each thread
};

void readShare(void *context, unsigned thread) {
  Pass &pass = *static_cast<Pass *>(context);
  size_t share = pass.bytes.size() / pass.threads;
  pass.sums[thread] = readAll(pass.bytes.subspan(thread * share, share));
}

} // namespace

double readBandwidth(Bytes bytes, unsigned threads, double seconds) {
  auto team = Team::create(threads);
  if (!team.ok() || bytes.empty())
    return 0;
  std::vector<uint64_t> sums(threads);
  Pass pass = {bytes, threads, sums.data()};
  (*team)->run(readShare, &pass);
  volatile uint64_t sink = 0;
  double best = 1e30;
  for (double begin = now(), last = begin; last - begin < seconds;) {
    (*team)->run(readShare, &pass);
    sink = sink + sums[0];
    double end = now();
    best = std::min(best, end - last);
    last = end;
  }
  return double(bytes.size()) / best;
}

} // namespace tenon::rt
