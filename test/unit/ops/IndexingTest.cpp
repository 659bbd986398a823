//===- IndexingTest.cpp - inference of gathers, scatters and the like ----===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "OpTest.h"

using namespace tenon::ir;

namespace {

class IndexingTest : public OpTest {
protected:
  Value *i64(Shape shape) {
    return argument(ElementType::I64, std::move(shape));
  }
  template <class A> A onAxis(int64_t axis) {
    A attrs;
    attrs.axis = axis;
    return attrs;
  }
  GatherNdAttrs batches(int64_t count) {
    GatherNdAttrs attrs;
    attrs.batchDims = count;
    return attrs;
  }
  CountAttrs count(Dim dim) {
    CountAttrs attrs;
    attrs.count = dim;
    return attrs;
  }
};

TEST_F(IndexingTest, GatherReplacesADimensionByTheIndices) {
  auto gather = [&](Shape x, Shape indices, int64_t axis) {
    return infer(OpKind::Gather, {f32(x), i64(indices)},
                 onAxis<AxisAttrs>(axis));
  };
  EXPECT_EQ(gather({100, 8}, {n, m}, 0), "f32[n, m, 8]");
  EXPECT_EQ(gather({n, 8, 3}, {}, 1), "f32[n, 3]");
  EXPECT_EQ(gather({n, 8}, {2}, 2),
            "error: axis 2 is out of range for rank 2 of operand 'x'");
  EXPECT_EQ(infer(OpKind::Gather, {f32({2}), f32({2})}, onAxis<AxisAttrs>(0)),
            "error: operand 'indices' has element type f32, expected i32 or "
            "i64");
}

TEST_F(IndexingTest, ElementIndicesMayBeFewerThanX) {
  auto gather = [&](Shape x, Shape indices) {
    return infer(OpKind::GatherElements, {f32(x), i64(indices)},
                 onAxis<AxisAttrs>(0));
  };
  EXPECT_EQ(gather({2, n}, {7, n}), "f32[7, n]");
  EXPECT_EQ(gather({2, 3}, {7, 2}), "f32[7, 2]");
  EXPECT_EQ(gather({2, 3}, {7, 4}),
            "error: dimension 1 of operand 'indices' is 4, expected at most 3 "
            "as in operand 'x'");
  EXPECT_EQ(gather({2, 3}, {7}),
            "error: operand 'indices' has rank 1, expected 2");
}

TEST_F(IndexingTest, GatherNd) {
  auto gather = [&](Shape x, Shape indices, int64_t batchDims = 0) {
    return infer(OpKind::GatherNd, {f32(x), i64(indices)}, batches(batchDims));
  };
  EXPECT_EQ(gather({4, 5, 6}, {n, 2}), "f32[n, 6]");
  EXPECT_EQ(gather({4, 5}, {2}), "f32");
  EXPECT_EQ(gather({n, 5, 6}, {n, 3, 1}, 1), "f32[n, 3, 6]");
  EXPECT_EQ(constraints(), "");
  EXPECT_EQ(gather({n, 5, 6}, {m, 3, 1}, 1), "f32[n, 3, 6]");
  EXPECT_EQ(constraints(), "n == m");
  EXPECT_EQ(gather({2, 5, 6}, {3, 3, 1}, 1),
            "error: batch dimensions differ: 2 in operand 'x', 3 in operand "
            "'indices'");
  EXPECT_EQ(gather({4, 5}, {n, 3}),
            "error: the last dimension of operand 'indices' is 3, expected a "
            "constant from 1 to 2");
  EXPECT_EQ(gather({4, 5}, {n, m}),
            "error: the last dimension of operand 'indices' is m, expected a "
            "constant from 1 to 2");
  EXPECT_EQ(gather({4, 5}, {n, 1}, 2),
            "error: attribute 'batch_dims' is 2, expected less than 2, the "
            "smaller rank of operands 'x' and 'indices'");
  EXPECT_NE(gather({4, 5}, {}).find("error: "), std::string::npos);
}

TEST_F(IndexingTest, ScatterNdUpdatesFitTheIndices) {
  auto scatter = [&](Shape x, Shape indices, Shape updates) {
    return infer(OpKind::ScatterNd, {f32(x), i64(indices), f32(updates)},
                 ScatterNdAttrs());
  };
  EXPECT_EQ(scatter({4, 5}, {n, 1}, {n, 5}), "f32[4, 5]");
  EXPECT_EQ(scatter({4, 5}, {3, 1}, {3}),
            "error: operand 'updates' has shape [3], expected [3, 5]");
  EXPECT_EQ(scatter({4, 5}, {3, 2}, {4}),
            "error: operand 'updates' has shape [4], expected [3]");
}

TEST_F(IndexingTest, ScatterElementsUpdatesHaveTheIndicesShape) {
  auto scatter = [&](Shape x, Shape indices, Shape updates) {
    return infer(OpKind::ScatterElements, {f32(x), i64(indices), f32(updates)},
                 onAxis<ScatterElementsAttrs>(0));
  };
  EXPECT_EQ(scatter({4, 5}, {n, 3}, {n, 3}), "f32[4, 5]");
  EXPECT_EQ(scatter({4, 5}, {2, 3}, {2, 4}),
            "error: operand 'updates' has shape [2, 4], expected [2, 3]");
  ScatterElementsAttrs attrs;
  attrs.reduction = ScatterReduction::Add;
  Value *flags = argument(ElementType::Bool, {2});
  EXPECT_EQ(infer(OpKind::ScatterElements, {flags, i64({2}), flags}, attrs),
            "error: operand 'x' has element type bool, expected a type with "
            "arithmetic for a reduction");
}

TEST_F(IndexingTest, RangeAndItsCount) {
  EXPECT_EQ(infer(OpKind::Range, {i64({}), i64({})}, count(n)), "i64[n]");
  EXPECT_EQ(infer(OpKind::Range, {i64({}), i64({1})}, count(n)),
            "error: operand 'delta' has rank 1, expected 0");
  EXPECT_EQ(infer(OpKind::Range, {i64({}), i64({})}, count(-1)),
            "error: attribute 'count' is -1, expected 0 or more");
}

TEST_F(IndexingTest, OneHotInsertsADimension) {
  OneHotAttrs attrs = onAxis<OneHotAttrs>(1);
  attrs.depth = m;
  EXPECT_EQ(infer(OpKind::OneHot, {i64({n, 3}), f32({2})}, attrs),
            "f32[n, m, 3]");
  EXPECT_EQ(infer(OpKind::OneHot, {i64({n, 3}), f32({3})}, attrs),
            "error: operand 'off_on' has shape [3], expected [2]");
  EXPECT_EQ(infer(OpKind::OneHot, {i64({}), f32({2})}, attrs),
            "error: axis 1 is out of range for rank 1 of the result");
}

TEST_F(IndexingTest, NonZeroDefinesASymbol) {
  EXPECT_EQ(infer(OpKind::NonZero, {f32({2, 3})}, count(n)), "i64[2, n]");
  EXPECT_EQ(infer(OpKind::NonZero, {f32({2, 3})}, count(4)),
            "error: attribute 'count' is 4, expected the name of the symbol "
            "that it defines");
}

TEST_F(IndexingTest, TopKTakesAtMostWhatThereIs) {
  TopKAttrs attrs = onAxis<TopKAttrs>(1);
  attrs.k = 3;
  EXPECT_EQ(infer(OpKind::TopK, {f32({n, 5})}, attrs), "f32[n, 3]; i64[n, 3]");
  EXPECT_EQ(infer(OpKind::TopK, {f32({n, 2})}, attrs),
            "error: attribute 'k' is 3, expected at most 2, the size of "
            "dimension 1 of operand 'x'");
}

TEST_F(IndexingTest, CumSumNeedsAnAxis) {
  EXPECT_EQ(infer(OpKind::CumSum, {f32({n})}, onAxis<CumSumAttrs>(0)),
            "f32[n]");
  EXPECT_EQ(infer(OpKind::CumSum, {f32({})}, onAxis<CumSumAttrs>(0)),
            "error: axis 0 is out of range for rank 0 of operand 'x'");
}

} // namespace
