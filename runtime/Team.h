//===- Team.h - a team of threads that walk launches together -----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_TEAM_H
#define TENON_RUNTIME_TEAM_H

#include "runtime/support/Status.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <pthread.h>
#include <vector>

namespace tenon::rt {

/// A word that threads wait on: they spin for a while, then sleep in the
/// kernel, so that a barrier costs well under a microsecond with free cores and
/// an oversubscribed machine is left in peace.
class Gate {
public:
  uint32_t value() const { return word.load(std::memory_order_acquire); }
  /// Moves to the next value and wakes whoever waits.
  void open();
  /// Returns once the value is no longer `seen`; spins at most `spins` times.
  void await(uint32_t seen, uint32_t spins);

private:
  std::atomic<uint32_t> word{0};
  std::atomic<uint32_t> sleepers{0};
};

/// A fixed number of threads, the caller's one of them, that run one function
/// together. Not for use by two callers at once.
class Team {
public:
  /// `threads` >= 1.
  static Result<std::unique_ptr<Team>> create(unsigned threads);
  ~Team();

  unsigned size() const { return threads; }

  /// Runs `work(context, thread)` on every thread, the caller's as number 0,
  /// and returns when all are done.
  void run(void (*work)(void *context, unsigned thread), void *context);

  /// Waits until every thread of the team has called it. Only inside `run`.
  void barrier();

private:
  explicit Team(unsigned threads);
  struct Worker {
    Team *team;
    unsigned thread;
    pthread_t handle;
  };
  static void *enter(void *worker);
  void serve(unsigned thread);

  const unsigned threads;
  uint32_t spins;
  void (*work)(void *, unsigned) = nullptr;
  void *context = nullptr;
  bool stopping = false;
  std::vector<Worker> workers;
  alignas(64) Gate start;
  alignas(64) Gate release;
  alignas(64) std::atomic<uint32_t> arrived{0};
};

} // namespace tenon::rt

#endif // TENON_RUNTIME_TEAM_H
