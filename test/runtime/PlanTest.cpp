//===- PlanTest.cpp - what a damaged plan leads to ----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/Plan.h"

#include "test/runtime/TestPlans.h"

#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace tenon;
using namespace tenon::rt;
using namespace tenon::test;

namespace {

/// Loads `bytes` from aligned memory of exactly their size, so that sanitizers
/// see reads past the end.
std::string load(const std::vector<uint8_t> &bytes) {
  AlignedBytes copy = allocateAligned(bytes.size());
  std::copy(bytes.begin(), bytes.end(), copy.get());
  auto plan = Plan::load({copy.get(), bytes.size()});
  return plan.ok() ? "" : plan.message();
}

template <typename Record>
Record &record(std::vector<uint8_t> &bytes, const Table &table, size_t index) {
  return reinterpret_cast<Record *>(bytes.data() + table.offset)[index];
}

PlanHeader &header(std::vector<uint8_t> &bytes) {
  return *reinterpret_cast<PlanHeader *>(bytes.data());
}

TEST(Plan, LoadsWhatTheBuilderWrites) {
  EXPECT_EQ(load(affinePlan()), "");
  EXPECT_EQ(load(selectPlan()), "");
  EXPECT_EQ(load(appendPlan()), "");
}

TEST(Plan, NoticesEveryFlippedBit) {
  std::vector<uint8_t> good = affinePlan();
  for (size_t i = 0; i < good.size(); ++i) {
    std::vector<uint8_t> bad = good;
    bad[i] ^= uint8_t(1u << (i % 8));
    EXPECT_NE(load(bad), "") << i;
  }
}

TEST(Plan, NoticesTruncation) {
  std::vector<uint8_t> good = affinePlan();
  for (size_t size = 0; size < good.size(); size += 7)
    EXPECT_NE(load({good.begin(), good.begin() + ptrdiff_t(size)}), "");
}

TEST(Plan, ChecksRangesThatTheChecksumCannot) {
  auto damaged = [](auto change) {
    std::vector<uint8_t> bytes = selectPlan();
    change(bytes, header(bytes));
    codegen::sealPlan(bytes);
    return load(bytes);
  };
  using Plan = std::vector<uint8_t>;
  EXPECT_EQ(damaged([](Plan &b, PlanHeader &h) {
              record<Expr>(b, h.exprs, 0).segment = 9;
            }),
            "damaged plan: expression 0: is malformed");
  EXPECT_EQ(damaged([](Plan &b, PlanHeader &h) {
              record<View>(b, h.views, 0).rank = 200;
            }),
            "damaged plan: view 0: is malformed");
  EXPECT_EQ(damaged([](Plan &b, PlanHeader &h) {
              record<Launch>(b, h.launches, 2).unit = 5;
            }),
            "damaged plan: launch 2: is malformed");
  EXPECT_EQ(damaged([](Plan &b, PlanHeader &h) {
              record<Launch>(b, h.launches, 0).numViews = 0x7fffffff;
            }),
            "damaged plan: launch 0: is malformed");
  EXPECT_EQ(damaged([](Plan &b, PlanHeader &h) {
              record<Segment>(b, h.segments, 0).numLaunches = 1;
            }),
            "damaged plan: segment 1: does not follow the one before");
  EXPECT_EQ(damaged([](Plan &b, PlanHeader &h) {
              record<Port>(b, h.outputs, 0).target = 77;
            }),
            "damaged plan: output 0: is out of range");
  EXPECT_EQ(damaged([](Plan &b, PlanHeader &h) { h.exprs.count = 1u << 31; }),
            "damaged plan: table of expressions is out of range");
  EXPECT_EQ(damaged([](Plan &b, PlanHeader &h) {
              h.views.offset = ~uint64_t(0) - 3;
            }),
            "damaged plan: table of views is out of range");
  EXPECT_EQ(damaged([](Plan &b, PlanHeader &h) { h.version = 9; }),
            "plan has version 9, this runtime reads version 4");
  EXPECT_EQ(damaged([](Plan &b, PlanHeader &h) {
              b[h.strings.offset + h.strings.count - 1] = 'x';
            }),
            "damaged plan: table 0: strings do not end");
}

TEST(Plan, ChecksStates) {
  auto damaged = [](auto change) {
    std::vector<uint8_t> bytes = appendPlan();
    change(record<State>(bytes, header(bytes).states, 0));
    codegen::sealPlan(bytes);
    return load(bytes);
  };
  EXPECT_EQ(damaged([](State &) {}), "");
  EXPECT_EQ(damaged([](State &s) { s.axis = 2; }),
            "damaged plan: state 0: is malformed");
  EXPECT_EQ(damaged([](State &s) { s.axis = 1; }),
            "damaged plan: state 0: is malformed");
  EXPECT_EQ(damaged([](State &s) { s.capacity = 0; }),
            "damaged plan: state 0: is malformed");
  EXPECT_EQ(damaged([](State &s) { s.buffer = 0; }),
            "damaged plan: buffer 1: is out of range");
}

TEST(Plan, SurvivesRandomDamage) {
  std::mt19937 random(1);
  for (const std::vector<uint8_t> &good :
       {affinePlan(), selectPlan(), appendPlan()})
    for (int round = 0; round < 3000; ++round) {
      std::vector<uint8_t> bad = good;
      for (unsigned n = random() % 4 + 1; n > 0; --n)
        bad[random() % bad.size()] = uint8_t(random());
      if (bad.size() < sizeof(PlanHeader))
        continue;
      codegen::sealPlan(bad);
      load(bad); // no crash, whatever it says
    }
}

TEST(Plan, PrintsSizes) {
  PlanKit kit;
  ExprId batch = kit.symbolValue(kit.symbol("batch", 1, 8));
  ExprId seq = kit.symbolValue(kit.symbol("seq", 1, 8));
  ExprId sum = kit.apply(ExprOp::Add, batch, seq);
  ExprId product = kit.times(sum, 12);
  ExprId up = kit.apply(ExprOp::CeilDiv, product, kit.constant(5));
  kit.checks.push_back({product, up, kit.string("x")});
  uint32_t buffer = kit.buffer(BufferKind::Input, 0, kit.constant(0));
  kit.input("x", DType::F32, {batch, seq}, buffer);
  kit.header.numUnits = 5;
  TestModel model(kit.finish());
  const rt::Plan &plan = model.model->plan();
  EXPECT_EQ(plan.text(product), "(batch + seq) * 12");
  EXPECT_EQ(plan.text(up), "ceildiv((batch + seq) * 12, 5)");
  int64_t values[] = {3, 4};
  EXPECT_EQ((*evaluateAll(plan, values))[up], 17);
}

} // namespace
