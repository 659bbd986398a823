//===- counters_test.cpp - bank conflicts and sectors, as counted ---------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What the emulator counts at aligned shapes: no bank conflict in the main
/// loops of GEMM and attention, and no more than 1.05 of the least number of
/// sectors for every instruction that touches global memory.
///
//===----------------------------------------------------------------------===//

#include "cases.h"
#include "counters.h"

using namespace test;

namespace {

#define TN_NEED_EMULATOR()                                                     \
  TN_NEED_DEVICE();                                                            \
  if (!Device::get()->isEmulated())                                            \
  GTEST_SKIP() << "only the emulator counts"

/// The instructions of main loops: matrix loads, word loads, copies.
void expectNoConflicts(const std::string &counters, const std::string &what) {
  for (const char *text : {"ldmatrix", "ld.shared", "cp.async"}) {
    Accesses a = accessesOf(counters, text);
    bool isCopy = text[0] == 'c';
    if (!isCopy)
      EXPECT_EQ(a.conflicts(), 0) << what << ": " << text << ", " << a.pieces
                                  << " wavefronts for " << a.ideal;
  }
}

void expectFewSectors(const std::string &counters, const std::string &what) {
  for (const char *text : {"cp.async", "ld.global", "st.global"})
    for (const Accesses &a : everyAccess(counters, text))
      EXPECT_LE(a.ratio(), 1.05) << what << ": " << a.text << ", " << a.pieces
                                 << " sectors for " << a.ideal;
}

class GemmCounters : public testing::TestWithParam<int> {};

TEST_P(GemmCounters, AlignedSizes) {
  TN_NEED_EMULATOR();
  const GemmTuning &t = gemmTunings()[GetParam()];
  std::string element = t.element;
  for (bool nk : {false, true}) {
    GemmCase c;
    c.tuning = t;
    c.in = element == "half" ? &f16 : element == "single" ? &f32 : &i8;
    c.out = element == "byte" ? &f32 : c.in;
    c.nk = nk;
    if (element == "byte" && !nk)
      continue;
    c.m = t.bm;
    c.n = 2 * t.bn;
    c.k = 6 * t.kBytes / c.in->size;
    c.epilogue = true;
    Device::get()->takeCounters();
    ASSERT_EQ(runGemm(c), "");
    std::string counters = Device::get()->takeCounters();
    std::string what = std::string(t.name) + (nk ? " nk" : " kn");
    expectNoConflicts(counters, what);
    expectFewSectors(counters, what);
  }
}
INSTANTIATE_TEST_SUITE_P(Counters, GemmCounters,
                         testing::Range(0, int(gemmTunings().size())),
                         [](const auto &info) {
                           return std::string(gemmTunings()[info.param].name);
                         });

class AttentionCounters : public testing::TestWithParam<int> {};

TEST_P(AttentionCounters, AlignedSizes) {
  TN_NEED_EMULATOR();
  for (bool masked : {false, true}) {
    AttentionCase c(attentionTunings()[GetParam()]);
    c.d = c.dv = c.tuning->maxD;
    c.heads = 2;
    c.kvHeads = 1;
    c.queries = c.keys = 128;
    c.right = 0;
    c.mask = masked ? "additive" : "none";
    Device::get()->takeCounters();
    ASSERT_EQ(runAttention(c), "");
    std::string counters = Device::get()->takeCounters();
    std::string what =
        std::string(c.tuning->name) + (masked ? " masked" : " causal");
    expectNoConflicts(counters, what);
    expectFewSectors(counters, what);
  }
}
INSTANTIATE_TEST_SUITE_P(Counters, AttentionCounters,
                         testing::Range(0, int(attentionTunings().size())),
                         [](const auto &info) {
                           return std::string(
                               attentionTunings()[info.param].name);
                         });

/// Weights are read once, and in whole sectors.
TEST(GemvCounters, WeightsAreReadOnce) {
  TN_NEED_EMULATOR();
  GemvCase c;
  c.tuning = gemvTuning("wide");
  c.n = 256;
  c.k = 1024;
  for (int block : {0, 32}) {
    c.block = block;
    Device::get()->takeCounters();
    ASSERT_EQ(runGemv(c), "");
    std::string counters = Device::get()->takeCounters();
    Accesses loads = accessesOf(counters, "ld.global");
    EXPECT_LE(loads.ratio(), 1.05) << block;
    // x is read once for each warp's 4 columns, a scale for 8 weights, a zero
    // point too.
    int64_t elements = c.n * c.k, weights = block ? elements / 2 : elements * 2;
    int64_t rest = elements * 2 / 4 + (block ? elements / 8 * 3 : 0);
    EXPECT_GE(loads.bytes, weights) << block;
    EXPECT_LE(loads.bytes, weights + rest + 64) << block;
  }
}

} // namespace
