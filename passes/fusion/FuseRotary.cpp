//===- FuseRotary.cpp - rotary embedding from its parts ------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

///
/// \file
/// The laws, for heads x[B, S, H, D] or x[B, H, S, D]:
///
///   x * [c c] + concat(-x2, x1) * [s s]                -> rotary(x, c, s)
///   concat(x1 * c - x2 * s, x2 * c + x1 * s)           -> rotary(x, c, s)
///     with x1, x2 the halves of x, or its even and odd elements (interleaved:
///     then pairs are put side by side, and c and s stand twice in a row)
///   concat(rotary(x[.., :r]), x[.., r:])               -> rotary(x, r of D)
///
/// Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding",
/// 2021. The tables may be computed or gathered; that they hold each angle
/// twice is read off how they are made (RotaryTable.h).
///
/// Not matched: tables whose two copies differ, tables that vary by head.

#include "passes/Pass.h"
#include "passes/canonical/LawUtil.h"
#include "passes/fusion/RotaryTable.h"

using namespace tenon;
using namespace tenon::ir;
using passes::Doubling;

namespace {

/// Which dimension of x the positions are.
enum class Layout { SequenceFirst, HeadsFirst };

/// How a table's rows line up with x: it broadcasts to x and varies with the
/// positions, not with the heads.
std::optional<Layout> layoutOf(Value *x, Value *table) {
  if (x->rank() != 4 || table->rank() > 4)
    return std::nullopt;
  Shape aligned(4 - table->rank(), Dim(1));
  aligned.append(table->shape().begin(), table->shape().end());
  ShapeRef s = x->shape();
  bool perBatch = aligned[0].isConstant(1) || aligned[0] == s[0];
  if (perBatch && aligned[1] == s[1] && aligned[2].isConstant(1))
    return Layout::SequenceFirst;
  if (perBatch && aligned[1].isConstant(1) && aligned[2] == s[2])
    return Layout::HeadsFirst;
  return std::nullopt;
}

/// The rotated x from tables [.., n] that broadcast to it.
Value *buildRotary(Value *x, Value *cos, Value *sin, bool interleaved,
                   Builder &builder) {
  Layout layout = *layoutOf(x, cos);
  Ints swap = {0, 2, 1, 3};
  if (layout == Layout::HeadsFirst)
    x = passes::buildTranspose(builder, x, swap);
  auto table = [&](Value *t) {
    Dim batch = t->rank() == 4 ? t->shape()[0] : Dim(1);
    return passes::buildReshape(builder, t,
                                {batch, x->shape()[1], t->shape().back()});
  };
  RotaryAttrs attrs;
  attrs.interleaved = interleaved;
  attrs.rotaryDim = *x->shape().back().constant();
  Value *y = builder.buildRotary({x, table(cos), table(sin)}, attrs);
  return layout == Layout::HeadsFirst ? passes::buildTranspose(builder, y, swap)
                                      : y;
}

/// Which part of the last dimension of \p whole the slice takes.
struct Part {
  Value *whole;
  Dim start, size;
  int64_t step;
};

std::optional<Part> partOf(Op &slice) {
  const auto &attrs = slice.attrs<SliceAttrs>();
  Value *whole = slice.operand(0);
  for (unsigned d = 0; d + 1 < whole->rank(); ++d)
    if (!attrs.starts[d].isConstant(0) || attrs.steps[d] != 1 ||
        attrs.sizes[d] != whole->shape()[d])
      return std::nullopt;
  return Part{whole, attrs.starts.back(), attrs.sizes.back(),
              attrs.steps.back()};
}

/// Whether \p first and \p second take the two of each pair of \p whole.
std::optional<Doubling> pairing(Op &first, Op &second, Value *whole) {
  std::optional<Part> a = partOf(first), b = partOf(second);
  std::optional<int64_t> size = whole->shape().back().constant();
  if (!a || !b || !size || *size % 2 != 0 || a->whole != whole ||
      b->whole != whole || !a->size.isConstant(*size / 2) ||
      !b->size.isConstant(*size / 2) || !a->start.isConstant(0))
    return std::nullopt;
  if (a->step == 1 && b->step == 1 && b->start.isConstant(*size / 2))
    return Doubling::Halves;
  if (a->step == 2 && b->step == 2 && b->start.isConstant(1))
    return Doubling::Pairs;
  return std::nullopt;
}

bool isLastAxis(const Op &concat) {
  return concat.attrs<AxisAttrs>().axis + 1 == int64_t(concat.result()->rank());
}

/// x * cos + rotate(x) * sin
struct Rotated final : Rule {
  Value *x = nullptr, *cos = nullptr, *sin = nullptr, *base = nullptr;
  Op *concat = nullptr, *first = nullptr, *second = nullptr,
     *transpose = nullptr, *flatten = nullptr;
  Doubling doubling = Doubling::Halves;

