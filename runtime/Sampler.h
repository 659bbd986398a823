//===- Sampler.h - chooses the next token --------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_SAMPLER_H
#define TENON_RUNTIME_SAMPLER_H

#include "runtime/support/Status.h"

#include <cstdint>
#include <span>
#include <vector>

namespace tenon::rt {

/// How to choose; the defaults are greedy.
struct SamplingOptions {
  float temperature = 0; ///< 0: the most probable token
  uint32_t topK = 0;     ///< of the k most probable; 0: of all
  float topP = 1;        ///< of the fewest that have probability p
  float minP = 0;        ///< of those with p times the greatest probability
  float repetitionPenalty = 1; ///< above 1: tokens that were there are unlikely
  uint64_t seed = 0;
};

/// "--top-p" and what else is out of range, or success.
Status checkSampling(const SamplingOptions &options);

/// A token and its probability.
struct Candidate {
  uint32_t token;
  float probability;
};

/// Draws tokens from logits: penalty, temperature, top-k, top-p, min-p, in that
/// order, as Hugging Face's `generate` does. The same seed and logits give the
/// same tokens everywhere.
class Sampler {
public:
  explicit Sampler(const SamplingOptions &options)
      : options(options), state(options.seed) {}

  /// `previous` are the tokens that the penalty is for. Fails where logits are
  /// NaN or no token is possible.
  Result<uint32_t> choose(std::span<const float> logits,
                          std::span<const uint32_t> previous);

  /// The `count` most probable tokens of softmax(logits), the best first.
  static std::vector<Candidate> mostProbable(std::span<const float> logits,
                                             size_t count);

private:
  struct Scored {
    float logit;
    uint32_t token;
  };
  static bool better(const Scored &a, const Scored &b) {
    return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
  }
  void penalize(std::span<const uint32_t> previous);
  void keepTopK();
  void keepProbable();
  double uniform();

  SamplingOptions options;
  uint64_t state;
  std::vector<Scored> scored;
  std::vector<double> weights;
  std::vector<uint8_t> seen;
};

} // namespace tenon::rt

#endif // TENON_RUNTIME_SAMPLER_H
