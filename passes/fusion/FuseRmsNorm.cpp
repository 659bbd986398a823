//===- FuseRmsNorm.cpp - RMS norm from its parts -------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

///
/// \file
/// The law, over the last dimensions:
///
///   x / sqrt(mean(x^2) + epsilon)   -> rms_norm(x)
///   rms_norm(x) * gamma             -> rms_norm(x, gamma)
///
/// with the square as a product or a power and the root below a division, or as
/// a factor. Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019.
/// Not matched: an epsilon outside of the root, means over other dimensions.

#include "passes/Pass.h"
#include "passes/fusion/NormRules.h"

using namespace tenon;
using namespace tenon::ir;

namespace {

struct Core final : Rule {
  Value *x = nullptr;
  Op *mean = nullptr;
  double epsilon = 0;

  llvm::StringRef name() const override { return "fuse-rms-norm"; }
  unsigned candidateAfter() const override { return 4; }

  Pattern pattern() override {
    return passes::dividedByRoot(
        m_Val(x), m_Bind(mean, m_ReduceMean(passes::squareOf(x))), epsilon);
  }

  std::optional<std::string> legality(const Match &) override {
    return passes::notTrailing(*mean);
  }

  Value *rewrite(const Match &match, Rewriter &rewriter) override {
    NormAttrs attrs;
    attrs.axis = mean->attrs<ReduceAttrs>().axes.front();
    attrs.epsilon = epsilon;
    return rewriter.at(match).buildRmsNorm({x, nullptr}, attrs);
  }
};

struct Gamma final : Rule {
  Op *norm = nullptr;
  Value *gamma = nullptr;

  llvm::StringRef name() const override { return "fuse-rms-norm"; }

  Pattern pattern() override {
    return m_Mul(m_Bind(norm, m_RmsNorm(m_Any())), m_Val(gamma));
  }

  std::optional<std::string> legality(const Match &) override {
    if (!passes::isNormParameter(gamma, *norm))
      return "gamma does not have the normalised dimensions";
    return std::nullopt;
  }

  Value *rewrite(const Match &match, Rewriter &rewriter) override {
    Builder builder = rewriter.at(match);
    return builder.buildRmsNorm(
        {norm->operand(0), passes::asNormParameter(gamma, *norm, builder)},
        norm->attrs<NormAttrs>());
  }
};

struct FuseRmsNorm final : passes::RulePass {
  FuseRmsNorm() {
    add<Core>();
    add<Gamma>();
  }
};

} // namespace

std::unique_ptr<passes::Pass> passes::createFuseRmsNorm() {
  return std::make_unique<FuseRmsNorm>();
}
