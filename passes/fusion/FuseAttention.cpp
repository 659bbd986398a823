//===- FuseAttention.cpp - attention from its parts ----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

///
/// \file
/// The law, for q[B, H, Sq, D], k[B, H, Skv, D], v[B, H, Skv, Dv]:
///
///   scores = scale * (q k^T)  [softcap]  [+ masks | where(visible, ., -big)]
///   softmax(scores) v                                    -> attention(q, k, v)
///
/// with scalar factors anywhere in front of the softmax, a guard that turns the
/// NaN of fully masked rows into 0, rank 3 for one head, and heads of k and v
/// that are repeated (grouped-query attention). Vaswani et al., "Attention Is
/// All You Need", 2017.
///
/// Masks that are conditions stay boolean; of these, causal ones and sliding
/// windows are recognised by their index arithmetic and become attributes, also
/// of attention that was one op from the start.
/// What a fully masked row gives is kept: the mean of the values where the fill
/// is finite, NaN where it is -inf, 0 behind a guard.
///
/// Not matched: a softmax over another dimension, scores or probabilities that
/// are used elsewhere, masks that are scaled after they were added.

#include "passes/Pass.h"
#include "passes/fusion/AttentionMasks.h"
#include "passes/fusion/AttentionScores.h"
#include <cmath>

using namespace tenon;
using namespace tenon::ir;
using passes::AttentionScores;
using passes::Visibility;

namespace {

/// \p scale, as 1 / sqrt(D) if it is one of its spellings in f32: the root of
/// it squared, the product of halves. So every exporter's attention is the
/// same.
double usualScale(double scale, Dim headSize) {
  std::optional<int64_t> size = headSize.constant();
  if (!size || *size <= 0)
    return scale;
  double usual = 1 / std::sqrt(static_cast<double>(*size));
  return std::abs(scale - usual) <= 1e-6 * usual ? usual : scale;
}

/// What \p x repeats along its heads, perhaps under a transpose, which \p perm
/// (what makes [B, S, H, D] of x) then takes in; of rank 5, with a 1 behind the
/// heads. Null when it repeats nothing.
Value *beforeRepeat(Value *x, Ints &perm) {
  Ints composed = perm;
  if (Op *transpose = x->def(OpKind::Transpose)) {
    if (x->rank() != perm.size())
      return nullptr;
    for (int64_t &p : composed)
      p = transpose->attrs<TransposeAttrs>().perm[p];
    x = transpose->operand(0);
  }
  Value *y = passes::beforeRepeatedHeads(x, composed[2]);
  if (y)
    perm = composed;
  return y;
}

/// Goes back to what both keys and values repeat along their heads, if both do,
/// and alike.
bool useHeadsOnce(Value *&keys, Ints &keyPerm, Value *&values,
                  Ints &valuePerm) {
  Ints kp = keyPerm, vp = valuePerm;
  Value *k = beforeRepeat(keys, kp), *v = beforeRepeat(values, vp);
  if (!k || !v || k->shape()[kp[2]] != v->shape()[vp[2]])
    return false;
  keys = k, values = v;
  keyPerm = kp, valuePerm = vp;
  return true;
}

/// \p x, or if it has the 1 of beforeRepeat(), \p x without.
Value *withoutOne(Value *x, const Ints &perm, Builder &builder) {
  if (x->rank() != perm.size() + 1)
    return x;
  ShapeAttrs attrs;
  attrs.shape.assign(x->shape().begin(), x->shape().end());
  attrs.shape.erase(attrs.shape.begin() + perm[2] + 1);
  return builder.buildReshape({x}, attrs);
}

class FuseAttentionRule final : public Rule {
public:
  explicit FuseAttentionRule(Module &module) : module(module) {}

  llvm::StringRef name() const override { return "fuse-attention"; }

  Pattern pattern() override {
    Pattern normalised = m_Bind(softmax, m_Softmax(m_Any()));
    Pattern guarded =
        m_Bind(guard, m_Where(m_IsNan(normalised), m_Splat(0.0), normalised));
    return m_MatMul(m_AnyOf(guarded, normalised), m_Val(value));
  }

