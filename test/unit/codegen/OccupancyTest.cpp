//===- OccupancyTest.cpp - what of a kernel a multiprocessor holds --------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/target/Occupancy.h"

#include "gtest/gtest.h"

using namespace tenon::codegen;

namespace {

unsigned warps(unsigned arch, unsigned threads, unsigned registers,
               unsigned shared) {
  return occupancyOf(arch, threads, registers, shared).warps;
}

// Worked out by hand from the CUDA C++ Programming Guide's tables.
TEST(Occupancy, EachLimit) {
  // Warps: 64 of them, and 48.
  EXPECT_EQ(warps(80, 256, 16, 0), 64u);
  EXPECT_EQ(warps(89, 256, 16, 0), 48u);
  EXPECT_EQ(occupancyOf(89, 256, 16, 0).share(), 1.0);
  // Blocks: 32 of one warp, 16 on sm_86.
  EXPECT_EQ(warps(90, 32, 16, 0), 32u);
  EXPECT_EQ(warps(86, 32, 16, 0), 16u);
  // Registers: 255 a thread are 8192 a warp, of 65536; 33 are 1280, not 1056.
  EXPECT_EQ(warps(80, 128, 255, 0), 8u);
  EXPECT_EQ(warps(80, 128, 33, 0), 48u);
  // Shared memory: 1 KB more for each block from sm_80 on.
  EXPECT_EQ(warps(80, 128, 32, 81 << 10), 8u);
  EXPECT_EQ(warps(80, 128, 32, (81 << 10) + 1), 4u);
  EXPECT_EQ(warps(75, 128, 32, 32 << 10), 8u);
}

TEST(Occupancy, WhatDoesNotFit) {
  EXPECT_EQ(warps(75, 128, 32, 65 << 10), 0u);
  EXPECT_EQ(warps(80, 1024, 80, 0), 0u);
  EXPECT_EQ(occupancyOf(75, 128, 32, 65 << 10).most, 32u);
  EXPECT_EQ(occupancyOf(12, 128, 32, 0).most, 0u);
  EXPECT_EQ(occupancyOf(80, 0, 32, 0).most, 0u);
}

} // namespace
