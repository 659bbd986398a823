//===- AttentionScores.cpp - what stands between q k^T and the softmax ---===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/fusion/AttentionScores.h"
#include "ir/match/Rewriter.h"
#include <cmath>

using namespace tenon;
using namespace tenon::ir;
using passes::AttentionScores;

namespace {

/// Scores this low lose against any other by all of f32's precision, so that
/// putting them in place of a score hides the key.
constexpr double hidden = -1e9;
/// As f32 has it, a key with this in place of its score has a weight of 0
/// unless every score of its row is below -9896: GPT-2 was exported so for
/// years.
constexpr double replacedHidden = -1e4;

/// The same added to scores of f64, which keep more of what it is added to.
constexpr double hiddenInDouble = -1e18;

/// Whether a score to which \p fill of \p mask's type is added is lost in it.
bool hides(double fill, const Value &mask) {
  return fill <= (mask.element() == ElementType::F64 ? hiddenInDouble : hidden);
}

std::optional<double> splatOf(Value *value) {
  if (Op *op = value->def(OpKind::Const))
    return op->attrs<ConstAttrs>().value->splatValue();
  return std::nullopt;
}

/// A scalar: of one element, so that multiplying by it keeps the shape.
std::optional<double> scalarOf(Value *value) {
  for (Dim dim : value->shape())
    if (!dim.isConstant(1))
      return std::nullopt;
  return splatOf(value);
}

class Reader {
public:
  Reader(AttentionScores &scores, std::string &reason)
      : scores(scores), reason(reason) {}

  /// Walks from the softmax's operand to the product; false with a reason.
  bool read(Value *value) {
    for (unsigned steps = 0; steps < 16; ++steps) {
      Op *op = value->def();
      if (!op)
        return fail("the scores are no product of queries and keys");
      if (op->kind() == OpKind::MatMul)
        return readProduct(*op);
      value = step(*op);
      if (!value)
        return false;
    }
    return fail("too many ops between the product and the softmax");
  }

private:
  AttentionScores &scores;
  std::string &reason;
  /// The factor of everything below the current value.
  double factor = 1;

  bool fail(std::string why) {
    reason = std::move(why);
    return false;
  }
  Value *stop(std::string why) {
    reason = std::move(why);
    return nullptr;
  }

  /// Peels \p op; returns the operand that leads on to the product.
  Value *step(Op &op) {
    switch (op.kind()) {
    case OpKind::Add:
      return peelMask(op);
    case OpKind::Sub:
      return stop("something is subtracted from the scores");
    case OpKind::Mul:
    case OpKind::Div:
      return peelFactor(op);
    case OpKind::Where:
      return peelWhere(op);
    case OpKind::Tanh:
      return peelSoftcap(op);
    default:
      return stop("the scores come from " + describe(op));
    }
  }

  Value *peelFactor(Op &op) {
    for (unsigned i : {1u, 0u}) {
      std::optional<double> c = scalarOf(op.operand(i));
      if (!c || (op.kind() == OpKind::Div && i == 0))
        continue;
      factor = op.kind() == OpKind::Mul ? factor * *c : factor / *c;
      return op.operand(1 - i);
    }
    return stop("the scores are scaled by a tensor at " + describe(op));
  }

  /// Whether \p value leads to a product through ops that `step` knows.
  static bool leadsToProduct(Value *value, unsigned depth = 0) {
    Op *op = value->def();
    if (!op || depth > 8)
      return false;
    switch (op->kind()) {
    case OpKind::MatMul:
      return value->rank() >= 3;
    case OpKind::Add:
    case OpKind::Mul:
    case OpKind::Div:
      return leadsToProduct(op->operand(0), depth + 1) ||
             leadsToProduct(op->operand(1), depth + 1);
    case OpKind::Where:
      return leadsToProduct(op->operand(1), depth + 1) ||
             leadsToProduct(op->operand(2), depth + 1);
    case OpKind::Tanh:
      return leadsToProduct(op->operand(0), depth + 1);
    default:
      return false;
    }
  }

  bool belowSoftcap() { return scores.softcap != 0; }

  Value *peelMask(Op &op) {
    unsigned main = leadsToProduct(op.operand(0)) ? 0 : 1;
    if (factor != 1)
      return stop("the mask at " + describe(op) + " is scaled with the scores");
    if (belowSoftcap())
      return stop("the mask at " + describe(op) + " is inside of the softcap");
    addMask(op.operand(1 - main));
    return op.operand(main);
  }

  /// An additive mask `where(c, 0, fill)` is the condition c.
  void addMask(Value *mask) {
    if (Op *where = mask->def(OpKind::Where)) {
      std::optional<double> yes = splatOf(where->operand(1)),
                            no = splatOf(where->operand(2));
      if (yes && no) {
        if (*yes == 0 && hides(*no, *mask))
          return addCondition(where->operand(0), false, *no);
        if (*no == 0 && hides(*yes, *mask))
          return addCondition(where->operand(0), true, *yes);
      }
    }
    scores.additive.push_back(mask);
  }

  void addCondition(Value *condition, bool negated, double fill) {
    scores.conditions.push_back({condition, negated});
    // In f32 the lowest finite value is as good as any: only -inf differs.
    scores.infiniteFill |= std::isinf(fill);
  }

  Value *peelWhere(Op &op) {
    for (unsigned i : {2u, 1u}) {
      std::optional<double> fill = splatOf(op.operand(i));
      if (!fill)
        continue;
      if (*fill > replacedHidden)
        return stop("the mask at " + describe(op) +
                    " puts a value in place of scores that does not hide them");
      if (belowSoftcap() || factor <= 0)
        return stop("the mask at " + describe(op) + " is changed after it");
      addCondition(op.operand(0), i == 1, *fill);
      return op.operand(3 - i);
    }
    return stop("the mask at " + describe(op) + " has no constant fill");
  }

  Value *peelSoftcap(Op &op) {
    if (belowSoftcap())
      return stop("two softcaps");
    scores.softcap = factor;
    factor = 1;
    return op.operand(0);
  }

  bool readProduct(Op &product) {
    if (product.region())
      return fail("the product of queries and keys has an epilogue");
    scores.product = &product;
    scores.query = withoutFactor(product.operand(0));
    scores.keyTransposed = withoutFactor(product.operand(1));
    scores.scale = belowSoftcap() ? factor * scores.softcap : factor;
    return true;
  }

  /// Takes scalar factors of an operand into the scale.
  Value *withoutFactor(Value *value) {
    while (Op *op = value->def()) {
      if (op->kind() != OpKind::Mul && op->kind() != OpKind::Div)
        return value;
      Value *next = peelFactor(*op);
      if (!next)
        return value;
      value = next;
    }
    return value;
  }
};

} // namespace

std::optional<AttentionScores>
passes::readAttentionScores(const Op &softmax, std::string &reason) {
  AttentionScores scores;
  if (!Reader(scores, reason).read(softmax.operand(0)))
    return std::nullopt;
  return scores;
}