  std::optional<std::string> legality(const Match &match) override {
    if (softmax->attrs<AxisAttrs>().axis + 1 != softmax->result()->rank())
      return "the softmax is not over the last dimension";
    std::string reason;
    std::optional<AttentionScores> read =
        passes::readAttentionScores(*softmax, reason);
    if (!read)
      return reason;
    scores = std::move(*read);
    return wrongShapes();
  }

  Value *rewrite(const Match &match, Rewriter &rewriter) override {
    Location loc = Rewriter::mergedLocation(match.ops);
    loc.merge(scores.product->loc);
    Builder builder = rewriter.at(match);
    builder.loc = loc;
    AttentionAttrs attrs;
    attrs.scale = usualScale(scores.scale, scores.query->shape().back());
    attrs.softcap = scores.softcap;
    Value *mask = buildMask(builder, attrs);
    Value *q = toRows(scores.query, {0, 2, 1, 3}, builder);
    Value *keys = scores.keyTransposed, *values = value;
    Ints keyPerm = {0, 3, 1, 2}, valuePerm = {0, 2, 1, 3};
    if (useHeadsOnce(keys, keyPerm, values, valuePerm)) {
      keys = withoutOne(keys, keyPerm, builder);
      values = withoutOne(values, valuePerm, builder);
    }
    Value *k = toRows(keys, keyPerm, builder);
    Value *v = toRows(values, valuePerm, builder);
    Value *y = builder.buildAttention({q, k, v, mask}, attrs);
    return fromRows(y, *match.root, builder);
  }

private:
  Module &module;
  Value *value = nullptr;
  Op *softmax = nullptr, *guard = nullptr;
  AttentionScores scores;

  std::optional<std::string> wrongShapes() const {
    unsigned rank = softmax->result()->rank();
    if (rank != 3 && rank != 4)
      return "the scores have rank " + std::to_string(rank) +
             ", expected 3 or 4";
    ShapeRef batch = softmax->result()->shape().drop_back(2);
    for (Value *operand : {scores.query, scores.keyTransposed, value})
      if (operand->rank() != rank || operand->shape().drop_back(2) != batch)
        return "queries, keys and values have different batch dimensions";
    if (softmax->result()->element() != ElementType::F32 &&
        !isFloat(softmax->result()->element()))
      return "the scores are not of a floating-point type";
    return std::nullopt;
  }

  /// [B, H, S, D] (in the order that \p perm undoes) as [B, S, H, D]; one head
  /// where the rank is 3.
  Value *toRows(Value *x, Ints perm, Builder &builder) {
    if (x->rank() == 3) {
      Shape shape = x->type.shape;
      shape.insert(shape.begin() + 1, Dim(1));
      x = reshape(x, shape, builder);
    }
    TransposeAttrs attrs;
    attrs.perm = std::move(perm);
    return builder.buildTranspose({x}, attrs);
  }

  Value *fromRows(Value *y, const Op &root, Builder &builder) {
    TransposeAttrs attrs;
    attrs.perm = {0, 2, 1, 3};
    Value *heads = builder.buildTranspose({y}, attrs);
    return reshape(heads, root.result()->type.shape, builder);
  }

  static Value *reshape(Value *x, ShapeRef shape, Builder &builder) {
    if (x->shape() == shape)
      return x;
    ShapeAttrs attrs;
    attrs.shape.assign(shape.begin(), shape.end());
    return builder.buildReshape({x}, attrs);
  }

  /// \p mask with the rank of the scores, and of rank 4.
  Value *alignMask(Value *mask, Builder &builder) {
    Shape shape = mask->type.shape;
    unsigned rank = softmax->result()->rank();
    shape.insert(shape.begin(), rank - shape.size(), Dim(1));
    if (rank == 3)
      shape.insert(shape.begin() + 1, Dim(1));
    return reshape(mask, shape, builder);
  }

  /// All masks as one operand (or null), setting what attributes say.
  Value *buildMask(Builder &builder, AttentionAttrs &attrs) {
    Visibility visible = readConditions(builder);
    passes::setBounds(attrs, visible);
    attrs.maskedRow = maskedRow(visible);
    Value *sum = nullptr;
    for (Value *mask : scores.additive)
      sum = sum ? builder.buildAdd({sum, mask}) : mask;
    if (!sum)
      return visible.mask ? alignMask(visible.mask, builder) : nullptr;
    if (visible.mask) {
      double fill = scores.infiniteFill
                        ? -std::numeric_limits<double>::infinity()
                        : std::numeric_limits<float>::lowest();
      sum = builder.buildWhere(
          {visible.mask, sum, builder.scalar(sum->element(), fill)});
    }
    return alignMask(sum, builder);
  }

