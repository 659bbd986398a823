//===- Mbarrier.h - the mbarrier object -----------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_EMULATOR_TENSOR_MBARRIER_H
#define TENON_RUNTIME_EMULATOR_TENSOR_MBARRIER_H

#include <cstdint>

namespace tenon::emu::tensor {

/// What is wrong with an operation on an mbarrier. The object is unchanged
/// when an operation is refused.
enum class MbarrierError : uint8_t {
  None,
  NotInitialised,    ///< the eight bytes are no mbarrier object
  CountOutOfRange,   ///< init or arrive with a count outside 1 .. 2^20 - 1
  TooManyArrivals,   ///< more arrivals than are pending in this phase
  TxCountOutOfRange, ///< tx-count outside -(2^20 - 1) .. 2^20 - 1
};

/// A lower-case sentence without a final period; "" for None.
const char *describe(MbarrierError error);

/// An mbarrier object: the 64 bits that lie in shared memory, eight bytes
/// aligned. `init` makes one; every other operation refuses bits that are
/// none. A phase completes when no arrivals and no transactions are pending;
/// the next begins at once with the expected count.
class Mbarrier {
public:
  explicit Mbarrier(uint64_t bits) : bits_(bits) {}
  uint64_t bits() const { return bits_; }
  bool valid() const;

  /// mbarrier.init. Whether the old bits were an object already (`valid`) is
  /// the caller's to report.
  MbarrierError init(uint32_t count);
  /// mbarrier.inval
  MbarrierError invalidate();

  /// mbarrier.arrive (and .arrive_drop): `state` is the phase's before it.
  MbarrierError arrive(uint32_t count, uint64_t &state);
  MbarrierError arriveDrop(uint32_t count, uint64_t &state);
  /// mbarrier.expect_tx; with `arrive` after it, mbarrier.arrive.expect_tx.
  MbarrierError expectTx(uint32_t bytes);
  /// mbarrier.complete_tx, and what a bulk copy does when it has finished.
  MbarrierError completeTx(uint32_t bytes);

  /// mbarrier.test_wait / try_wait with a state of `arrive`: whether the phase
  /// of `state` has completed.
  MbarrierError testWait(uint64_t state, bool &done) const;
  /// mbarrier.test_wait.parity: whether the phase of that parity has completed,
  /// that is, whether the current phase has the other one.
  MbarrierError testWaitParity(uint32_t parity, bool &done) const;

  /// mbarrier.pending_count of a state.
  static uint32_t pendingCount(uint64_t state);

  /// For reports.
  uint32_t parity() const;
  uint32_t pending() const;
  uint32_t expected() const;
  int32_t transactions() const;

private:
  MbarrierError arriveAndDrop(uint32_t count, uint32_t drop, uint64_t &state);
  void completeIfDone();
  uint64_t bits_;
};

} // namespace tenon::emu::tensor

#endif // TENON_RUNTIME_EMULATOR_TENSOR_MBARRIER_H
