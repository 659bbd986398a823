//===- ShapeValuesTest.cpp - following shape arithmetic ------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/ShapeValues.h"
#include "OpTest.h"

using namespace tenon::ir;

namespace {

class ShapeValuesTest : public OpTest {
protected:
  Value *dims(Dims values) {
    DimsAttrs attrs;
    attrs.values = std::move(values);
    return builder.buildDims({}, attrs);
  }
  Value *size(Dim value) {
    DimsAttrs attrs;
    attrs.values = {value};
    attrs.scalar = true;
    return builder.buildDims({}, attrs);
  }
  Value *number(int64_t value) {
    return builder.constant(
        Constant::copy(ElementType::I64, {}, bytesOf(value)));
  }
  Value *real(double value) { return builder.scalar(ElementType::F32, value); }
  Value *cast(Value *x, ElementType to) {
    CastAttrs attrs;
    attrs.to = to;
    return builder.buildCast({x}, attrs);
  }
  Value *gather(Value *x, Value *indices) {
    return builder.buildGather({x, indices}, AxisAttrs());
  }
  Value *concat(llvm::ArrayRef<Value *> inputs) {
    return builder.buildConcat(inputs, AxisAttrs());
  }
  Value *reshape(Value *x, Dims shape) {
    ShapeAttrs attrs;
    attrs.shape = std::move(shape);
    return builder.buildReshape({x}, attrs);
  }
  Value *broadcast(Value *x, Dims shape) {
    ShapeAttrs attrs;
    attrs.shape = std::move(shape);
    return builder.buildBroadcast({x}, attrs);
  }
  Value *slice(Value *x, int64_t start, int64_t size, int64_t step = 1) {
    SliceAttrs attrs;
    attrs.starts = {start};
    attrs.sizes = {size};
    attrs.steps = {step};
    return builder.buildSlice({x}, attrs);
  }

  /// The elements as text, `?` for one that is unknown, "unknown" for all.
  std::string values(Value *value) {
    const std::optional<ShapeValues::Partial> &partial =
        shapeValues.partialOf(value);
    if (!partial)
      return "unknown";
    std::string text;
    llvm::raw_string_ostream os(text);
    llvm::interleaveComma(*partial, os, [&](const std::optional<Dim> &dim) {
      if (dim)
        os << *dim;
      else
        os << '?';
    });
    return text;
  }

  static llvm::ArrayRef<uint8_t> bytesOf(const int64_t &value) {
    return {reinterpret_cast<const uint8_t *>(&value), sizeof(value)};
  }

