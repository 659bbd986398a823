//===- Fault.h - what launches find wrong with data ---------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_FAULT_H
#define TENON_RUNTIME_FAULT_H

#include "runtime/Frame.h"
#include "runtime/format/abi.h"

#include <atomic>
#include <vector>

namespace tenon::rt {

/// "node '/enc/Gather' (gather)": a launch, for messages.
std::string describeLaunch(const Plan &plan, size_t launch);

/// The faults of one run: a record for each thread of the team.
class Faults {
public:
  explicit Faults(unsigned threads) : records(threads) {}

  /// Before a run: there are none.
  void clear();
  /// The record of `thread`, for its tn_args.
  tn_fault *of(unsigned thread) { return &records[thread].fault; }
  /// Called by each thread after its share of `launch`, before the barrier.
  void note(unsigned thread, size_t launch) {
    if (records[thread].fault.kind != TN_FAULT_NONE)
      first.store(launch, std::memory_order_relaxed);
  }
  /// Whether the run ends here; asked by each thread after the barrier that
  /// follows `launch`. All of them get the same answer: a fault up to this
  /// launch was noted before the barrier, and one that a faster thread has in a
  /// later launch does not count yet.
  bool endRun(size_t launch) const {
    return first.load(std::memory_order_relaxed) <= launch;
  }

  /// What went wrong, once the team is done: the message is the same for any
  /// number of threads. `frame` has the launch's views.
  Status status(const Plan &plan, const Frame &frame) const;

  /// The same of one record of `launch`.
  static Status describe(const Plan &plan, const Frame &frame, size_t launch,
                         const tn_fault &fault);

private:
  static constexpr size_t nowhere = SIZE_MAX;
  struct alignas(64) Record {
    tn_fault fault = {};
  };
  std::vector<Record> records;
  std::atomic<size_t> first{nowhere}; ///< the launch with a fault
};

} // namespace tenon::rt

#endif // TENON_RUNTIME_FAULT_H
