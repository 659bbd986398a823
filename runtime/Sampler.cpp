//===- Sampler.cpp - chooses the next token ------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/Sampler.h"

#include <algorithm>
#include <cmath>

namespace tenon::rt {

Status checkSampling(const SamplingOptions &options) {
  auto check = [](float value, const char *flag, float low, float high) {
    return value >= low && value <= high
               ? Status()
               : TN_ERROR("%s: found %g, expected a number from %g to %g", flag,
                          double(value), double(low), double(high));
  };
  Status all[] = {
      check(options.temperature, "--temperature", 0, 100),
      check(options.topP, "--top-p", 0, 1),
      check(options.minP, "--min-p", 0, 1),
      check(options.repetitionPenalty, "--repetition-penalty", 0.01f, 100)};
  for (Status &status : all)
    if (!status.ok())
      return status;
  return {};
}

Result<uint32_t> Sampler::choose(std::span<const float> logits,
                                 std::span<const uint32_t> previous) {
  scored.resize(logits.size());
  bool any = false;
  for (uint32_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i]))
      return TN_ERROR("the logit of token %u is NaN: the model's weights or "
                      "its inputs are damaged, or it overflows",
                      i);
    any |= logits[i] > -INFINITY;
    scored[i] = {logits[i], i};
  }
  if (!any)
    return TN_ERROR("all logits are -inf: no token is possible");
  penalize(previous);
  if (options.temperature == 0)
    return std::min_element(scored.begin(), scored.end(), better)->token;
  for (Scored &candidate : scored)
    candidate.logit /= options.temperature;
  keepTopK();
  keepProbable();
  double total = 0;
  for (double weight : weights)
    total += weight;
  double at = uniform() * total;
  for (size_t i = 0; i + 1 < scored.size(); ++i) {
    if (at < weights[i])
      return scored[i].token;
    at -= weights[i];
  }
  return scored.back().token;
}

/// Keskar et al. 2019 (CTRL): a positive logit is divided, a negative one
/// multiplied, once however often the token occurred.
void Sampler::penalize(std::span<const uint32_t> previous) {
  if (options.repetitionPenalty == 1)
    return;
  seen.assign(scored.size(), 0);
  for (uint32_t token : previous) {
    if (token >= scored.size() || seen[token])
      continue;
    seen[token] = 1;
    float &logit = scored[token].logit;
    logit = logit > 0 ? logit / options.repetitionPenalty
                      : logit * options.repetitionPenalty;
  }
}

/// Sorts the candidates, best first, down to the k best.
void Sampler::keepTopK() {
  size_t count = options.topK ? std::min<size_t>(options.topK, scored.size())
                              : scored.size();
  std::partial_sort(scored.begin(), scored.begin() + ptrdiff_t(count),
                    scored.end(), better);
  scored.resize(count);
}

/// Leaves the candidates that top-p and min-p allow, with their weights.
void Sampler::keepProbable() {
  weights.resize(scored.size());
  double best = scored[0].logit, total = 0;
  for (size_t i = 0; i < scored.size(); ++i) {
    // An infinite logit is certain.
    weights[i] = scored[i].logit == scored[0].logit
                     ? 1
                     : std::exp(double(scored[i].logit) - best);
    total += weights[i];
  }
  size_t count = 1;
  double sum = weights[0];
  while (count < scored.size() && sum < double(options.topP) * total)
    sum += weights[count++];
  while (count > 1 && weights[count - 1] < double(options.minP))
    --count;
  scored.resize(count);
  weights.resize(count);
}

/// SplitMix64, as a number in [0, 1).
double Sampler::uniform() {
  uint64_t z = state += 0x9e3779b97f4a7c15ull;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return double((z ^ z >> 31) >> 11) * 0x1p-53;
}

std::vector<Candidate> Sampler::mostProbable(std::span<const float> logits,
                                             size_t count) {
  std::vector<Scored> order;
  for (uint32_t i = 0; i < logits.size(); ++i)
    if (!std::isnan(logits[i]))
      order.push_back({logits[i], i});
  count = std::min(count, order.size());
  std::partial_sort(order.begin(), order.begin() + ptrdiff_t(count),
                    order.end(), better);
  std::vector<Candidate> out;
  if (count == 0)
    return out;
  double total = 0;
  for (const Scored &one : order)
    total += std::exp(double(one.logit) - double(order[0].logit));
  for (size_t i = 0; i < count; ++i)
    out.push_back({order[i].token, float(std::exp(double(order[i].logit) -
                                                  double(order[0].logit)) /
                                         total)});
  return out;
}

} // namespace tenon::rt
