//===- SharedShadowTest.cpp - the asynchronous proxy as a warp of its own -===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/emulator/check/SharedShadow.h"

#include <gtest/gtest.h>

using namespace tenon::emu;
using Verdict = SharedShadow::Verdict;

namespace {

class AsyncProxy : public testing::Test {
protected:
  void SetUp() override { shadow.reset(4096, 4); }

  Verdict read(uint32_t at, unsigned warp) {
    return shadow.read(at, 16, warp, true).verdict;
  }
  Verdict write(uint32_t at, unsigned warp) {
    return shadow.write(at, 16, warp, true).verdict;
  }
  Verdict asyncRead(uint32_t at, unsigned issuer) {
    return shadow.asyncRead(at, 64, issuer, true).verdict;
  }
  Verdict asyncWrite(uint32_t at, unsigned issuer) {
    return shadow.asyncWrite(at, 64, issuer, true).verdict;
  }
  void barrier(unsigned from, unsigned to) {
    SharedShadow::Stamp stamp;
    shadow.releaseTo(from, stamp);
    shadow.acquireFrom(to, stamp);
  }
  void wait(unsigned warp) {
    SharedShadow::Stamp stamp;
    shadow.releaseAsync(stamp);
    shadow.acquireFrom(warp, stamp);
  }

  SharedShadow shadow;
};

TEST_F(AsyncProxy, WritesMustBeWaitedFor) {
  ASSERT_EQ(asyncWrite(0, 1), Verdict::Good);
  auto problem = shadow.read(32, 16, 2, true);
  EXPECT_EQ(problem.verdict, Verdict::Race);
  EXPECT_EQ(problem.warp, SharedShadow::asyncWarp);
  EXPECT_EQ(problem.address, 32u);
  EXPECT_TRUE(problem.otherWrote);
  // Not even the warp that issued it knows of its end.
  EXPECT_EQ(read(0, 1), Verdict::Race);
  wait(2);
  EXPECT_EQ(read(32, 2), Verdict::Good);
  EXPECT_EQ(read(32, 3), Verdict::Race);
  barrier(2, 3);
  EXPECT_EQ(read(32, 3), Verdict::Good);
}

TEST_F(AsyncProxy, AWaitKnowsNothingOfLaterCopies) {
  ASSERT_EQ(asyncWrite(0, 1), Verdict::Good);
  SharedShadow::Stamp first;
  shadow.releaseAsync(first);
  ASSERT_EQ(asyncWrite(1024, 1), Verdict::Good);
  shadow.acquireFrom(2, first);
  EXPECT_EQ(read(0, 2), Verdict::Good);
  EXPECT_EQ(read(1024, 2), Verdict::Race);
}

TEST_F(AsyncProxy, ReadsKeepOthersFromWriting) {
  for (uint32_t at = 0; at != 64; at += 16)
    ASSERT_EQ(write(at, 0), Verdict::Good);
  shadow.fenceProxy(0);
  ASSERT_EQ(asyncRead(0, 0), Verdict::Good);
  EXPECT_EQ(read(16, 0), Verdict::Good);
  EXPECT_EQ(write(16, 0), Verdict::Race);
  wait(0);
  EXPECT_EQ(write(16, 0), Verdict::Good);
}

TEST_F(AsyncProxy, WritesOfThreadsNeedAFence) {
  EXPECT_EQ(asyncRead(0, 0), Verdict::Unwritten);
  for (uint32_t at = 0; at != 64; at += 16)
    ASSERT_EQ(write(at, 0), Verdict::Good);
  EXPECT_EQ(asyncRead(0, 0), Verdict::Unfenced);
  EXPECT_EQ(asyncRead(0, 1), Verdict::Race);
  barrier(0, 1);
  EXPECT_EQ(asyncRead(0, 1), Verdict::Unfenced);
  shadow.fenceProxy(1); // by the issuer, after the barrier
  EXPECT_EQ(asyncRead(0, 1), Verdict::Good);
  // By the writer, before the barrier; what it writes later is not covered.
  ASSERT_EQ(write(128, 2), Verdict::Good);
  shadow.fenceProxy(2);
  ASSERT_EQ(write(144, 2), Verdict::Good);
  barrier(2, 3);
  EXPECT_EQ(shadow.asyncRead(128, 16, 3, true).verdict, Verdict::Good);
  EXPECT_EQ(shadow.asyncRead(144, 16, 3, true).verdict, Verdict::Unfenced);
}

TEST_F(AsyncProxy, ReadersMustBeDoneBeforeACopy) {
  ASSERT_EQ(asyncWrite(0, 1), Verdict::Good);
  wait(2);
  ASSERT_EQ(read(48, 2), Verdict::Good);
  auto problem = shadow.asyncWrite(0, 64, 1, true);
  EXPECT_EQ(problem.verdict, Verdict::Race);
  barrier(2, 1);
  EXPECT_EQ(asyncWrite(0, 1), Verdict::Good);
}

TEST_F(AsyncProxy, SurvivesWithoutRaceChecks) {
  EXPECT_EQ(shadow.asyncRead(0, 64, 0, false).verdict, Verdict::Unwritten);
  EXPECT_EQ(shadow.asyncWrite(0, 64, 0, false).verdict, Verdict::Good);
  EXPECT_EQ(shadow.asyncRead(0, 64, 1, false).verdict, Verdict::Good);
}

} // namespace
