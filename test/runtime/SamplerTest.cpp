//===- SamplerTest.cpp - choosing tokens ---------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/Sampler.h"

#include "gtest/gtest.h"
#include <array>
#include <cmath>
#include <map>

using namespace tenon::rt;

namespace {

const std::vector<float> logits = {1.0f, 3.0f, 2.0f, 3.0f, -INFINITY};

TEST(Sampler, GreedyTakesTheFirstOfEquals) {
  Sampler sampler({});
  EXPECT_EQ(*sampler.choose(logits, {}), 1u);
  EXPECT_EQ(*sampler.choose(std::vector<float>{-5.0f}, {}), 0u);
}

/// How often each token is drawn in 20000 draws.
std::map<uint32_t, double> shares(SamplingOptions options,
                                  std::span<const uint32_t> previous = {}) {
  options.seed = 3;
  Sampler sampler(options);
  std::map<uint32_t, double> counts;
  for (int i = 0; i < 20000; ++i)
    counts[*sampler.choose(logits, previous)] += 1.0 / 20000;
  return counts;
}

TEST(Sampler, DrawsInProportion) {
  SamplingOptions options;
  options.temperature = 2;
  auto found = shares(options);
  double total = std::exp(0.5) + 2 * std::exp(1.5) + std::exp(1.0);
  // Three standard deviations of a share are at most 0.011.
  EXPECT_NEAR(found[0], std::exp(0.5) / total, 0.011);
  EXPECT_NEAR(found[1], std::exp(1.5) / total, 0.011);
  EXPECT_NEAR(found[2], std::exp(1.0) / total, 0.011);
  EXPECT_NEAR(found[3], std::exp(1.5) / total, 0.011);
  EXPECT_EQ(found.count(4), 0u);
}

TEST(Sampler, TopKTopPMinP) {
  SamplingOptions options;
  options.temperature = 1;
  options.topK = 2;
  auto found = shares(options);
  EXPECT_EQ(found.size(), 2u);
  EXPECT_NEAR(found[1], 0.5, 0.011);

  options.topK = 0;
  options.topP = 0.5f; // the first has 0.4, the first two 0.8
  EXPECT_EQ(shares(options).size(), 2u);
  options.topP = 0.3f;
  EXPECT_EQ(shares(options).size(), 1u);

  options.topP = 1;
  options.minP = 0.3f; // token 2 has exp(-1) = 0.37 of the best, token 0 0.14
  found = shares(options);
  EXPECT_EQ(found.size(), 3u);
  EXPECT_EQ(found.count(0), 0u);
}

TEST(Sampler, PenaltyMakesTokensLessProbable) {
  SamplingOptions options;
  options.repetitionPenalty = 2;
  std::array<uint32_t, 4> previous = {1, 1, 3, 9};
  Sampler sampler(options);
  // 3 / 2 for both, whatever the number of occurrences; token 2 stays at 2.
  EXPECT_EQ(*sampler.choose(logits, previous), 2u);
  // A negative logit moves away from zero.
  EXPECT_EQ(*sampler.choose(std::vector<float>{-1.0f, -1.5f},
                            std::array<uint32_t, 1>{0}),
            1u);
}

TEST(Sampler, SeedsRepeat) {
  SamplingOptions options;
  options.temperature = 1;
  auto draw = [&](uint64_t seed) {
    options.seed = seed;
    Sampler sampler(options);
    std::vector<uint32_t> out;
    for (int i = 0; i < 50; ++i)
      out.push_back(*sampler.choose(logits, {}));
    return out;
  };
  EXPECT_EQ(draw(1), draw(1));
  EXPECT_NE(draw(1), draw(2));
}

TEST(Sampler, SaysWhatIsWrong) {
  Sampler sampler({});
  auto bad = sampler.choose(std::vector<float>{0.0f, NAN}, {});
  ASSERT_FALSE(bad.ok());
  EXPECT_NE(bad.message().find("logit of token 1 is NaN"), std::string::npos);
  EXPECT_FALSE(sampler.choose(std::vector<float>(3, -INFINITY), {}).ok());
  SamplingOptions options;
  options.topP = 1.5f;
  EXPECT_NE(checkSampling(options).message().find("--top-p"),
            std::string::npos);
}

TEST(Sampler, MostProbable) {
  auto best = Sampler::mostProbable(logits, 3);
  ASSERT_EQ(best.size(), 3u);
  EXPECT_EQ(best[0].token, 1u);
  EXPECT_EQ(best[1].token, 3u);
  double total = std::exp(-2.0) + 2 + std::exp(-1.0);
  EXPECT_NEAR(best[0].probability, 1 / total, 1e-6);
  EXPECT_TRUE(Sampler::mostProbable({}, 5).empty());
}

} // namespace
