//===- FuseGelu.cpp - GELU and its kin from their parts ------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

///
/// \file
/// The laws, with every order of factors and summands:
///
///   x * 1/2 * (1 + erf(x / sqrt 2))                               -> gelu_erf
///   x * 1/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x^3)))       -> gelu_tanh
///   x * sigmoid(alpha * x)                                        ->
///   quick_gelu
///
/// Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016. Not matched: the
/// same shapes with other constants, which are other functions.

#include "ir/match/Rewriter.h"
#include "passes/Pass.h"

using namespace tenon;
using namespace tenon::ir;

namespace {

/// a * b * c however it is grouped.
Pattern product(Pattern a, Pattern b, Pattern c) {
  return m_AnyOf(m_Mul(m_Mul(a, b), c), m_Mul(m_Mul(a, c), b),
                 m_Mul(m_Mul(b, c), a));
}

struct GeluErf final : Rule {
  Value *x = nullptr;

  llvm::StringRef name() const override { return "fuse-gelu"; }

  Pattern pattern() override {
    Pattern scaled = m_AnyOf(m_Div(m_Val(x), m_Splat(1.4142135623730951)),
                             m_Mul(m_Val(x), m_Splat(0.7071067811865476)));
    return product(m_Val(x), m_Splat(0.5), m_Add(m_Erf(scaled), m_Splat(1)));
  }

  Value *rewrite(const Match &match, Rewriter &rewriter) override {
    return rewriter.at(match).buildGeluErf({x});
  }
};

struct GeluTanh final : Rule {
  Value *x = nullptr;

  llvm::StringRef name() const override { return "fuse-gelu"; }

  Pattern pattern() override {
    Pattern cube = m_AnyOf(m_Pow(m_Val(x), m_Splat(3)),
                           m_Mul(m_Mul(m_Val(x), m_Val(x)), m_Val(x)));
    Pattern polynomial = m_Add(m_Val(x), m_Mul(cube, m_Splat(0.044715)));
    Pattern gate = m_Add(m_Tanh(m_Mul(polynomial, m_Splat(0.7978845608028654))),
                         m_Splat(1));
    return product(m_Val(x), m_Splat(0.5), gate);
  }

  Value *rewrite(const Match &match, Rewriter &rewriter) override {
    return rewriter.at(match).buildGeluTanh({x});
  }
};

struct QuickGelu final : Rule {
  Value *x = nullptr;
  double alpha = 1;
  Op *scale = nullptr;

  llvm::StringRef name() const override { return "fuse-gelu"; }

  Pattern pattern() override {
    Pattern scaled = m_Bind(scale, m_Mul(m_Val(x), m_AnySplat(alpha)));
    return m_Mul(m_Val(x), m_Sigmoid(m_AnyOf(scaled, m_Val(x))));
  }

  Value *rewrite(const Match &match, Rewriter &rewriter) override {
    AlphaAttrs attrs;
    attrs.alpha = scale ? alpha : 1.0;
    return rewriter.at(match).buildQuickGelu({x}, attrs);
  }
};

struct FuseGelu final : passes::RulePass {
  FuseGelu() {
    add<GeluErf>();
    add<GeluTanh>();
    add<QuickGelu>();
  }
};

} // namespace

std::unique_ptr<passes::Pass> passes::createFuseGelu() {
  return std::make_unique<FuseGelu>();
}
