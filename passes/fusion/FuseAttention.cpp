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
/// windows are recognised by their index arithmetic and become attributes.
/// What a fully masked row gives is kept: the mean of the values where the fill
/// is finite, NaN where it is -inf, 0 behind a guard.
///
/// Not matched: a softmax over another dimension, scores or probabilities that
/// are used elsewhere, masks that are scaled after they were added.

#include "passes/Pass.h"
#include "passes/analysis/IndexExpr.h"
#include "passes/fusion/AttentionScores.h"
#include <cmath>

using namespace tenon;
using namespace tenon::ir;
using passes::AttentionScores;

namespace {

/// What the conditions of a mask come to.
struct Visibility {
  bool causal = false;
  Dim queryOffset;
  /// A boolean tensor for the rest, or null.
  Value *mask = nullptr;
};

/// \p scale, as 1 / sqrt(D) if it is one of its spellings in f32: the root of
/// it squared, the product of halves. So every exporter's attention is the same.
double usualScale(double scale, Dim headSize) {
  std::optional<int64_t> size = headSize.constant();
  if (!size || *size <= 0)
    return scale;
  double usual = 1 / std::sqrt(static_cast<double>(*size));
  return std::abs(scale - usual) <= 1e-6 * usual ? usual : scale;
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
    Ints keyPerm = {0, 3, 1, 2}, valuePerm = {0, 2, 1, 3};
    Value *keys = scores.keyTransposed, *values = value;
    useHeadsOnce(keys, keyPerm, values, valuePerm);
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

  /// Goes back to what both keys and values repeat along their heads, if both
  /// do, and alike.
  static void useHeadsOnce(Value *&keys, Ints &keyPerm, Value *&values,
                           Ints &valuePerm) {
    Ints kp = keyPerm, vp = valuePerm;
    Value *k = beforeRepeat(keys, kp), *v = beforeRepeat(values, vp);
    if (!k || !v || k->shape()[1] != v->shape()[1])
      return;
    keys = k, values = v;
    keyPerm = kp, valuePerm = vp;
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

  /// What \p x repeats along its heads, Hkv to n * Hkv, head by head:
  /// reshape(broadcast(reshape(y) as [B, Hkv, 1, S, D])) perhaps transposed,
  /// which \p perm then takes in. Null when it repeats nothing.
  static Value *beforeRepeat(Value *x, Ints &perm) {
    Ints composed = perm;
    if (Op *transpose = x->def(OpKind::Transpose)) {
      for (int64_t &p : composed)
        p = transpose->attrs<TransposeAttrs>().perm[p];
      x = transpose->operand(0);
    }
    Op *merge = x->def(OpKind::Reshape);
    Op *repeat = merge ? merge->operand(0)->def(OpKind::Broadcast) : nullptr;
    Op *split = repeat ? repeat->operand(0)->def(OpKind::Reshape) : nullptr;
    if (!split || x->rank() != 4)
      return nullptr;
    Value *y = split->operand(0);
    ShapeRef from = split->result()->shape(), to = repeat->result()->shape();
    if (y->rank() != 4 || from.size() != 5 || !from[2].isConstant(1))
      return nullptr;
    ShapeRef heads = y->shape(), all = x->shape();
    bool repeatsHeads =
        from[0] == heads[0] && from[1] == heads[1] && from[3] == heads[2] &&
        from[4] == heads[3] && to[0] == from[0] && to[1] == from[1] &&
        to[3] == from[3] && to[4] == from[4] && all[0] == heads[0] &&
        all[1] == to[1] * to[2] && all[2] == heads[2] && all[3] == heads[3];
    if (!repeatsHeads)
      return nullptr;
    perm = composed;
    return y;
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
    if (visible.causal) {
      attrs.causality = Causality::Causal;
      attrs.queryOffset = visible.queryOffset;
    }
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
    bool hides = visible.mask || visible.causal;
    bool mayBeNan = scores.infiniteFill || !scores.additive.empty();
    if (guard && mayBeNan)
      return MaskedRow::Zero;
    if (mayBeNan)
      return MaskedRow::Nan;
    return hides ? MaskedRow::Uniform : MaskedRow::Nan;
  }

  Visibility readConditions(Builder &builder) {
    Visibility visible;
    for (const AttentionScores::Condition &c : scores.conditions) {
      Value *condition = c.negated ? builder.buildNot({c.value}) : c.value;
      condition = takeCausal(condition, visible, builder);
      if (condition)
        visible.mask = visible.mask
                           ? builder.buildAnd({visible.mask, condition})
                           : condition;
    }
    return visible;
  }

  /// Moves what is causal in \p condition to \p visible; returns the rest, or
  /// null when nothing is left.
  Value *takeCausal(Value *condition, Visibility &visible, Builder &builder) {
    unsigned rank = condition->rank();
    if (rank < 2)
      return condition;
    passes::IndexAnalysis analysis(module);
    ShapeRef shape = condition->shape();
    passes::MaskForm form =
        analysis.maskForm(analysis.elementOf(condition), shape);
    if (form.alwaysTrue())
      return nullptr;
    // Windows, and two bounds at once, stay in the tensor.
    if (!form.causalOffset || form.windowLow || visible.causal)
      return condition;
    if (!llvm::all_of(form.rest, [&](const passes::IndexExpr *e) {
          return analysis.isPlain(e, shape);
        })) {
      // The tensor still says it all; the attribute lets tiles be skipped.
      visible.causal = true;
      visible.queryOffset = *form.causalOffset;
      return condition;
    }
    visible.causal = true;
    visible.queryOffset = *form.causalOffset;
    Value *rest = nullptr;
    for (const passes::IndexExpr *e : form.rest) {
      Value *part = analysis.materialize(e, shape, builder);
      rest = rest ? builder.buildAnd({rest, part}) : part;
    }
    return rest;
  }
};

struct FuseAttention final : passes::FuncPass {
  llvm::Expected<bool> runOnFunc(Module &module, Func &func,
                                 passes::PassContext &context) override {
    FuseAttentionRule rule(module);
    return applyRules(module, func, {&rule}, &context);
  }
};

} // namespace

std::unique_ptr<passes::Pass> passes::createFuseAttention() {
  return std::make_unique<FuseAttention>();
}
