//===- Mbarrier.cpp - the mbarrier object ---------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/emulator/tensor/Mbarrier.h"

namespace tenon::emu::tensor {
namespace {

constexpr uint32_t maxCount = (1u << 20) - 1;

/// The 64 bits: one of the phase, pending arrivals (20), expected arrivals
/// (20), the tx-count (21, signed), and two that mark an object. Zeros, which
/// fresh memory is likely to hold, are none.
struct Fields {
  uint32_t phase;    ///< parity of the phases completed
  uint32_t pending;  ///< arrivals until this phase completes
  uint32_t expected; ///< arrivals of the next phase
  int32_t tx;        ///< bytes expected and not yet arrived

  static Fields unpack(uint64_t bits) {
    return {uint32_t(bits & 1), uint32_t(bits >> 1) & maxCount,
            uint32_t(bits >> 21) & maxCount,
            int32_t(uint32_t(bits >> 41 & 0x1fffff) << 11) >> 11};
  }
  uint64_t pack() const {
    return uint64_t(phase) | uint64_t(pending) << 1 | uint64_t(expected) << 21 |
           uint64_t(uint32_t(tx) & 0x1fffff) << 41 | uint64_t(mark) << 62;
  }
  static constexpr uint64_t mark = 2;
};

} // namespace

const char *describe(MbarrierError error) {
  switch (error) {
  case MbarrierError::None:
    return "";
  case MbarrierError::NotInitialised:
    return "the mbarrier was not initialised, or was overwritten";
  case MbarrierError::CountOutOfRange:
    return "the count of an mbarrier must be from 1 to 1048575";
  case MbarrierError::TooManyArrivals:
    return "more arrivals at the mbarrier than its phase expects";
  case MbarrierError::TxCountOutOfRange:
    return "the tx-count of an mbarrier must stay from -1048575 to 1048575";
  }
  return "";
}

bool Mbarrier::valid() const { return bits_ >> 62 == Fields::mark; }

MbarrierError Mbarrier::init(uint32_t count) {
  if (count == 0 || count > maxCount)
    return MbarrierError::CountOutOfRange;
  bits_ = Fields{0, count, count, 0}.pack();
  return MbarrierError::None;
}

MbarrierError Mbarrier::invalidate() {
  if (!valid())
    return MbarrierError::NotInitialised;
  bits_ = 0;
  return MbarrierError::None;
}

MbarrierError Mbarrier::arrive(uint32_t count, uint64_t &state) {
  return arriveAndDrop(count, 0, state);
}

MbarrierError Mbarrier::arriveDrop(uint32_t count, uint64_t &state) {
  return arriveAndDrop(count, count, state);
}

MbarrierError Mbarrier::arriveAndDrop(uint32_t count, uint32_t drop,
                                      uint64_t &state) {
  if (!valid())
    return MbarrierError::NotInitialised;
  if (count == 0 || count > maxCount)
    return MbarrierError::CountOutOfRange;
  Fields f = Fields::unpack(bits_);
  if (count > f.pending || drop > f.expected)
    return MbarrierError::TooManyArrivals;
  state = bits_;
  f.pending -= count;
  f.expected -= drop;
  bits_ = f.pack();
  completeIfDone();
  return MbarrierError::None;
}

MbarrierError Mbarrier::expectTx(uint32_t bytes) {
  if (!valid())
    return MbarrierError::NotInitialised;
  Fields f = Fields::unpack(bits_);
  if (bytes > maxCount || f.tx + int32_t(bytes) > int32_t(maxCount))
    return MbarrierError::TxCountOutOfRange;
  f.tx += int32_t(bytes);
  bits_ = f.pack();
  return MbarrierError::None;
}

MbarrierError Mbarrier::completeTx(uint32_t bytes) {
  if (!valid())
    return MbarrierError::NotInitialised;
  Fields f = Fields::unpack(bits_);
  if (bytes > maxCount || f.tx - int32_t(bytes) < -int32_t(maxCount))
    return MbarrierError::TxCountOutOfRange;
  f.tx -= int32_t(bytes);
  bits_ = f.pack();
  completeIfDone();
  return MbarrierError::None;
}

void Mbarrier::completeIfDone() {
  Fields f = Fields::unpack(bits_);
  if (f.pending != 0 || f.tx != 0)
    return;
  f.phase ^= 1;
  f.pending = f.expected;
  bits_ = f.pack();
}

MbarrierError Mbarrier::testWait(uint64_t state, bool &done) const {
  if (!valid() || state >> 62 != Fields::mark)
    return MbarrierError::NotInitialised;
  return testWaitParity(Fields::unpack(state).phase, done);
}

MbarrierError Mbarrier::testWaitParity(uint32_t parity, bool &done) const {
  if (!valid())
    return MbarrierError::NotInitialised;
  done = Fields::unpack(bits_).phase != (parity & 1);
  return MbarrierError::None;
}

uint32_t Mbarrier::pendingCount(uint64_t state) {
  return Fields::unpack(state).pending;
}

uint32_t Mbarrier::parity() const { return Fields::unpack(bits_).phase; }
uint32_t Mbarrier::pending() const { return Fields::unpack(bits_).pending; }
uint32_t Mbarrier::expected() const { return Fields::unpack(bits_).expected; }
int32_t Mbarrier::transactions() const { return Fields::unpack(bits_).tx; }

} // namespace tenon::emu::tensor
