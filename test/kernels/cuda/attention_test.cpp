//===- attention_test.cpp - flash attention and its split-KV form ---------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "cases.h"

using namespace test;

namespace {

AttentionCase plain(const char *tuning) {
  AttentionCase c(attentionTuning(tuning));
  c.queries = 37;
  c.keys = 75;
  c.heads = 2;
  c.kvHeads = 2;
  return c;
}

class EveryAttention : public testing::TestWithParam<int> {};

TEST_P(EveryAttention, CausalWithFewerKeyHeads) {
  TN_NEED_DEVICE();
  const AttentionTuning &t = attentionTunings()[GetParam()];
  AttentionCase c = plain(t.name);
  c.d = c.dv = t.maxD;
  c.batch = 2;
  c.kvHeads = 1;
  c.queries = t.bm + 3;
  c.keys = 2 * t.bn + 11;
  c.right = 0;
  EXPECT_EQ(runAttention(c), "");
}

TEST_P(EveryAttention, MaskOddSizesAndAddresses) {
  TN_NEED_DEVICE();
  const AttentionTuning &t = attentionTunings()[GetParam()];
  AttentionCase c = plain(t.name);
  c.d = t.maxD - 9;
  c.dv = t.maxD - 17;
  c.gap = 1;
  c.mask = "additive";
  c.hideEvery = 5;
  EXPECT_EQ(runAttention(c), "");
}

INSTANTIATE_TEST_SUITE_P(Attention, EveryAttention,
                         testing::Range(0, int(attentionTunings().size())),
                         [](const auto &info) {
                           return std::string(
                               attentionTunings()[info.param].name);
                         });

TEST_P(EveryAttention, HeadsThatAreNoPowerOfTwo) {
  TN_NEED_DEVICE();
  const AttentionTuning &t = attentionTunings()[GetParam()];
  AttentionCase c = plain(t.name);
  c.d = c.dv = t.maxD * 5 / 8;
  EXPECT_EQ(runAttention(c), "");
}

/// The same cases for all kernels; empty: the split-KV one.
class EveryKernel : public testing::TestWithParam<const char *> {
protected:
  AttentionCase start() const {
    bool split = !*GetParam();
    AttentionCase c = plain(split ? "d64_64x64" : GetParam());
    if (split)
      c.tuning = nullptr;
    return c;
  }
  void SetUp() override { TN_NEED_DEVICE(); }
};

TEST_P(EveryKernel, Windows) {
  AttentionCase c = start();
  c.left = 10;
  c.right = 3;
  EXPECT_EQ(runAttention(c), "");
  c.align = "top_left";
  c.keys = 30; // the last queries see nothing
  EXPECT_EQ(runAttention(c), "");
  c.align = "param";
  c.offset = 20;
  c.maskedRow = "nan";
  EXPECT_EQ(runAttention(c), "");
}

TEST_P(EveryKernel, QueriesBeforeAllKeys) {
  AttentionCase c = start();
  c.keys = 20;
  c.right = 0;
  for (const char *row : {"zero", "uniform", "nan"}) {
    c.maskedRow = row;
    EXPECT_EQ(runAttention(c), "") << row;
  }
}

TEST_P(EveryKernel, MasksAndFullyMaskedRows) {
  for (const char *mask : {"additive", "boolean"})
    for (const char *row : {"zero", "uniform", "nan"}) {
      AttentionCase c = start();
      c.batch = 2;
      c.mask = mask;
      c.maskedRow = row;
      c.hideEvery = 4;
      c.maskIsF32 = row[0] != 'n';
      EXPECT_EQ(runAttention(c), "") << mask << " " << row;
    }
}

TEST_P(EveryKernel, PaddingMask) {
  AttentionCase c = start();
  c.mask = "boolean";
  c.maskRowShared = true;
  c.right = 0;
  c.maskedRow = "nan";
  EXPECT_EQ(runAttention(c), "");
}

TEST_P(EveryKernel, SoftcapAndAlibi) {
  AttentionCase c = start();
  c.softcap = 2;
  c.alibi = true;
  c.right = 0;
  if (c.type == &f16)
    c.type = &bf16;
  EXPECT_EQ(runAttention(c), "");
}

TEST_P(EveryKernel, SizesOfZeroAndOne) {
  AttentionCase c = start();
  c.keys = 0;
  for (const char *row : {"zero", "uniform", "nan"}) {
    c.maskedRow = row;
    EXPECT_EQ(runAttention(c), "") << "no keys, " << row;
  }
  c.keys = c.queries = 1;
  EXPECT_EQ(runAttention(c), "");
}

INSTANTIATE_TEST_SUITE_P(Attention, EveryKernel,
                         testing::Values("d64_64x64", "single_d64_64x32", ""),
                         [](const auto &info) {
                           return std::string(*info.param ? info.param
                                                          : "decode");
                         });

TEST(AttentionDecode, HeadsOfManySizes) {
  TN_NEED_DEVICE();
  for (int d : {32, 80, 128, 256})
    for (const Element *type : {&f16, &f32}) {
      AttentionCase c;
      c.type = type;
      c.d = d;
      c.dv = d == 80 ? 72 : d;
      c.heads = 6;
      c.kvHeads = 2;
      c.queries = d == 128 ? 3 : 1;
      c.keys = 200;
      c.rows = d == 256 ? 1 : 4;
      c.right = 0;
      EXPECT_EQ(runAttention(c), "") << d << " " << type->name;
    }
}

TEST(AttentionDecode, OddAddresses) {
  TN_NEED_DEVICE();
  AttentionCase c;
  c.d = 61;
  c.dv = 45;
  c.gap = 2;
  c.keys = 100;
  EXPECT_EQ(runAttention(c), "");
}

} // namespace
