//===- MatrixMoveTest.cpp - ldmatrix, stmatrix, movmatrix -----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/emulator/tensor/MatrixMove.h"
#include "test/emulator/tensor/TestMemory.h"

#include <gtest/gtest.h>

using namespace tenon::emu::tensor;

namespace {

/// Element c of row r of matrix m.
uint16_t element(unsigned m, unsigned r, unsigned c) {
  return uint16_t(m << 8 | r << 4 | c);
}

/// `count` matrices whose rows lie `pitch` bytes apart, and their addresses.
struct Rows {
  Rows(unsigned count, uint32_t pitch) : memory(64 * 1024, 0x400) {
    for (unsigned l = 0; l < lanes; ++l)
      addresses[l] = 0xffffffff; // must not be used
    for (unsigned m = 0; m < count; ++m)
      for (unsigned r = 0; r < 8; ++r) {
        uint32_t address = 0x400 + (m * 8 + r) * pitch;
        addresses[m * 8 + r] = address;
        for (unsigned c = 0; c < 8; ++c)
          memory.put(address + 2 * c, element(m, r, c));
      }
  }
  TestShared memory;
  uint32_t addresses[lanes];
};

// Lane l receives row l / 4, elements 2 * (l % 4) and the next (manual, figure
// of the m8n8 fragment); transposed, the roles of row and column change.
TEST(MatrixMove, LoadsWhatTheManualShows) {
  for (unsigned count : {1u, 2u, 4u})
    for (bool transposed : {false, true}) {
      Rows rows(count, 48);
      Fragment<uint32_t> d(count);
      ASSERT_TRUE(loadMatrix({uint8_t(count), transposed}, rows.addresses,
                             rows.memory, d.regs()));
      for (unsigned m = 0; m < count; ++m)
        for (unsigned l = 0; l < lanes; ++l)
          for (unsigned i = 0; i < 2; ++i) {
            unsigned r = l / 4, c = 2 * (l % 4) + i;
            uint16_t want = transposed ? element(m, c, r) : element(m, r, c);
            ASSERT_EQ(uint16_t(d.words[m][l] >> (16 * i)), want);
          }
      EXPECT_EQ(rows.memory.groups, count);
      EXPECT_EQ(rows.memory.last.kind, AccessKind::Read);
    }
}

TEST(MatrixMove, StoreUndoesLoad) {
  for (unsigned count : {1u, 2u, 4u})
    for (bool transposed : {false, true}) {
      Rows rows(count, 16);
      Fragment<uint32_t> d(count);
      MatrixMove op{uint8_t(count), transposed};
      ASSERT_TRUE(loadMatrix(op, rows.addresses, rows.memory, d.regs()));
      Rows empty(count, 16);
      std::fill(empty.memory.storage.begin(), empty.memory.storage.end(), 0);
      ASSERT_TRUE(storeMatrix(op, rows.addresses, empty.memory, d.in()));
      EXPECT_EQ(empty.memory.storage, rows.memory.storage);
      EXPECT_EQ(empty.memory.last.kind, AccessKind::Write);
    }
}

TEST(MatrixMove, RefusedAccessesChangeNothing) {
  Rows rows(2, 16);
  rows.addresses[13] += 4; // misaligned
  Fragment<uint32_t> d(2);
  EXPECT_FALSE(loadMatrix({2, false}, rows.addresses, rows.memory, d.regs()));
  EXPECT_EQ(d.words[0][5], 0u);
  auto before = rows.memory.storage;
  d.words[0].fill(7);
  EXPECT_FALSE(storeMatrix({2, false}, rows.addresses, rows.memory, d.in()));
  EXPECT_EQ(rows.memory.storage, before);
}

TEST(MatrixMove, AddressesMayBeInADestination) {
  Rows rows(4, 16);
  Fragment<uint32_t> d(4);
  std::copy_n(rows.addresses, lanes, d.words[0].data());
  ASSERT_TRUE(loadMatrix({4, false}, d.words[0].data(), rows.memory, d.regs()));
  EXPECT_EQ(uint16_t(d.words[3][4]), element(3, 1, 0));
}

TEST(MatrixMove, Transposes) {
  uint32_t from[lanes], to[lanes];
  for (unsigned l = 0; l < lanes; ++l)
    from[l] = element(0, l / 4, 2 * (l % 4)) |
              uint32_t(element(0, l / 4, 2 * (l % 4) + 1)) << 16;
  moveMatrix(from, to);
  for (unsigned l = 0; l < lanes; ++l) {
    EXPECT_EQ(uint16_t(to[l]), element(0, 2 * (l % 4), l / 4));
    EXPECT_EQ(uint16_t(to[l] >> 16), element(0, 2 * (l % 4) + 1, l / 4));
  }
  moveMatrix(to, to);
  EXPECT_TRUE(std::equal(from, from + lanes, to));
}

} // namespace