  MaskedRow maskedRow(const Visibility &visible) const {
    // What never happens is the same everywhere.
    if (visible.always() && scores.additive.empty())
      return MaskedRow::Nan;
    bool mayBeNan = scores.infiniteFill || !scores.additive.empty();
    if (!mayBeNan)
      return MaskedRow::Uniform;
    return guard ? MaskedRow::Zero : MaskedRow::Nan;
  }

  Visibility readConditions(Builder &builder) {
    Visibility visible;
    for (const AttentionScores::Condition &c : scores.conditions)
      passes::takeCondition(module,
                            c.negated ? builder.buildNot({c.value}) : c.value,
                            visible, builder);
    return visible;
  }
};

/// Attention that was imported as one op: heads that are repeated in front of
/// it, and bounds that its mask says.
class Refinement {
public:
  Refinement(Module &module, Func &func, Op &op)
      : module(module), func(func), op(op) {
    const auto &attrs = op.attrs<AttentionAttrs>();
    visible.causal = attrs.causality == Causality::Causal;
    visible.queryOffset = attrs.queryOffset;
    visible.windowLeft = attrs.windowLeft;
    keys = op.operand(1);
    values = op.operand(2);
    useHeadsOnce(keys, keyPerm, values, valuePerm);
    mask = op.operand(3);
    // A window to the right is a bound that nothing here says.
    readsMask = mask && mask->element() == ElementType::Bool &&
                attrs.windowRight < 0 &&
                passes::hasBounds(module, mask, visible);
  }

  bool isWorthIt() const {
    return readsMask || keys != op.operand(1) ||
           scale() != op.attrs<AttentionAttrs>().scale;
  }

  void apply() {
    Rewriter rewriter(module, func);
    Builder builder = rewriter.before(op);
    AttentionAttrs attrs = op.attrs<AttentionAttrs>();
    attrs.scale = scale();
    if (readsMask) {
      passes::takeCondition(module, mask, visible, builder);
      mask = visible.mask;
      passes::setBounds(attrs, visible);
      if (visible.always())
        attrs.maskedRow = MaskedRow::Nan;
    }
    auto rows = [&](Value *x, const Ints &perm) {
      x = withoutOne(x, perm, builder);
      TransposeAttrs transpose;
      transpose.perm = perm;
      return perm == identity ? x : builder.buildTranspose({x}, transpose);
    };
    rewriter.replaceOp(
        op, builder.buildAttention({op.operand(0), rows(keys, keyPerm),
                                    rows(values, valuePerm), mask},
                                   attrs));
  }

private:
  Module &module;
  Func &func;
  Op &op;
  Visibility visible;
  const Ints identity = {0, 1, 2, 3};
  Ints keyPerm = identity, valuePerm = identity;
  Value *keys, *values, *mask;
  bool readsMask;

  double scale() const {
    return usualScale(op.attrs<AttentionAttrs>().scale,
                      op.operand(0)->shape().back());
  }
};

struct FuseAttention final : passes::FuncPass {
  llvm::Expected<bool> runOnFunc(Module &module, Func &func,
                                 passes::PassContext &context) override {
    FuseAttentionRule rule(module);
    llvm::Expected<bool> changed = applyRules(module, func, {&rule}, &context);
    if (!changed)
      return changed;
    for (Op &op : llvm::make_early_inc_range(func.body)) {
      if (op.kind() != OpKind::Attention)
        continue;
      Refinement refinement(module, func, op);
      if (!refinement.isWorthIt() || !context.allow(rule.name(), op))
        continue;
      context.simplified("bounds and repeated heads become attributes", op.loc);
      refinement.apply();
      *changed = true;
    }
    return changed;
  }
};

} // namespace

std::unique_ptr<passes::Pass> passes::createFuseAttention() {
  return std::make_unique<FuseAttention>();
}
