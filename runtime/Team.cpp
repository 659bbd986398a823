//===- Team.cpp - a team of threads that walk launches together ---------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/Team.h"

#include "runtime/Cpu.h"

#include <climits>
#include <cstring>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tenon::rt {
namespace {

/// Some 100 microseconds, as a pause takes about 50 ns: longer than most
/// launches' imbalance, for waking a sleeper costs more than that on a virtual
/// machine, and shorter than anybody notices.
constexpr uint32_t patientSpins = 2000;
/// When threads outnumber CPUs the one waited for may need this very CPU.
constexpr uint32_t hastySpins = 20;
/// Other programs may have left the team a single CPU: after so many spins the
/// others get a chance to run on it.
constexpr uint32_t spinsPerYield = 250;

void pauseCpu() {
#ifdef __x86_64__
  __builtin_ia32_pause();
#endif
}

long futex(std::atomic<uint32_t> &word, int operation, uint32_t value) {
  static_assert(sizeof(word) == sizeof(uint32_t));
  return syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value,
                 nullptr, nullptr, 0);
}

} // namespace

void Gate::open() {
  // Sequentially consistent with await(): either the sleeper sees the new
  // value or its count is seen here.
  word.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers.load(std::memory_order_seq_cst) != 0)
    futex(word, FUTEX_WAKE, INT_MAX);
}

void Gate::await(uint32_t seen, uint32_t spins) {
  for (uint32_t i = 1; i <= spins; ++i) {
    if (word.load(std::memory_order_acquire) != seen)
      return;
    if (i % spinsPerYield == 0)
      sched_yield();
    else
      pauseCpu();
  }
  sleepers.fetch_add(1, std::memory_order_seq_cst);
  while (word.load(std::memory_order_seq_cst) == seen)
    futex(word, FUTEX_WAIT, seen);
  sleepers.fetch_sub(1, std::memory_order_relaxed);
}

Team::Team(unsigned threads) : threads(threads) {
  spins = threads <= availableCpus() ? patientSpins : hastySpins;
}

Result<std::unique_ptr<Team>> Team::create(unsigned threads) {
  std::unique_ptr<Team> team(new Team(threads));
  // Workers keep pointers into the vector: it must not move.
  team->workers.reserve(threads - 1);
  for (unsigned i = 1; i < threads; ++i) {
    team->workers.push_back({team.get(), i, {}});
    Worker &worker = team->workers.back();
    int failed = pthread_create(&worker.handle, nullptr, enter, &worker);
    if (failed) {
      team->workers.pop_back();
      return TN_ERROR("cannot start %u threads: %s", threads, strerror(failed));
    }
  }
  return team;
}

Team::~Team() {
  stopping = true;
  start.open();
  for (Worker &worker : workers)
    pthread_join(worker.handle, nullptr);
}

void *Team::enter(void *argument) {
  Worker &worker = *static_cast<Worker *>(argument);
  worker.team->serve(worker.thread);
  return nullptr;
}

void Team::serve(unsigned thread) {
  // The first job may already be there: count from the gate's first value.
  for (uint32_t seen = 0;; ++seen) {
    start.await(seen, spins);
    if (stopping)
      return;
    work(context, thread);
    barrier();
  }
}

void Team::run(void (*newWork)(void *, unsigned), void *newContext) {
  work = newWork;
  context = newContext;
  if (threads > 1)
    start.open();
  work(context, 0);
  barrier();
}

void Team::barrier() {
  if (threads == 1)
    return;
  uint32_t seen = release.value();
  if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == threads) {
    arrived.store(0, std::memory_order_relaxed);
    release.open();
  } else {
    release.await(seen, spins);
  }
}

} // namespace tenon::rt
