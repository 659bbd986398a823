//===- MovementTest.cpp - inference of ops that move elements ------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "OpTest.h"

using namespace tenon::ir;

namespace {

class MovementTest : public OpTest {
protected:
  std::string reshape(Shape from, Dims to) {
    ShapeAttrs attrs;
    attrs.shape = std::move(to);
    return infer(OpKind::Reshape, {f32(std::move(from))}, attrs);
  }
  std::string broadcast(Shape from, Dims to) {
    ShapeAttrs attrs;
    attrs.shape = std::move(to);
    return infer(OpKind::Broadcast, {f32(std::move(from))}, attrs);
  }
  std::string slice(Dim extent, Dim start, Dim size, int64_t step) {
    SliceAttrs attrs;
    attrs.starts = {start};
    attrs.sizes = {size};
    attrs.steps = {step};
    return infer(OpKind::Slice, {f32({extent})}, attrs);
  }
  std::string transpose(Shape shape, Ints perm) {
    TransposeAttrs attrs;
    attrs.perm = std::move(perm);
    return infer(OpKind::Transpose, {f32(std::move(shape))}, attrs);
  }
  std::string concat(llvm::ArrayRef<Value *> inputs, int64_t axis) {
    AxisAttrs attrs;
    attrs.axis = axis;
    return infer(OpKind::Concat, inputs, attrs);
  }
  std::string pad(Dim extent, Dim low, Dim high, PadMode mode) {
    PadAttrs attrs;
    attrs.low = {low};
    attrs.high = {high};
    attrs.mode = mode;
    return infer(OpKind::Pad, {f32({extent})}, attrs);
  }
};

TEST_F(MovementTest, ReshapeKeepsTheNumberOfElements) {
  EXPECT_EQ(reshape({n, 768}, {n, 12, 64}), "f32[n, 12, 64]");
  EXPECT_EQ(reshape({}, {1, 1}), "f32[1, 1]");
  EXPECT_EQ(reshape({n, 0}, {0, 5}), "f32[0, 5]");
  EXPECT_EQ(constraints(), "");
}

TEST_F(MovementTest, ReshapeToAnotherNumberOfElementsIsRefused) {
  EXPECT_EQ(reshape({2, 3}, {4}),
            "error: element counts differ: 6 in operand 'x' of shape [2, 3], 4 "
            "in attribute 'shape' [4]");
  EXPECT_EQ(reshape({n, 6}, {n, 4}),
            "error: element counts differ: 6 * n in operand 'x' of shape [n, "
            "6], 4 * n in attribute 'shape' [n, 4]");
  EXPECT_EQ(reshape({n + m, 2}, {n + m}).substr(0, 33),
            "error: element counts differ: 2 *");
  EXPECT_EQ(
      reshape({4}, {-2, -2}),
      "error: dimension 0 of attribute 'shape' is -2, expected 0 or more");
}

TEST_F(MovementTest, ReshapeLeavesUndecidedCountsToTheRun) {
  EXPECT_EQ(reshape({n, 2}, {m, 4}), "f32[m, 4]");
  EXPECT_EQ(constraints(), "2 * n == 4 * m");
}

TEST_F(MovementTest, Transpose) {
  EXPECT_EQ(transpose({n, 2, 3}, {2, 0, 1}), "f32[3, n, 2]");
  EXPECT_EQ(transpose({n, 2}, {0}), "error: attribute 'perm' has 1 entries, "
                                    "expected 2, one for each dimension");
  EXPECT_EQ(transpose({n, 2}, {0, 2}),
            "error: entry of attribute 'perm' 2 is out of range for rank 2 of "
            "operand 'x'");
  EXPECT_EQ(transpose({n, 2}, {1, 1}),
            "error: attribute 'perm' names dimension 1 twice");
}

TEST_F(MovementTest, Broadcast) {
  EXPECT_EQ(broadcast({n, 1}, {m, n, 4}), "f32[m, n, 4]");
  EXPECT_EQ(constraints(), "");
  EXPECT_EQ(broadcast({3}, {n}), "f32[n]");
  EXPECT_EQ(constraints(), "3 == n");
  EXPECT_EQ(broadcast({2, 3}, {3}),
            "error: operand 'x' of shape [2, 3] does "
            "not broadcast to [3] of attribute 'shape'");
  EXPECT_EQ(broadcast({2}, {3}), "error: operand 'x' of shape [2] does not "
                                 "broadcast to [3] of attribute 'shape'");
}

TEST_F(MovementTest, Slice) {
  EXPECT_EQ(slice(n, 1, n - Dim(1), 1), "f32[n - 1]");
  EXPECT_EQ(slice(5, 4, 5, -1), "f32[5]");
  EXPECT_EQ(slice(5, 5, 0, 1), "f32[0]");
  EXPECT_EQ(slice(5, 0, 1, INT64_MAX), "f32[1]");
  EXPECT_EQ(
      slice(5, 2, 2, 3),
      "error: a slice of 2 elements from 2 with step 3 leaves dimension 0 "
      "of operand 'x', which has 5");
  EXPECT_EQ(slice(5, 1, 3, -1).substr(0, 40),
            "error: a slice of 3 elements from 1 with");
  EXPECT_EQ(slice(5, 0, INT64_MAX, INT64_MAX).substr(0, 15), "error: a slice ");
  EXPECT_EQ(slice(n, -1, 1, 1).substr(0, 15), "error: a slice ");
  EXPECT_EQ(slice(5, 0, 1, 0), "error: the step of dimension 0 is 0");
  EXPECT_EQ(slice(5, 0, -1, 1),
            "error: the size of dimension 0 is -1, expected 0 or more");
}

TEST_F(MovementTest, Concat) {
  EXPECT_EQ(concat({f32({n, 2}), f32({m, 2}), f32({3, 2})}, 0),
            "f32[m + n + 3, 2]");
  EXPECT_EQ(constraints(), "");
  EXPECT_EQ(concat({f32({1, n}), f32({1, 4})}, 0), "f32[2, 4]");
  EXPECT_EQ(constraints(), "n == 4");
  EXPECT_EQ(
      concat({f32({1, 2}), f32({1, 4})}, 0),
      "error: sizes of dimension 1 differ: 2 in operand 'inputs #0', 4 in "
      "operand 'inputs #1'");
  EXPECT_EQ(concat({f32({1, 2}), f32({1})}, 0),
            "error: ranks differ: 2 in operand 'inputs #0', 1 in operand "
            "'inputs #1'");
  EXPECT_EQ(concat({f32({2})}, 1),
            "error: axis 1 is out of range for rank 1 of operand 'inputs #0'");
  EXPECT_EQ(concat({}, 0), "error: there are no inputs, expected 1 or more");
}

TEST_F(MovementTest, Pad) {
  EXPECT_EQ(pad(n, 1, 2, PadMode::Constant), "f32[n + 3]");
  EXPECT_EQ(pad(n, n, 0, PadMode::Constant), "f32[2 * n]");
  EXPECT_EQ(pad(3, -2, -1, PadMode::Constant), "f32[0]");
  EXPECT_EQ(pad(3, -2, -2, PadMode::Constant),
            "error: dimension 0 after padding is -1, expected 0 or more");
  EXPECT_EQ(pad(0, 1, 0, PadMode::Edge),
            "error: dimension 0 of operand 'x' is empty, which only mode "
            "'constant' can pad");
}

TEST_F(MovementTest, SizesThatOverflowAreRefused) {
  EXPECT_NE(concat({f32({INT64_MAX}), f32({1})}, 0).find("error: "),
            std::string::npos);
  EXPECT_NE(reshape({INT64_MAX, 2}, {n}).find("error: "), std::string::npos);
  EXPECT_NE(pad(INT64_MAX, 1, 1, PadMode::Edge).find("error: "),
            std::string::npos);
}

TEST_F(MovementTest, TriluNeedsAMatrix) {
  EXPECT_EQ(infer(OpKind::Trilu, {f32({n, 2, 3})}, TriluAttrs()),
            "f32[n, 2, 3]");
  EXPECT_EQ(infer(OpKind::Trilu, {f32({n})}, TriluAttrs()),
            "error: operand 'x' has rank 1, expected 2 or more");
}

} // namespace
