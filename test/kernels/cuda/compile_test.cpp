//===- compile_test.cpp - what the compiler says of every tuning ----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Every tuning of every kernel compiles, without a warning and without memory
/// for spilled registers, for every architecture that it is for:
/// TN_TEST_ARCHS=all; by default for the least of them and sm_120.
///
//===----------------------------------------------------------------------===//

#include "cases.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>

using namespace test;

namespace {

/// sm_90a alone.
constexpr int bulkArch = 901;

/// The architectures from `least` on that are to be tried.
std::vector<std::string> archsFrom(int least) {
  if (least == bulkArch)
    return {"90a"};
  const char *which = getenv("TN_TEST_ARCHS");
  bool all = which && !strcmp(which, "all");
  std::vector<std::string> archs = {std::to_string(least)};
  for (int arch : {75, 80, 86, 89, 90, 100, 120})
    if (arch > least && (all || arch == 120))
      archs.push_back(std::to_string(arch));
  return archs;
}

/// The number before `text` in a line of the compiler's report.
int reported(const std::string &log, const std::string &text) {
  size_t end = log.find(text);
  if (end == std::string::npos)
    return -1;
  size_t begin = log.find_last_of("\n,:. ", end - 2);
  return atoi(log.c_str() + begin + 1);
}

/// The unit for each architecture; as many at a time as there are processors.
std::vector<Compiled> compileAll(const std::string &source,
                                 const std::vector<std::string> &archs) {
  std::vector<Compiled> units(archs.size());
  std::atomic<size_t> next{0};
  auto loop = [&] {
    for (size_t i; (i = next++) < archs.size();)
      units[i] = compile(source, "sm_" + archs[i]);
  };
  std::vector<std::thread> helpers;
  for (size_t i = 1;
       i < std::min<size_t>(std::thread::hardware_concurrency(), archs.size());
       ++i)
    helpers.emplace_back(loop);
  loop();
  for (std::thread &helper : helpers)
    helper.join();
  return units;
}

void checkCompiles(const std::string &what, const std::string &source,
                   int least) {
  if (!nvrtcMissing().empty())
    GTEST_SKIP() << nvrtcMissing();
  std::vector<std::string> archs = archsFrom(least);
  std::vector<Compiled> units = compileAll(source, archs);
  for (size_t i = 0; i < units.size(); ++i) {
    const std::string &arch = archs[i];
    const Compiled &unit = units[i];
    ASSERT_TRUE(unit.ok) << "sm_" << arch << "\n" << unit.log << source;
    EXPECT_EQ(unit.log.find("Potential Performance Loss"), std::string::npos)
        << unit.log;
    EXPECT_EQ(unit.log.find("warning"), std::string::npos) << unit.log;
    int stack = reported(unit.log, " bytes stack frame"),
        spilled = reported(unit.log, " bytes spill stores"),
        registers = reported(unit.log, " registers");
    EXPECT_TRUE(stack == 0 && spilled == 0 && registers > 0)
        << what << " for sm_" << arch << ": stack " << stack << ", spilled "
        << spilled << ", registers " << registers;
  }
}

/// A tile of more sums than that is never chosen where k is shared, nor for a
/// convolution.
bool mayShare(const GemmTuning &t) {
  return t.bm * t.bn <= (std::string(t.element) == "byte" ? 64 : 128) * 128;
}

std::string nameOf(const testing::TestParamInfo<int> &info) {
  return gemmTunings()[info.param].name;
}

class CompileGemm : public testing::TestWithParam<int> {};

TEST_P(CompileGemm, EveryArch) {
  GemmCase c;
  c.tuning = gemmTunings()[GetParam()];
  std::string element = c.tuning.element;
  bool isHalf = element == "half";
  c.in = isHalf ? &f16 : element == "single" ? &f32 : &i8;
  c.out = isHalf ? &f16 : &f32;
  c.k = c.n = 4096;
  c.epilogue = true;
  c.nk = !isHalf;
  checkCompiles("plain", gemmSource(c), c.tuning.arch);
  if (!mayShare(c.tuning))
    return;
  c.stream = true;
  c.nk = element == "byte";
  int least = c.tuning.arch;
  if (isHalf && least >= 80)
    c.in = c.out = &bf16;
  if (element == "byte" && least >= 80) {
    c.in = &e4m3;
    least = 89;
  }
  checkCompiles("stream", gemmSource(c), least);
}
INSTANTIATE_TEST_SUITE_P(Compile, CompileGemm,
                         testing::Range(0, int(gemmTunings().size())), nameOf);

TEST(CompileBulk, Hopper) {
  for (const BulkTuning &t : bulkTunings())
    for (bool nk : {false, true}) {
      GemmCase c;
      c.tuning = gemmTunings()[0];
      c.bulk = &t;
      c.in = c.out = nk ? &f16 : &bf16;
      c.nk = nk;
      c.epilogue = true;
      checkCompiles(t.name, gemmSource(c), bulkArch);
      c.in = nk ? &i8 : &e4m3;
      c.out = &f32;
      c.nk = true;
      checkCompiles(t.name, gemmSource(c), bulkArch);
    }
}

/// Every GEMM tuning of floating-point numbers, with both ways to gather.
TEST_P(CompileGemm, Convolutions) {
  ConvCase c;
  c.tuning = gemmTunings()[GetParam()];
  std::string element = c.tuning.element;
  if (element == "byte" || !mayShare(c.tuning))
    return;
  c.type = element == "half" ? &f16 : &f32;
  c.channels = 3;
  c.filters = 768;
  for (int kernel : {3, 16}) {
    c.height = c.width = 224;
    c.kernelHeight = c.kernelWidth = kernel;
    c.stride = kernel == 3 ? 1 : kernel;
    c.pad = kernel == 3;
    c.blocks = kernel;
    checkCompiles("convolution", convSource(c), c.tuning.arch);
  }
}

/// Every GEMM tuning of floating-point numbers, with weights of codes.
TEST_P(CompileGemm, Codes) {
  GemvCase c;
  c.tile = &gemmTunings()[GetParam()];
  std::string element = c.tile->element;
  if (element == "byte" || !mayShare(*c.tile))
    return;
  c.tuning = gemvTuning("narrow");
  c.type = element == "single" ? &f32 : &f16;
  c.k = c.n = 4096;
  c.epilogue = true;
  for (int bits : {4, 8}) {
    c.bits = bits;
    c.block = 32;
    c.blocks = bits;
    checkCompiles("codes", gemvSource(c), c.tile->arch);
  }
}

TEST(CompileQuantise, EveryArch) {
  for (bool fp8 : {false, true})
    for (bool perWarp : {false, true}) {
      QuantiseCase c;
      c.fp8 = fp8;
      c.perWarp = perWarp;
      c.n = perWarp ? 768 : 3072;
      checkCompiles("codes", quantiseSource(c), fp8 ? 89 : 75);
    }
}

class CompileAttention : public testing::TestWithParam<int> {};

TEST_P(CompileAttention, EveryArch) {
  AttentionCase c(attentionTunings()[GetParam()]);
  c.d = c.dv = c.tuning->maxD;
  c.right = 0;
  checkCompiles("causal", attentionSource(c), c.tuning->arch);
  // All that takes registers.
  c.mask = "additive";
  c.maskedRow = "uniform";
  c.softcap = 30;
  c.left = 100;
  if (c.tuning->arch >= 80 && c.type == &f16)
    c.type = &bf16;
  checkCompiles("all", attentionSource(c), c.tuning->arch);
}
INSTANTIATE_TEST_SUITE_P(Compile, CompileAttention,
                         testing::Range(0, int(attentionTunings().size())),
                         [](const auto &info) {
                           return std::string(
                               attentionTunings()[info.param].name);
                         });

TEST(CompileDecode, EveryArch) {
  for (int d : {64, 128, 256}) {
    AttentionCase c;
    c.d = c.dv = d;
    c.rows = d == 256 ? 2 : 8;
    c.split = 256;
    c.right = 0;
    checkCompiles("decode", attentionSource(c), 75);
  }
}

TEST(CompileGemv, EveryArch) {
  for (const GemvTuning &t : gemvTunings())
    for (int block : {0, 32}) {
      GemvCase c;
      c.tuning = t;
      c.block = block;
      c.epilogue = true;
      checkCompiles(std::string(t.name) + (block ? " int4" : " plain"),
                    gemvSource(c), 75);
      c.rows = 4;
      checkCompiles(std::string(t.name) + (block ? " int4" : " plain"),
                    gemvSource(c), 75);
    }
}

} // namespace
