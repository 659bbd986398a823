//===- mutation_test.cpp - planted faults are found -----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Each fault of mutations.def is put into its header, and its case run on the
/// emulator. It must be found: by a checker, by wrong numbers, or by bank
/// conflicts where there were none. TN_MUTATIONS=N takes every N-th only.
///
//===----------------------------------------------------------------------===//

#include "cases.h"
#include "counters.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>

using namespace test;

namespace {

struct Mutation {
  const char *name, *inCase, *file, *from, *to;
};

const Mutation mutations[] = {
#define TN_MUTATION(NAME, CASE, FILE, FROM, TO) {#NAME, #CASE, FILE, FROM, TO},
#include "mutations.def"
};

GemmCase gemmCase(const char *tuning, const Element &type) {
  GemmCase c;
  c.tuning = gemmTuning(tuning);
  c.in = c.out = &type;
  c.m = 70;
  c.n = 72;
  // Five blocks of k: the last is where the first was.
  c.k = 304;
  c.epilogue = true;
  return c;
}

/// The cases are small: they are run for every fault.
std::string runCase(const std::string &name, const Headers &headers) {
  GemmCase g = gemmCase("half_64x64", f16);
  if (name == "gemm")
    return runGemm(g, headers);
  if (name == "bulk") {
    g.bulk = &bulkTunings().back();
    g.k = 64 * (g.bulk->stages + 2);
    return runGemm(g, headers);
  }
  if (name == "nk") {
    g.nk = true;
    return runGemm(g, headers);
  }
  if (name == "odd" || name == "odd4") {
    // Rows that begin on multiples of 2, of 4 bytes.
    g.n = name == "odd" ? 71 : 74;
    g.k = name == "odd" ? 77 : 78;
    return runGemm(g, headers);
  }
  if (name == "gap") {
    g.gapC = 3;
    return runGemm(g, headers);
  }
  if (name == "stream") {
    g.stream = true;
    g.blocks = 5;
    g.repeat = 2;
    return runGemm(g, headers);
  }
  if (name == "turing")
    return runGemm(gemmCase("turing_64x64", f16), headers);
  if (name == "tf32" || name == "tf32x3" || name == "fma") {
    GemmCase s = gemmCase((name + "_64x64").c_str(), f32);
    s.k = 100;
    return runGemm(s, headers);
  }
  if (name == "patches" || name == "windows") {
    ConvCase c;
    c.tuning = gemmTuning("half_64x64");
    c.channels = name == "patches" ? 5 : 30;
    c.filters = 70;
    c.height = 24;
    c.width = 31;
    c.kernelHeight = name == "patches" ? 8 : 2;
    c.kernelWidth = name == "patches" ? 8 : 3;
    c.stride = name == "patches" ? 4 : 2;
    c.pad = 3;
    return runConv(c, headers);
  }
  if (name == "codes" || name == "codes8") {
    QuantiseCase q;
    q.fp8 = name == "codes8";
    q.perWarp = false;
    q.rows = 9;
    // Two words of a row are filled up.
    q.n = 293;
    return runQuantise(q, headers);
  }
  if (name == "gemv" || name == "gemv_rows" || name == "int4" ||
      name == "normed" || name == "normed_codes" || name == "pair") {
    GemvCase v;
    v.tuning = gemvTuning("narrow");
    v.n = 37;
    v.k = name == "normed" || name == "normed_codes" ? 1037 : 1040;
    v.block = name == "int4" || name == "normed_codes" ? 32 : 0;
    v.pair = name == "pair";
    v.rows = name == "gemv_rows" ? 4 : 1;
    v.m = name == "gemv_rows" ? 7 : 1;
    if (name == "normed" || name == "normed_codes") {
      v.type = &f32;
      v.norm = "layer";
      // With gamma what is beyond a row's end would be 0 all the same.
      v.affine = name == "normed";
    }
    return runGemv(v, headers);
  }
  if (name == "tiled_codes") {
    GemvCase v;
    v.tuning = gemvTuning("narrow");
    v.tile = &gemmTuning("half_64x64");
    v.m = 70;
    v.n = 77;
    v.k = 309;
    v.block = 32;
    return runGemv(v, headers);
  }
  if (name == "rotary") {
    RotaryCase r;
    r.half = 6;
    return runRotary(r, headers);
  }
  bool single = name == "single" || name == "single_masked";
  AttentionCase a(attentionTuning(single ? "single_d128_64x32" : "d128_64x64"));
  if (name == "decode")
    a.tuning = nullptr;
  a.heads = 4;
  a.kvHeads = 2;
  a.queries = name == "decode" ? 3 : 70;
  a.keys = 150;
  bool masked = name == "masked" || name == "single_masked";
  if (!masked)
    a.right = 0;
  if (masked || name == "uniform") {
    a.mask = masked ? "additive" : "boolean";
    a.maskedRow = masked ? "zero" : "uniform";
    a.hideEvery = 4;
  }
  return runAttention(a, headers);
}

/// What a case gives, bank conflicts of its matrix loads included.
std::string findFault(const std::string &name, const Headers &headers) {
  Device::get()->takeCounters();
  std::string error = runCase(name, headers);
  std::string counters = Device::get()->takeCounters();
  int64_t conflicts = accessesOf(counters, "ldmatrix").conflicts() +
                      accessesOf(counters, "ld.shared.u32").conflicts() +
                      accessesOf(counters, "ld.shared.v4").conflicts();
  if (error.empty() && conflicts)
    return std::to_string(conflicts) + " bank conflicts";
  return error;
}

bool canRun(std::string &reason) {
  reason = nvrtcMissing();
  if (reason.empty() && !Device::get())
    reason = Device::missing();
  if (reason.empty() && !Device::get()->isEmulated())
    reason = "planted faults are for the emulator";
  return reason.empty();
}

class Planted : public testing::TestWithParam<int> {};

TEST_P(Planted, IsFound) {
  std::string reason;
  if (!canRun(reason))
    GTEST_SKIP() << reason;
  const char *every = getenv("TN_MUTATIONS");
  if (every && GetParam() % atoi(every) != 0)
    GTEST_SKIP() << "one of those left out by TN_MUTATIONS";
  const Mutation &m = mutations[GetParam()];
  Headers headers = kernelHeaders();
  auto path = std::filesystem::path("kernels/cuda") / m.file;
  std::string &text = headers[path.lexically_normal().string()];
  size_t at = text.find(m.from);
  ASSERT_NE(at, std::string::npos) << m.file << " has no longer: " << m.from;
  ASSERT_EQ(text.find(m.from, at + 1), std::string::npos)
      << m.file << " has more than one: " << m.from;
  text.replace(at, strlen(m.from), m.to);
  std::string found = findFault(m.inCase, headers);
  EXPECT_NE(found, "") << "nobody saw it";
  EXPECT_EQ(found.find("does not compile"), std::string::npos) << found;
  printf("  %s\n", found.substr(0, 300).c_str());
}
INSTANTIATE_TEST_SUITE_P(Faults, Planted,
                         testing::Range(0, int(std::size(mutations))),
                         [](const auto &info) {
                           return std::string(mutations[info.param].name);
                         });

/// Without a fault there is nothing to find.
TEST(Faults, NoneWithoutMutation) {
  std::string reason;
  if (!canRun(reason))
    GTEST_SKIP() << reason;
  for (const char *name :
       {"gemm",      "nk",     "odd",     "odd4",         "gap",
        "stream",    "turing", "tf32",    "tf32x3",       "fma",
        "flash",     "masked", "uniform", "decode",       "gemv",
        "gemv_rows", "int4",   "normed",  "normed_codes", "pair",
        "rotary",    "bulk",   "single",  "single_masked"})
    EXPECT_EQ(findFault(name, kernelHeaders()), "") << name;
}

} // namespace
