//===- MbarrierTest.cpp - the mbarrier object's phases --------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/emulator/tensor/Mbarrier.h"

#include <gtest/gtest.h>

using namespace tenon::emu::tensor;

namespace {

constexpr auto ok = MbarrierError::None;

Mbarrier make(uint32_t count) {
  Mbarrier b(0xdeadbeef);
  EXPECT_EQ(b.init(count), ok);
  return b;
}

bool completed(const Mbarrier &b, uint32_t parity) {
  bool done = false;
  EXPECT_EQ(b.testWaitParity(parity, done), ok);
  return done;
}

TEST(Mbarrier, BeginsInPhaseZero) {
  Mbarrier b = make(3);
  EXPECT_TRUE(b.valid());
  EXPECT_EQ(b.pending(), 3u);
  EXPECT_EQ(b.expected(), 3u);
  EXPECT_EQ(b.transactions(), 0);
  // The phase before the first, of parity 1, counts as complete: so that the
  // producer of a pipeline does not wait in its first round.
  EXPECT_FALSE(completed(b, 0));
  EXPECT_TRUE(completed(b, 1));
}

TEST(Mbarrier, CompletesWithTheLastArrival) {
  Mbarrier b = make(3);
  uint64_t first = 0, second = 0, state = 0;
  ASSERT_EQ(b.arrive(1, first), ok);
  EXPECT_EQ(Mbarrier::pendingCount(first), 3u);
  ASSERT_EQ(b.arrive(1, second), ok);
  EXPECT_EQ(Mbarrier::pendingCount(second), 2u);
  bool done = true;
  ASSERT_EQ(b.testWait(first, done), ok);
  EXPECT_FALSE(done);
  ASSERT_EQ(b.arrive(1, state), ok);
  ASSERT_EQ(b.testWait(first, done), ok);
  EXPECT_TRUE(done);
  EXPECT_TRUE(completed(b, 0));
  EXPECT_FALSE(completed(b, 1));
  EXPECT_EQ(b.pending(), 3u);
  // The second phase.
  ASSERT_EQ(b.arrive(3, state), ok);
  EXPECT_TRUE(completed(b, 1));
  EXPECT_FALSE(completed(b, 0));
}

TEST(Mbarrier, WaitsForBytesToo) {
  Mbarrier b = make(1);
  uint64_t state = 0;
  ASSERT_EQ(b.expectTx(4096), ok);
  ASSERT_EQ(b.arrive(1, state), ok);
  EXPECT_FALSE(completed(b, 0));
  EXPECT_EQ(b.pending(), 0u);
  ASSERT_EQ(b.completeTx(1024), ok);
  EXPECT_FALSE(completed(b, 0));
  EXPECT_EQ(b.transactions(), 3072);
  ASSERT_EQ(b.completeTx(3072), ok);
  EXPECT_TRUE(completed(b, 0));
  EXPECT_EQ(b.pending(), 1u);
}

TEST(Mbarrier, BytesMayArriveBeforeTheyAreExpected) {
  Mbarrier b = make(2);
  uint64_t state = 0;
  ASSERT_EQ(b.completeTx(64), ok);
  EXPECT_EQ(b.transactions(), -64);
  ASSERT_EQ(b.arrive(1, state), ok);
  ASSERT_EQ(b.expectTx(64), ok);
  EXPECT_FALSE(completed(b, 0));
  ASSERT_EQ(b.arrive(1, state), ok);
  EXPECT_TRUE(completed(b, 0));
}

TEST(Mbarrier, DroppedArrivalsAreNotExpectedAgain) {
  Mbarrier b = make(3);
  uint64_t state = 0;
  ASSERT_EQ(b.arriveDrop(1, state), ok);
  EXPECT_EQ(b.pending(), 2u);
  EXPECT_EQ(b.expected(), 2u);
  ASSERT_EQ(b.arrive(2, state), ok);
  EXPECT_TRUE(completed(b, 0));
  EXPECT_EQ(b.pending(), 2u);
}

TEST(Mbarrier, RefusesWhatIsUndefined) {
  Mbarrier zeros(0);
  uint64_t state = 0;
  bool done;
  EXPECT_FALSE(zeros.valid());
  EXPECT_EQ(zeros.arrive(1, state), MbarrierError::NotInitialised);
  EXPECT_EQ(zeros.expectTx(1), MbarrierError::NotInitialised);
  EXPECT_EQ(zeros.completeTx(1), MbarrierError::NotInitialised);
  EXPECT_EQ(zeros.testWaitParity(0, done), MbarrierError::NotInitialised);
  EXPECT_EQ(zeros.invalidate(), MbarrierError::NotInitialised);
  EXPECT_FALSE(Mbarrier(0x3c003c003c003c00).valid()); // f16 data

  EXPECT_EQ(zeros.init(0), MbarrierError::CountOutOfRange);
  EXPECT_EQ(zeros.init(1 << 20), MbarrierError::CountOutOfRange);
  EXPECT_EQ(zeros.init((1 << 20) - 1), ok);

  Mbarrier b = make(2);
  uint64_t before = b.bits();
  EXPECT_EQ(b.arrive(3, state), MbarrierError::TooManyArrivals);
  EXPECT_EQ(b.arrive(0, state), MbarrierError::CountOutOfRange);
  EXPECT_EQ(b.expectTx(1 << 20), MbarrierError::TxCountOutOfRange);
  EXPECT_EQ(b.bits(), before);
  ASSERT_EQ(b.expectTx((1 << 20) - 1), ok);
  EXPECT_EQ(b.expectTx(1), MbarrierError::TxCountOutOfRange);
  EXPECT_STRNE(describe(MbarrierError::TxCountOutOfRange), "");

  ASSERT_EQ(b.invalidate(), ok);
  EXPECT_FALSE(b.valid());
}

TEST(Mbarrier, RunsThroughManyPhases) {
  Mbarrier b = make(4);
  for (uint32_t phase = 0; phase < 100; ++phase) {
    uint64_t state = 0;
    for (unsigned i = 0; i < 4; ++i) {
      EXPECT_FALSE(completed(b, phase & 1));
      if (i == 2) {
        ASSERT_EQ(b.expectTx(16), ok);
        ASSERT_EQ(b.completeTx(16), ok);
      }
      ASSERT_EQ(b.arrive(1, state), ok);
    }
    EXPECT_TRUE(completed(b, phase & 1));
    EXPECT_EQ(b.parity(), (phase + 1) & 1);
  }
}

} // namespace
