//===- gemm_test.cpp - the tensor-core GEMM, GEMV and 4-bit GEMV ----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "cases.h"

using namespace test;

namespace {

/// The element types that a tuning is for.
std::vector<const Element *> elementsOf(const GemmTuning &t) {
  std::string element = t.element;
  if (element == "single")
    return {&f32};
  if (element == "byte")
    return t.arch >= 80 ? std::vector<const Element *>{&i8, &u8ByS8, &e4m3}
                        : std::vector<const Element *>{&i8, &u8ByS8};
  return t.arch >= 80 ? std::vector<const Element *>{&f16, &bf16}
                      : std::vector<const Element *>{&f16};
}

GemmCase caseOf(const GemmTuning &t, const Element *in) {
  GemmCase c;
  c.tuning = t;
  c.in = c.out = in;
  if (in->size == 1) {
    c.out = &f32;
    c.nk = true;
  }
  if (in == &e4m3)
    c.tuning.arch = 89;
  return c;
}

class EveryTuning : public testing::TestWithParam<int> {
protected:
  const GemmTuning &tuning() const { return gemmTunings()[GetParam()]; }
};

/// More than a tile each way, no size a multiple of anything: both layouts,
/// addresses that allow no vectors, an epilogue, gaps between rows.
TEST_P(EveryTuning, RaggedSizes) {
  TN_NEED_DEVICE();
  const GemmTuning &t = tuning();
  for (const Element *in : elementsOf(t)) {
    GemmCase c = caseOf(t, in);
    c.m = t.bm + 3;
    c.n = t.bn + 5;
    c.k = 2 * t.kBytes / in->size + 7;
    c.gapC = 3;
    EXPECT_EQ(runGemm(c), "") << in->name;
    // The other layout, aligned, with an epilogue.
    c.nk = true;
    c.k = 3 * t.kBytes / in->size + 16;
    c.gapC = 0;
    c.n = t.bn - 8;
    c.epilogue = in->size > 1;
    EXPECT_EQ(runGemm(c), "") << in->name;
  }
}

TEST_P(EveryTuning, AlignedSizesOfSeveralBatches) {
  TN_NEED_DEVICE();
  const GemmTuning &t = tuning();
  const Element *in = elementsOf(t)[0];
  GemmCase c = caseOf(t, in);
  c.batch = 2;
  c.m = 16;
  c.n = 2 * t.bn;
  c.k = 6 * t.kBytes / in->size;
  c.epilogue = in->size > 1;
  EXPECT_EQ(runGemm(c), "");
}

INSTANTIATE_TEST_SUITE_P(Gemm, EveryTuning,
                         testing::Range(0, int(gemmTunings().size())),
                         [](const auto &info) {
                           return std::string(gemmTunings()[info.param].name);
                         });

TEST(Gemm, SizesOfZeroAndOne) {
  TN_NEED_DEVICE();
  GemmCase c = caseOf(gemmTuning("half_64x64"), &f16);
  EXPECT_EQ(runGemm(c), "");
  c.epilogue = true;
  c.k = 0;
  c.m = 3;
  c.n = 70;
  EXPECT_EQ(runGemm(c), "") << "a product over nothing";
  c.stream = true;
  c.blocks = 2;
  EXPECT_EQ(runGemm(c), "") << "a product over nothing, shared";
}

TEST(Gemm, OneMatrixForAllBatches) {
  TN_NEED_DEVICE();
  GemmCase c = caseOf(gemmTuning("half_32x64"), &f16);
  c.batch = 3;
  c.m = 20;
  c.n = 24;
  c.k = 40;
  c.sharedB = true;
  EXPECT_EQ(runGemm(c), "");
}

/// Shares that end in the middle of tiles, that are whole tiles, more blocks
/// than k blocks; the counters are 0 again for the second launch.
TEST(Gemm, KSharedAmongBlocks) {
  TN_NEED_DEVICE();
  for (int blocks : {1, 3, 5, 12, 50}) {
    GemmCase c = caseOf(gemmTuning("half_64x64"), &f16);
    c.stream = true;
    c.blocks = blocks;
    c.batch = 2;
    c.m = 70;
    c.n = 40;
    c.k = 400;
    c.epilogue = true;
    c.repeat = 2;
    EXPECT_EQ(runGemm(c), "") << blocks;
  }
  GemmCase c = caseOf(gemmTuning("fma_64x64"), &f32);
  c.stream = true;
  c.blocks = 7;
  c.m = 70;
  c.n = 70;
  c.k = 200;
  EXPECT_EQ(runGemm(c), "");
}

TEST(Gemm, ResultsOfOtherTypes) {
  TN_NEED_DEVICE();
  GemmCase c = caseOf(gemmTuning("half_64x64"), &bf16);
  c.m = 30;
  c.n = 50;
  c.k = 100;
  c.out = &f32;
  EXPECT_EQ(runGemm(c), "");
}

class EveryBulk : public testing::TestWithParam<int> {};

TEST_P(EveryBulk, RaggedSizesAndBatches) {
  TN_NEED_DEVICE();
  for (bool nk : {false, true}) {
    GemmCase c;
    c.tuning = gemmTuning("half_64x64");
    c.bulk = &bulkTunings()[GetParam()];
    c.in = c.out = nk ? &bf16 : &f16;
    c.nk = nk;
    // Rows begin on multiples of 16 bytes.
    c.m = 131;
    c.n = c.bulk->bn + 24;
    c.k = 64 * c.bulk->stages + 72;
    c.epilogue = true;
    EXPECT_EQ(runGemm(c), "") << (nk ? "nk" : "kn");
    c.m = 20;
    c.batch = 2;
    c.sharedB = nk;
    c.k = 40;
    c.out = &f32;
    EXPECT_EQ(runGemm(c), "") << (nk ? "nk" : "kn") << ", batches";
  }
}
/// The same of bytes, of which 128 are a stage's.
TEST_P(EveryBulk, Bytes) {
  TN_NEED_DEVICE();
  for (const Element *type : {&i8, &u8ByS8, &e4m3}) {
    GemmCase c;
    c.tuning = gemmTuning("byte_64x64");
    c.bulk = &bulkTunings()[GetParam()];
    c.in = type;
    c.out = &f32;
    c.nk = true;
    c.m = 131;
    c.n = c.bulk->bn + 24;
    c.k = 128 * c.bulk->stages + 144;
    c.epilogue = type == &i8;
    EXPECT_EQ(runGemm(c), "") << type->name;
  }
}
INSTANTIATE_TEST_SUITE_P(Gemm, EveryBulk,
                         testing::Range(0, int(bulkTunings().size())),
                         [](const auto &info) {
                           return std::string(bulkTunings()[info.param].name);
                         });

class EveryGemv : public testing::TestWithParam<int> {};

TEST_P(EveryGemv, PlainMatrices) {
  TN_NEED_DEVICE();
  GemvCase c;
  c.tuning = gemvTunings()[GetParam()];
  for (const Element *type : {&f16, &bf16, &f32}) {
    c.type = type;
    c.rows = type == &f16 ? 1 : 3;
    c.m = type == &f16 ? 1 : 4;
    c.n = 37;
    c.k = 1040;
    c.epilogue = type != &f32;
    c.gap = 0;
    EXPECT_EQ(runGemv(c), "") << type->name;
    c.k = 333;
    c.gap = 1;
    EXPECT_EQ(runGemv(c), "") << type->name << ", odd addresses";
  }
}

TEST_P(EveryGemv, WeightsOfCodes) {
  TN_NEED_DEVICE();
  for (int block : {16, 32, 128}) {
    GemvCase c;
    c.tuning = gemvTunings()[GetParam()];
    c.block = block;
    c.bits = block == 16 ? 8 : block == 128 ? 2 : 4;
    c.zeros = block == 32 ? "none" : block == 16 ? "real" : "packed";
    c.type = block == 128 ? &bf16 : block == 16 ? &f32 : &f16;
    c.rows = block == 16 ? 2 : 1;
    c.m = block == 16 ? 3 : 1;
    c.n = 29;
    c.k = 1040 + (block == 32 ? 5 : 0);
    c.epilogue = block == 32;
    EXPECT_EQ(runGemv(c), "") << block;
  }
}

/// Tiles of numbers that codes stand for, ragged in all sizes: the last block
/// of codes and the last stage are cut short.
TEST(GemmCodes, Tiles) {
  TN_NEED_DEVICE();
  for (const char *tuning :
       {"half_64x64", "half_16x64", "turing_64x64", "tf32_64x64", "fma_64x64"})
    for (int block : {16, 32, 128}) {
      GemvCase c;
      c.tuning = gemvTuning("narrow");
      c.tile = &gemmTuning(tuning);
      c.type = std::string(c.tile->element) == "single" ? &f32
               : block == 128 && c.tile->arch >= 80     ? &bf16
                                                        : &f16;
      c.block = block;
      c.bits = block == 16 ? 8 : block == 128 ? 2 : 4;
      c.zeros = block == 32 ? "none" : block == 16 ? "real" : "packed";
      c.m = 70;
      c.n = 77;
      c.k = block == 32 ? 309 : 304;
      c.epilogue = block == 32;
      c.blocks = block == 128 ? 5 : 0;
      EXPECT_EQ(runGemv(c), "") << tuning << ' ' << block;
    }
}

/// One row takes a way of its own; a row that is left over does too. The first
/// tuning is tried with all combinations, the others with some: compiling takes
/// its time.
TEST_P(EveryGemv, RowsAreNormalised) {
  TN_NEED_DEVICE();
  for (const char *norm : {"rms", "layer"})
    for (const Element *type : {&f16, &f32}) {
      GemvCase c;
      c.tuning = gemvTunings()[GetParam()];
      c.norm = norm;
      c.type = type;
      c.rows = 2;
      c.m = 3;
      c.n = 21;
      c.k = type == &f16 ? 1040 : 333;
      c.epilogue = type == &f32;
      if (GetParam() != 0 && (type == &f16) != (std::string(norm) == "rms"))
        continue;
      EXPECT_EQ(runGemv(c), "") << norm << ' ' << type->name;
      if (type == &f16) {
        c.singleRows = true;
        EXPECT_EQ(runGemv(c), "") << norm << ", rows of f32";
        c.singleRows = false;
      }
      c.block = 32;
      c.affine = type == &f16;
      EXPECT_EQ(runGemv(c), "") << norm << ' ' << type->name << ", codes";
    }
}

TEST_P(EveryGemv, PairsOfColumns) {
  TN_NEED_DEVICE();
  for (int block : {0, 32})
    for (const char *norm : {"none", "rms"}) {
      GemvCase c;
      c.tuning = gemvTunings()[GetParam()];
      c.norm = norm;
      c.pair = true;
      c.rows = 4;
      c.m = 3;
      c.n = 19;
      c.k = 264;
      c.block = block;
      if (GetParam() != 0 && (block == 0) != (std::string(norm) == "none"))
        continue;
      EXPECT_EQ(runGemv(c), "") << block << ' ' << norm;
      c.m = 1;
      c.type = &f32;
      EXPECT_EQ(runGemv(c), "") << block << ' ' << norm << ", one row";
    }
}

INSTANTIATE_TEST_SUITE_P(Gemv, EveryGemv,
                         testing::Range(0, int(gemvTunings().size())),
                         [](const auto &info) {
                           return std::string(gemvTunings()[info.param].name);
                         });

TEST(Rotary, PartsOfAProduct) {
  TN_NEED_DEVICE();
  for (bool interleaved : {false, true})
    for (const Element *to : {&f32, &f16}) {
      RotaryCase c;
      c.interleaved = interleaved;
      c.from = c.to = to;
      // Elements behind the rotated ones; more work than threads, or less.
      c.half = interleaved ? 6 : 8;
      c.blocks = interleaved ? 2 : 9;
      EXPECT_EQ(runRotary(c), "") << interleaved << ' ' << to->name;
    }
}

} // namespace