  llvm::StringRef name() const override { return "fuse-rotary"; }
  unsigned candidateAfter() const override { return 5; }

  Pattern pattern() override {
    Pattern x1 = m_Bind(first, m_Slice(m_Val(base))),
            x2 = m_Bind(second, m_Slice(m_Val(base)));
    Pattern halves = m_Bind(concat, m_Concat(m_Neg(x2), x1));
    // stack([-x2, x1]): both with a dimension of 1 behind, then flattened.
    Pattern pairs =
        m_Bind(flatten, m_Reshape(m_Bind(concat, m_Concat(m_Reshape(m_Neg(x2)),
                                                          m_Reshape(x1)))));
    Pattern rotated = m_AnyOf(halves, pairs);
    return m_Add(
        m_Mul(m_Val(x), m_Val(cos)),
        m_Mul(m_AnyOf(rotated, m_Bind(transpose, m_Transpose(rotated))),
              m_Val(sin)));
  }

  std::optional<std::string> legality(const Match &) override {
    if (!rotatesX())
      std::swap(x, cos); // either may stand first
    if (!isLastAxis(*concat) || !rotatesX())
      return "what is added is not x with its halves swapped";
    std::optional<Doubling> found = pairing(*first, *second, base);
    if (!found || (*found == Doubling::Pairs) != (flatten != nullptr))
      return "the slices are not the halves or every other element of x";
    doubling = *found;
    if (flatten && !flattensPairs())
      return "the pairs are not side by side";
    std::optional<Layout> layout = layoutOf(x, cos);
    if (!layout || layoutOf(x, sin) != layout)
      return "the cosines and sines are not one row for each position";
    if (cos->shape().back() != x->shape().back() ||
        sin->shape().back() != x->shape().back() ||
        !passes::isDoubled(cos, doubling) || !passes::isDoubled(sin, doubling))
      return "the cosines and sines do not hold each angle twice";
    return std::nullopt;
  }

  Value *rewrite(const Match &match, Rewriter &rewriter) override {
    Builder builder = rewriter.at(match);
    return buildRotary(x, passes::halved(cos, doubling, builder),
                       passes::halved(sin, doubling, builder),
                       doubling == Doubling::Pairs, builder);
  }

private:
  /// Whether the rotated value is of x itself, or of what x transposes.
  bool rotatesX() const {
    if (!transpose)
      return base == x;
    Op *other = x->def(OpKind::Transpose);
    return other && other->operand(0) == base &&
           other->attrs<TransposeAttrs>().perm ==
               transpose->attrs<TransposeAttrs>().perm;
  }

  /// [.., n, 1] twice, side by side, as [.., 2 n].
  bool flattensPairs() const {
    ShapeRef pairs = concat->result()->shape();
    Shape each(first->result()->shape());
    each.push_back(Dim(1));
    return flatten->result()->shape() == base->shape() &&
           pairs.size() == base->rank() + 1 &&
           concat->operand(0)->shape() == ShapeRef(each) &&
           concat->operand(1)->shape() == ShapeRef(each);
  }
};

/// concat(x1 c - x2 s, x2 c + x1 s), perhaps of elements side by side
struct Halved final : Rule {
  Value *x = nullptr, *cos = nullptr, *sin = nullptr;
  Op *concat = nullptr, *first = nullptr, *second = nullptr, *flatten = nullptr;
  bool interleaved = false;

  llvm::StringRef name() const override { return "fuse-rotary"; }
  unsigned candidateAfter() const override { return 6; }

