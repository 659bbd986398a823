//===- window_test.cpp - conv_gemm and quantise_rows ----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "cases.h"
#include "counters.h"

using namespace test;

namespace {

/// Patches: the kernel's rows are 16 bytes and more, and the stride its size.
ConvCase patches(const char *tuning, const Element &type) {
  ConvCase c;
  c.tuning = gemmTuning(tuning);
  c.type = &type;
  c.channels = 3;
  c.filters = 70;
  c.height = c.width = 64;
  c.kernelHeight = c.kernelWidth = c.stride = 8;
  return c;
}

TEST(ConvGemm, Patches) {
  TN_NEED_DEVICE();
  for (const char *tuning : {"half_64x64", "turing_64x64"})
    EXPECT_EQ(runConv(patches(tuning, f16)), "") << tuning;
  EXPECT_EQ(runConv(patches("half_128x64", bf16)), "");
  EXPECT_EQ(runConv(patches("fma_64x64", f32)), "");
  // Chunks that begin at odd addresses, and in the padding.
  ConvCase c = patches("half_64x64", f16);
  c.width = 61;
  c.pad = 3;
  c.stride = 5;
  EXPECT_EQ(runConv(c), "");
}

TEST(ConvGemm, Windows) {
  TN_NEED_DEVICE();
  for (const char *tuning : {"half_64x64", "half_32x64", "fma_64x64"}) {
    ConvCase c;
    c.tuning = gemmTuning(tuning);
    c.type = std::string(tuning) == "fma_64x64" ? &f32 : &f16;
    c.images = 2;
    c.channels = 5;
    c.filters = 35;
    c.height = 9;
    c.width = 13;
    c.kernelHeight = 2;
    c.kernelWidth = 3;
    c.pad = 1;
    EXPECT_EQ(runConv(c), "") << tuning;
    c.stride = 2;
    c.dilation = 3;
    c.pad = 4;
    EXPECT_EQ(runConv(c), "") << tuning << ", dilated";
    c.channels = 60;
    c.blocks = 3;
    EXPECT_EQ(runConv(c), "") << tuning << ", k shared";
  }
}

/// At aligned shapes no bank is met twice and sectors are whole: patches, and
/// neighbours of a window as wide as a warp's positions.
TEST(ConvGemm, Counters) {
  TN_NEED_DEVICE();
  if (!Device::get()->isEmulated())
    GTEST_SKIP() << "only the emulator counts";
  ConvCase wide = patches("half_64x64", f16);
  wide.kernelHeight = wide.kernelWidth = wide.stride = 1;
  wide.channels = 64;
  wide.filters = 64;
  wide.height = 2;
  ConvCase patch = patches("half_64x64", f16);
  patch.filters = 64;
  patch.kernelWidth = patch.kernelHeight = patch.stride = 16;
  patch.width = 128;
  patch.height = 128;
  for (const ConvCase &c : {wide, patch}) {
    Device::get()->takeCounters();
    ASSERT_EQ(runConv(c), "");
    std::string counters = Device::get()->takeCounters();
    for (const char *text : {"ldmatrix", "ld.shared", "st.shared.v4",
                             "st.shared.u16", "st.shared.b16"})
      EXPECT_EQ(accessesOf(counters, text).conflicts(), 0) << text;
    for (const char *text : {"cp.async", "ld.global", "st.global"})
      for (const Accesses &a : everyAccess(counters, text))
        EXPECT_LE(a.ratio(), 1.05)
            << a.text << ", " << a.pieces << " sectors for " << a.ideal;
  }
}

TEST(Quantise, Rows) {
  TN_NEED_DEVICE();
  for (bool fp8 : {false, true})
    for (bool perWarp : {false, true}) {
      QuantiseCase c;
      c.fp8 = fp8;
      c.perWarp = perWarp;
      c.in = fp8 ? &bf16 : &f16;
      c.rows = 11;
      c.n = 256;
      EXPECT_EQ(runQuantise(c), "");
      c.n = 77;
      c.gap = 4;
      EXPECT_EQ(runQuantise(c), "") << "odd";
      c.known = false;
      c.n = 5000;
      c.in = &f32;
      EXPECT_EQ(runQuantise(c), "") << "long";
    }
}

TEST(Quantise, Counters) {
  TN_NEED_DEVICE();
  if (!Device::get()->isEmulated())
    GTEST_SKIP() << "only the emulator counts";
  QuantiseCase c;
  c.rows = 16;
  c.n = 768;
  Device::get()->takeCounters();
  ASSERT_EQ(runQuantise(c), "");
  std::string counters = Device::get()->takeCounters();
  for (const Accesses &a : everyAccess(counters, "ld.global"))
    EXPECT_LE(a.ratio(), 1.05) << a.text;
}

} // namespace
