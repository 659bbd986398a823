//===- AttentionTest.cpp - inference of norms, attention and rotary ------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "OpTest.h"

using namespace tenon::ir;

namespace {

using AttentionTest = OpTest;
using NormTest = OpTest;
using RotaryTest = OpTest;

TEST_F(NormTest, ParametersHaveExactlyTheNormalisedDimensions) {
  NormAttrs attrs;
  attrs.axis = 1;
  EXPECT_EQ(infer(OpKind::LayerNorm,
                  {f32({n, 4, 8}), f32({4, 8}), f32({4, 8})}, attrs),
            "f32[n, 4, 8]");
  std::string message =
      infer(OpKind::RmsNorm, {f32({n, 4, 8}), f32({8})}, attrs);
  EXPECT_NE(message.find("'gamma'"), std::string::npos) << message;
}

TEST_F(NormTest, AttributesAreChecked) {
  NormAttrs attrs;
  attrs.epsilon = -1;
  EXPECT_EQ(infer(OpKind::LayerNorm, {f32({4})}, attrs).substr(0, 20),
            "error: epsilon is -1");
  AxisAttrs axis;
  axis.axis = 2;
  EXPECT_EQ(infer(OpKind::Softmax, {f32({n, 4})}, axis).substr(0, 7),
            "error: ");
}

TEST_F(AttentionTest, ShapesAndMask) {
  AttentionAttrs attrs;
  Value *q = f32({n, m, 8, 64}), *k = f32({n, 5, 2, 64}),
        *v = f32({n, 5, 2, 32});
  EXPECT_EQ(infer(OpKind::Attention, {q, k, v}, attrs), "f32[n, m, 8, 32]");
  Value *mask = argument(ElementType::Bool, {1, 1, 5});
  EXPECT_EQ(infer(OpKind::Attention, {q, k, v, mask}, attrs),
            "f32[n, m, 8, 32]");
  EXPECT_EQ(constraints(), "");
}

TEST_F(AttentionTest, OperandsMustAgree) {
  AttentionAttrs attrs;
  Value *q = f32({2, 3, 8, 64});
  EXPECT_EQ(infer(OpKind::Attention,
                  {q, f32({2, 5, 8, 32}), f32({2, 5, 8, 64})}, attrs),
            "error: head sizes differ: 64 in operand 'q', 32 in operand 'k'");
  EXPECT_EQ(infer(OpKind::Attention,
                  {q, f32({2, 5, 3, 64}), f32({2, 5, 3, 64})}, attrs),
            "error: 8 query heads cannot share 3 key heads: expected a "
            "multiple");
  EXPECT_EQ(infer(OpKind::Attention,
                  {q, f32({2, 5, 8, 64}), f32({2, 6, 8, 64})}, attrs),
            "error: sequence lengths differ: 5 in operand 'k', 6 in operand "
            "'v'");
  std::string message = infer(
      OpKind::Attention,
      {q, f32({2, 5, 8, 64}), f32({2, 5, 8, 64}), f32({2, 8, 3, 4})}, attrs);
  EXPECT_NE(message.find("'mask'"), std::string::npos) << message;
}

TEST_F(AttentionTest, AttributesAreChecked) {
  Value *q = f32({2, 3, 8, 64}), *k = f32({2, 5, 8, 64});
  AttentionAttrs attrs;
  attrs.windowLeft = -2;
  EXPECT_EQ(infer(OpKind::Attention, {q, k, k}, attrs).substr(0, 7), "error: ");
  attrs = {};
  attrs.softcap = -1;
  EXPECT_EQ(infer(OpKind::Attention, {q, k, k}, attrs).substr(0, 7), "error: ");
}

TEST_F(RotaryTest, TablesServeABatch) {
  RotaryAttrs attrs;
  attrs.rotaryDim = 32;
  Value *x = f32({n, m, 8, 64}), *table = f32({1, m, 16});
  EXPECT_EQ(infer(OpKind::Rotary, {x, table, table}, attrs),
            "f32[n, m, 8, 64]");
  EXPECT_EQ(constraints(), "");
  attrs.rotaryDim = 65;
  EXPECT_EQ(infer(OpKind::Rotary, {x, table, table}, attrs),
            "error: rotary_dim is 65, expected an even number");
  attrs.rotaryDim = 66;
  EXPECT_EQ(infer(OpKind::Rotary, {x, f32({1, m, 33}), f32({1, m, 33})}, attrs),
            "error: rotary_dim is 66, but the heads of operand 'x' have 64 "
            "elements");
}

} // namespace