  Pattern pattern() override {
    Pattern x1 = m_Bind(first, m_Slice(m_Val(x))),
            x2 = m_Bind(second, m_Slice(m_Val(x)));
    Pattern real = m_Sub(m_Mul(x1, m_Val(cos)), m_Mul(x2, m_Val(sin)));
    Pattern imaginary = m_Add(m_Mul(x2, m_Val(cos)), m_Mul(x1, m_Val(sin)));
    return m_AnyOf(
        m_Bind(concat, m_Concat(real, imaginary)),
        m_Bind(flatten,
               m_Reshape(m_Bind(
                   concat, m_Concat(m_Reshape(real), m_Reshape(imaginary))))));
  }

  std::optional<std::string> legality(const Match &) override {
    if (!isLastAxis(*concat))
      return "the halves are not joined along the last dimension";
    std::optional<Doubling> found = pairing(*first, *second, x);
    if (!found || (*found == Doubling::Pairs) != (flatten != nullptr))
      return "the slices are not the halves or every other element of x";
    interleaved = *found == Doubling::Pairs;
    if (flatten && flatten->result()->shape() != x->shape())
      return "the pairs are not side by side";
    if (flatten && !concat->operand(0)->shape().back().isConstant(1))
      return "the pairs are not side by side";
    Value *half = first->result();
    std::optional<Layout> layout = layoutOf(half, cos);
    if (!layout || layoutOf(half, sin) != layout ||
        cos->shape().back() != half->shape().back() ||
        sin->shape().back() != half->shape().back())
      return "the cosines and sines are not one row for each position";
    return std::nullopt;
  }

  Value *rewrite(const Match &match, Rewriter &rewriter) override {
    Builder builder = rewriter.at(match);
    return buildRotary(x, cos, sin, interleaved, builder);
  }
};

/// concat(rotary(x[.., :r]), x[.., r:])
struct Partial final : Rule {
  Value *x = nullptr, *cos = nullptr, *sin = nullptr;
  Op *concat = nullptr, *rotary = nullptr, *first = nullptr, *second = nullptr,
     *inner = nullptr, *outer = nullptr;

  llvm::StringRef name() const override { return "fuse-rotary"; }

  Pattern pattern() override {
    Pattern x1 = m_Bind(first, m_Slice(m_Val(x))),
            x2 = m_Bind(second, m_Slice(m_Val(x)));
    auto turned = [&](Pattern part) {
      return m_Bind(rotary, m_Rotary(part, m_Val(cos), m_Val(sin)));
    };
    return m_Bind(concat,
                  m_AnyOf(m_Concat(turned(x1), x2),
                          m_Concat(m_Bind(outer, m_Transpose(turned(m_Bind(
                                                     inner, m_Transpose(x1))))),
                                   x2)));
  }

  std::optional<std::string> legality(const Match &) override {
    std::optional<Part> a = partOf(*first), b = partOf(*second);
    auto turned = [](Op *op) {
      return !op || op->attrs<TransposeAttrs>().perm == Ints({0, 2, 1, 3});
    };
    if (!isLastAxis(*concat) || !a || !b || !turned(inner) || !turned(outer) ||
        !a->start.isConstant(0) || a->step != 1 || b->step != 1 ||
        b->start != a->size || a->size + b->size != x->shape().back() ||
        rotary->attrs<RotaryAttrs>().rotaryDim != a->size.constant())
      return "what follows the rotated part is not the rest of x";
    return std::nullopt;
  }

  Value *rewrite(const Match &match, Rewriter &rewriter) override {
    Builder builder = rewriter.at(match);
    Ints swap = {0, 2, 1, 3};
    Value *from = inner ? passes::buildTranspose(builder, x, swap) : x;
    Value *y =
        builder.buildRotary({from, cos, sin}, rotary->attrs<RotaryAttrs>());
    return inner ? passes::buildTranspose(builder, y, swap) : y;
  }
};

struct FuseRotary final : passes::RulePass {
  FuseRotary() {
    add<Rotated>();
    add<Halved>();
    add<Partial>();
  }
};

} // namespace

std::unique_ptr<passes::Pass> passes::createFuseRotary() {
  return std::make_unique<FuseRotary>();
}
