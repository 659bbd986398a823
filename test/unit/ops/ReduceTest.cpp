//===- ReduceTest.cpp - inference of reductions and pooling --------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "OpTest.h"

using namespace tenon::ir;

namespace {

using ReduceTest = OpTest;

ReduceAttrs over(Ints axes, bool keepdims = true) {
  ReduceAttrs attrs;
  attrs.axes = std::move(axes);
  attrs.keepdims = keepdims;
  return attrs;
}

PoolAttrs pool(int64_t kernel, int64_t stride, int64_t low, int64_t high) {
  PoolAttrs attrs;
  attrs.kernel = {kernel};
  attrs.strides = {stride};
  attrs.dilations = {1};
  attrs.padLow = {low};
  attrs.padHigh = {high};
  return attrs;
}

TEST_F(ReduceTest, ShapesWithAndWithoutKeptDimensions) {
  Value *x = f32({n, 3, 4});
  EXPECT_EQ(infer(OpKind::ReduceSum, {x}, over({0, 2})), "f32[1, 3, 1]");
  EXPECT_EQ(infer(OpKind::ReduceSum, {x}, over({0, 2}, false)), "f32[3]");
  EXPECT_EQ(infer(OpKind::ReduceSumSquare, {x}, over({})), "f32[n, 3, 4]");
}

TEST_F(ReduceTest, AxesAreCheckedSortedAndUnique) {
  Value *x = f32({2, 3});
  EXPECT_NE(infer(OpKind::ReduceSum, {x}, over({2})).find("error: "),
            std::string::npos);
  EXPECT_EQ(infer(OpKind::ReduceSum, {x}, over({1, 1})),
            "error: axes are not sorted and unique: 1 follows 1");
}

TEST_F(ReduceTest, OnlyExtremesTakeBool) {
  Value *x = argument(ElementType::Bool, {4});
  EXPECT_EQ(infer(OpKind::ReduceMax, {x}, over({0}, false)), "bool");
  EXPECT_NE(infer(OpKind::ReduceSum, {x}, over({0})).find("error: "),
            std::string::npos);
}

TEST_F(ReduceTest, ArgMaxOfNothingIsRefused) {
  ArgReduceAttrs attrs;
  attrs.axis = 1;
  attrs.keepdims = false;
  EXPECT_EQ(infer(OpKind::ArgMax, {f32({n, m})}, attrs), "i64[n]");
  EXPECT_EQ(infer(OpKind::ArgMax, {f32({2, 0})}, attrs),
            "error: axis 1 of operand 'x' is empty: there is no extreme of "
            "nothing");
}

TEST_F(ReduceTest, PoolRoundsDownOrUp) {
  Value *x = f32({1, 2, 5});
  EXPECT_EQ(infer(OpKind::AveragePool, {x}, pool(2, 2, 0, 0)), "f32[1, 2, 2]");
  PoolAttrs up = pool(2, 2, 0, 0);
  up.ceilMode = true;
  EXPECT_EQ(infer(OpKind::MaxPool, {x}, up), "f32[1, 2, 3]; i64[1, 2, 3]");
  // A window that would start in the high padding is left out.
  up = pool(3, 3, 1, 1);
  up.ceilMode = true;
  EXPECT_EQ(infer(OpKind::AveragePool, {f32({1, 1, 2})}, up), "f32[1, 1, 1]");
}

TEST_F(ReduceTest, PoolChecksWindowsAndPads) {
  EXPECT_EQ(infer(OpKind::AveragePool, {f32({1, 1, 2})}, pool(3, 1, 0, 0)),
            "error: a window of 3 does not fit into the padded input of 2 in "
            "spatial dimension 0");
  EXPECT_EQ(infer(OpKind::AveragePool, {f32({1, 1, 5})}, pool(2, 1, 2, 0)),
            "error: padding of 2 and 0 in spatial dimension 0 is not smaller "
            "than the window of 2");
  EXPECT_EQ(infer(OpKind::AveragePool, {f32({1, 1, 5})}, pool(2, 0, 0, 0)),
            "error: strides has an entry 0, expected 1 to 2147483648");
}

} // namespace
