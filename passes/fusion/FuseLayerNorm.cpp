//===- FuseLayerNorm.cpp - layer norm from its parts ---------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

///
/// \file
/// The law, over the last dimensions:
///
///   d = x - mean(x)
///   d / sqrt(mean(d^2) + epsilon)              -> layer_norm(x)
///   layer_norm(x) * gamma                      -> layer_norm(x, gamma)
///   layer_norm(x, gamma) + beta                -> layer_norm(x, gamma, beta)
///
/// with the square as a product or a power and the root below a division, or as
/// a factor. Ba, Kiros and Hinton, "Layer Normalization", 2016. Not matched: an
/// epsilon outside of the root, means over other dimensions (channels first),
/// gamma or beta that are not of the normalised dimensions.

#include "passes/Pass.h"
#include "passes/fusion/NormRules.h"

using namespace tenon;
using namespace tenon::ir;

namespace {

struct Core final : Rule {
  Value *x = nullptr, *centred = nullptr;
  Op *mean = nullptr, *variance = nullptr;
  double epsilon = 0;

  llvm::StringRef name() const override { return "fuse-layer-norm"; }
  unsigned candidateAfter() const override { return 4; }

  Pattern pattern() override {
    Pattern difference =
        m_Bind(centred, m_Sub(m_Val(x), m_Bind(mean, m_ReduceMean(m_Val(x)))));
    return passes::dividedByRoot(
        difference, m_Bind(variance, m_ReduceMean(passes::squareOf(centred))),
        epsilon);
  }

  std::optional<std::string> legality(const Match &) override {
    if (auto reason = passes::notTrailing(*mean))
      return reason;
    if (!equal(mean->rawAttrs(), variance->rawAttrs()))
      return "mean and variance are over different dimensions";
    return std::nullopt;
  }

  Value *rewrite(const Match &match, Rewriter &rewriter) override {
    NormAttrs attrs;
    attrs.axis = mean->attrs<ReduceAttrs>().axes.front();
    attrs.epsilon = epsilon;
    return rewriter.at(match).buildLayerNorm({x, nullptr, nullptr}, attrs);
  }
};

/// layer_norm(x) * gamma, layer_norm(x, gamma?) + beta.
struct Affine final : Rule {
  bool isBeta;
  Op *norm = nullptr;
  Value *parameter = nullptr;

  explicit Affine(bool isBeta) : isBeta(isBeta) {}
  llvm::StringRef name() const override { return "fuse-layer-norm"; }

  Pattern pattern() override {
    if (!isBeta)
      return m_Mul(m_Bind(norm, m_LayerNorm(m_Any())), m_Val(parameter));
    return m_Add(m_Bind(norm, m_AnyOf(m_LayerNorm(m_Any()),
                                      m_LayerNorm(m_Any(), m_Any()))),
                 m_Val(parameter));
  }

  std::optional<std::string> legality(const Match &) override {
    if (!passes::isNormParameter(parameter, *norm))
      return isBeta ? "beta does not have the normalised dimensions"
                    : "gamma does not have the normalised dimensions";
    return std::nullopt;
  }

  Value *rewrite(const Match &match, Rewriter &rewriter) override {
    Builder builder = rewriter.at(match);
    Value *p = passes::asNormParameter(parameter, *norm, builder);
    return builder.buildLayerNorm(
        {norm->operand(0), isBeta ? norm->operand(1) : p, isBeta ? p : nullptr},
        norm->attrs<NormAttrs>());
  }
};

struct FuseLayerNorm final : passes::RulePass {
  FuseLayerNorm() {
    add<Core>();
    add<Affine>(false);
    add<Affine>(true);
  }
};

} // namespace

std::unique_ptr<passes::Pass> passes::createFuseLayerNorm() {
  return std::make_unique<FuseLayerNorm>();
}
