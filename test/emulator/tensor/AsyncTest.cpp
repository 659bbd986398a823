//===- AsyncTest.cpp - groups of asynchronous work, memory in flight ------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/emulator/tensor/Async.h"

#include <gtest/gtest.h>

using namespace tenon::emu::tensor;

namespace {

TEST(AsyncGroups, WaitFinishesTheOldest) {
  AsyncGroups<int> groups;
  std::vector<int> done;
  auto finish = [&](int work) { done.push_back(work); };
  for (int group = 0; group < 4; ++group) {
    groups.add(2 * group);
    groups.add(2 * group + 1);
    groups.commit();
  }
  groups.add(8); // never committed
  groups.wait(3, finish);
  EXPECT_EQ(done, (std::vector<int>{0, 1}));
  groups.wait(3, finish);
  EXPECT_EQ(done.size(), 2u);
  groups.wait(1, finish);
  EXPECT_EQ(done, (std::vector<int>{0, 1, 2, 3, 4, 5}));
  groups.wait(0, finish);
  EXPECT_EQ(done.size(), 8u);
  EXPECT_FALSE(groups.idle());
  std::vector<int> left;
  groups.forEach([&](int work) { left.push_back(work); });
  EXPECT_EQ(left, (std::vector<int>{8}));
  groups.waitAll(finish);
  EXPECT_EQ(done.back(), 8);
  EXPECT_TRUE(groups.idle());
}

// The tail of a pipeline commits empty groups so that its waits keep counting.
TEST(AsyncGroups, EmptyGroupsCount) {
  AsyncGroups<int> groups;
  std::vector<int> done;
  auto finish = [&](int work) { done.push_back(work); };
  groups.add(1);
  groups.commit();
  groups.commit();
  groups.wait(2, finish);
  EXPECT_TRUE(done.empty());
  groups.commit();
  groups.wait(2, finish);
  EXPECT_EQ(done.size(), 1u);
  EXPECT_TRUE(groups.idle());
  EXPECT_EQ(groups.groups(), 2u);
}

TEST(InFlight, WritesExcludeAll) {
  InFlight f(256);
  EXPECT_TRUE(f.empty());
  f.begin(AccessKind::Write, 32, 32);
  EXPECT_FALSE(f.conflicts(AccessKind::Read, 28, 4));
  EXPECT_TRUE(f.conflicts(AccessKind::Read, 28, 5));
  EXPECT_TRUE(f.conflicts(AccessKind::Write, 63, 1));
  EXPECT_FALSE(f.conflicts(AccessKind::Write, 64, 64));
  EXPECT_FALSE(f.conflicts(AccessKind::Read, 40, 0));
  f.end(AccessKind::Write, 32, 32);
  EXPECT_TRUE(f.empty());
  EXPECT_FALSE(f.conflicts(AccessKind::Read, 32, 32));
}

TEST(InFlight, ReadsExcludeWrites) {
  InFlight f(256);
  f.begin(AccessKind::Read, 0, 128);
  f.begin(AccessKind::Read, 64, 128);
  EXPECT_FALSE(f.conflicts(AccessKind::Read, 0, 256));
  EXPECT_TRUE(f.conflicts(AccessKind::Write, 0, 16));
  f.end(AccessKind::Read, 0, 128);
  EXPECT_FALSE(f.conflicts(AccessKind::Write, 0, 64));
  EXPECT_TRUE(f.conflicts(AccessKind::Write, 64, 64));
  f.end(AccessKind::Read, 64, 128);
  EXPECT_TRUE(f.empty());
}

TEST(InFlight, IgnoresWhatLiesBeyond) {
  InFlight f(32);
  f.begin(AccessKind::Write, 16, 0xfffffff0);
  EXPECT_TRUE(f.conflicts(AccessKind::Read, 16, 1));
  EXPECT_FALSE(f.conflicts(AccessKind::Read, 64, 1));
  f.end(AccessKind::Write, 16, 0xfffffff0);
  EXPECT_TRUE(f.empty());
}

TEST(ProxyFences, WritesNeedAFence) {
  ProxyFences p(1024, 64);
  EXPECT_TRUE(p.visible(0, 0, 1024));
  p.write(5, 100, 8, 10);
  EXPECT_FALSE(p.visible(0, 96, 16));
  EXPECT_TRUE(p.visible(0, 112, 912));
  p.fence(0, 9); // before the write: no help
  EXPECT_FALSE(p.visible(0, 96, 16));
  p.fence(5, 11); // by the writer
  EXPECT_TRUE(p.visible(0, 96, 16));
  p.write(6, 100, 8, 12);
  EXPECT_FALSE(p.visible(0, 0, 1024));
  EXPECT_FALSE(p.visible(5, 0, 1024));
  p.fence(0, 13); // by the issuer
  EXPECT_TRUE(p.visible(0, 0, 1024));
  EXPECT_FALSE(p.visible(1, 0, 1024));
}

} // namespace