  ShapeValues shapeValues;
};

TEST_F(ShapeValuesTest, ReshapeTargetOfAnAttentionHead) {
  // Shape -> Gather -> Unsqueeze -> Concat(.., -1, 64).
  Value *shape = dims({n, m, 768});
  Value *batch = reshape(gather(shape, number(0)), {1});
  Value *seq = reshape(gather(shape, number(-2)), {1});
  Value *target = concat({batch, seq, builder.ints({-1, 64})});
  EXPECT_EQ(values(target), "n, m, -1, 64");
  auto all = shapeValues.valuesOf(target);
  ASSERT_TRUE(all);
  EXPECT_EQ((*all)[0], n);
}

TEST_F(ShapeValuesTest, ExpandTargetWithMinusOneReplaced) {
  // Where(shape == ConstantOfShape(1) * -1, 1, shape).
  Value *shape = dims({n, 1, m});
  Value *ones = broadcast(number(1), {3});
  Value *minus = builder.buildMul({ones, number(-1)});
  Value *isMinus = builder.buildEqual({shape, minus});
  EXPECT_EQ(values(isMinus), "0, 0, 0");
  EXPECT_EQ(values(builder.buildWhere({isMinus, ones, shape})), "n, 1, m");
}

TEST_F(ShapeValuesTest, ComparisonsThatSymbolsDecide) {
  Value *a = dims({n, n, n, n + Dim(1), 3});
  Value *b = dims({n, n + Dim(1), m, 0, 4});
  EXPECT_EQ(values(builder.buildEqual({a, b})), "1, 0, ?, 0, 0");
  EXPECT_EQ(values(builder.buildLess({a, b})), "0, 1, ?, 0, 1");
  EXPECT_EQ(values(builder.buildGreaterEqual({a, b})), "1, 0, ?, 1, 0");
  EXPECT_EQ(values(builder.buildLessEqual({a, b})), "1, 1, ?, 0, 1");
  EXPECT_EQ(values(builder.buildGreater({a, b})), "0, 0, ?, 1, 0");
}

TEST_F(ShapeValuesTest, WhereOnEqualBranchesNeedsNoCondition) {
  Value *unknown = func.body.addArgument({ElementType::Bool, {2}});
  EXPECT_EQ(values(builder.buildWhere({unknown, dims({n, 3}), dims({n, 4})})),
            "n, ?");
}

TEST_F(ShapeValuesTest, Arithmetic) {
  Value *a = dims({n, Dim(2) * n, n * m});
  Value *two = number(2);
  EXPECT_EQ(values(builder.buildAdd({a, two})), "n + 2, 2 * n + 2, m * n + 2");
  EXPECT_EQ(values(builder.buildSub({a, a})), "0, 0, 0");
  EXPECT_EQ(values(builder.buildNeg({a})), "-n, -2 * n, -m * n");
  EXPECT_EQ(values(builder.buildMax({a, number(-1)})), "n, 2 * n, m * n");
  EXPECT_EQ(values(builder.buildMin({a, number(0)})), "0, 0, 0");
  EXPECT_EQ(values(builder.buildMod({a, two})), "mod(n, 2), 0, mod(m * n, 2)");
  EXPECT_EQ(values(builder.buildDiv({a, size(n)})), "1, 2, m");
}

TEST_F(ShapeValuesTest, DivisionTruncatesWhereTheSignIsKnown) {
  EXPECT_EQ(values(builder.buildDiv({dims({n, 7, -7, n - m}), number(2)})),
            "floordiv(n, 2), 3, -3, ?");
  EXPECT_EQ(values(builder.buildDiv({builder.buildNeg({size(n)}), number(2)})),
            "-floordiv(n, 2)");
}

TEST_F(ShapeValuesTest, PartialValuesPassThrough) {
  Value *unknown = argument(ElementType::I64, {1});
  Value *mixed = concat({dims({n}), unknown, dims({m})});
  EXPECT_EQ(values(mixed), "n, ?, m");
  EXPECT_FALSE(shapeValues.valuesOf(mixed));
  EXPECT_EQ(values(slice(mixed, 2, 2, -2)), "m, n");
  EXPECT_EQ(values(builder.buildMul({mixed, builder.ints({2, 0, 0})})),
            "2 * n, 0, 0");
  EXPECT_EQ(values(gather(mixed, unknown)), "unknown");
}

TEST_F(ShapeValuesTest, ProductsAndSums) {
  ReduceAttrs attrs;
  attrs.axes = {0};
  attrs.keepdims = false;
  Value *shape = dims({n, m, 4});
  EXPECT_EQ(values(builder.buildReduceProd({shape}, attrs)), "4 * m * n");
  EXPECT_EQ(values(builder.buildReduceSum({shape}, attrs)), "m + n + 4");
  EXPECT_EQ(values(builder.buildReduceMax({shape}, attrs)),
            "max(max(m, n), 4)");
}

TEST_F(ShapeValuesTest, RangeOfAConstantCount) {
  CountAttrs attrs;
  attrs.count = 3;
  EXPECT_EQ(values(builder.buildRange({size(n), number(2)}, attrs)),
            "n, n + 2, n + 4");
  attrs.count = n;
  EXPECT_EQ(values(builder.buildRange({number(0), number(1)}, attrs)),
            "unknown");
}

TEST_F(ShapeValuesTest, FloatDetours) {
  Value *x = cast(size(n), ElementType::F32);
  EXPECT_EQ(values(x), "unknown") << "a float is not an integer tensor";
  Value *half = builder.buildDiv({x, real(2)});
  EXPECT_EQ(values(cast(half, ElementType::I64)), "floordiv(n, 2)");
  EXPECT_EQ(values(cast(builder.buildFloor({half}), ElementType::I32)),
            "floordiv(n, 2)");
  EXPECT_EQ(values(cast(builder.buildCeil({half}), ElementType::I64)),
            "floordiv(n + 1, 2)");
  Value *scaled = builder.buildMul({builder.buildMul({x, real(0.5)}), real(4)});
  EXPECT_EQ(values(cast(scaled, ElementType::I64)), "2 * n");
  EXPECT_EQ(values(cast(builder.buildMul({x, real(0.1)}), ElementType::I64)),
            "unknown")
      << "0.1 is not exact";
  EXPECT_EQ(values(cast(cast(size(n), ElementType::F16), ElementType::I64)),
            "unknown")
      << "sizes above 2048 are not exact in f16";
}

TEST_F(ShapeValuesTest, CastsThatMayWrapAreNotFollowed) {
  EXPECT_EQ(values(cast(size(n), ElementType::I32)), "n");
  EXPECT_EQ(values(cast(size(n), ElementType::U8)), "unknown");
  EXPECT_EQ(values(cast(number(300), ElementType::U8)), "44");
  EXPECT_EQ(values(cast(dims({n - Dim(1), n}), ElementType::U64)), "?, n");
  EXPECT_EQ(values(cast(dims({0, n + Dim(1), n, -3}), ElementType::Bool)),
            "0, 1, ?, 1");
}

TEST_F(ShapeValuesTest, Logic) {
  Value *unknown = func.body.addArgument({ElementType::Bool, {}});
  Value *zero = builder.buildLess({dims({n, 0}), number(0)}); // 0, 0
  EXPECT_EQ(values(builder.buildAnd({unknown, zero})), "0, 0");
  EXPECT_EQ(values(builder.buildOr({unknown, builder.buildNot({zero})})),
            "1, 1");
  EXPECT_EQ(values(builder.buildXor({builder.buildNot({zero}), zero})), "1, 1");
}

TEST_F(ShapeValuesTest, HigherRanksAreRowMajor) {
  // Pads as exporters write them: [n, 2] pairs, flipped and transposed.
  Value *pairs = reshape(dims({n, 1, m, 2}), {2, 2});
  TransposeAttrs swap;
  swap.perm = {1, 0};
  Value *turned = builder.buildTranspose({pairs}, swap);
  EXPECT_EQ(values(turned), "n, m, 1, 2");
  EXPECT_EQ(values(reshape(turned, {4})), "n, m, 1, 2");
}

TEST_F(ShapeValuesTest, ZerosThatPadPutsIn) {
  PadAttrs attrs;
  attrs.low = {1};
  attrs.high = {2};
  EXPECT_EQ(values(builder.buildPad({dims({n})}, attrs)), "0, n, 0, 0");
}

TEST_F(ShapeValuesTest, ConstantsGoThroughTheReference) {
  Value *x = builder.ints({3, 1, 2});
  EXPECT_EQ(values(builder.buildCumSum({x})), "3, 4, 6");
  TopKAttrs top;
  top.k = 2;
  EXPECT_EQ(values(builder.buildTopK({x}, top)), "3, 2");
  EXPECT_EQ(values(builder.buildBitwiseAnd({x, number(1)})), "1, 1, 0");
  EXPECT_EQ(values(gather(x, number(5))), "unknown") << "out of range";
}

TEST_F(ShapeValuesTest, EmptyTensorsAreKnown) {
  auto none = shapeValues.valuesOf(dims({}));
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->empty());
  auto cut = shapeValues.valuesOf(slice(dims({n, m}), 0, 0));
  ASSERT_TRUE(cut);
  EXPECT_TRUE(cut->empty());
}

TEST_F(ShapeValuesTest, HugeConstantsDoNotWrap) {
  Value *huge = number(INT64_MAX);
  EXPECT_EQ(values(builder.buildMin({size(n), huge})),
            "min(n, 9223372036854775807)");
  EXPECT_EQ(values(builder.buildMul({size(n), builder.buildMul({huge, huge})})),
            "n")
      << "the product of the constants wraps to 1, as it does when running";
  EXPECT_EQ(
      values(builder.buildMul({builder.buildMul({size(n), huge}), number(4)})),
      "unknown");
}

TEST_F(ShapeValuesTest, LongChainsNeedNoStack) {
  Value *x = size(n);
  for (int i = 0; i < 20000; ++i)
    x = builder.buildAdd({x, number(1)});
  EXPECT_EQ(values(x), "n + 20000");
}

TEST_F(ShapeValuesTest, LargeAndDynamicTensorsAreNotFollowed) {
  Value *large = builder.constant(Constant::splat(ElementType::I64, {5000}, 1));
  EXPECT_EQ(values(large), "unknown");
  EXPECT_EQ(values(slice(large, 0, 1)), "unknown");
  EXPECT_EQ(values(argument(ElementType::I64, {n})), "unknown");
}

} // namespace
