//===- ElementwiseTest.cpp - inference of elementwise ops ----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "OpTest.h"

using namespace tenon::ir;

namespace {

class ElementwiseTest : public OpTest {
protected:
  std::string add(Shape a, Shape b) {
    return infer(OpKind::Add, {f32(std::move(a)), f32(std::move(b))});
  }
  Value *i64(Shape shape) {
    return argument(ElementType::I64, std::move(shape));
  }
  Value *boolean(Shape shape) {
    return argument(ElementType::Bool, std::move(shape));
  }
};

TEST_F(ElementwiseTest, BroadcastsAsNumPyDoes) {
  EXPECT_EQ(add({n, 1, 3}, {4, 1}), "f32[n, 4, 3]");
  EXPECT_EQ(add({}, {}), "f32");
  EXPECT_EQ(add({0}, {1}), "f32[0]");
  EXPECT_EQ(add({n, m}, {m}), "f32[n, m]");
  EXPECT_EQ(constraints(), "");
}

TEST_F(ElementwiseTest, SizesThatCannotFitAreRefusedWithAllShapes) {
  EXPECT_EQ(add({2, 3}, {4, 3}), "error: shapes do not broadcast: [2, 3] in "
                                 "operand 'a', [4, 3] in operand 'b'");
  EXPECT_EQ(add({0}, {2}), "error: shapes do not broadcast: [0] in operand "
                           "'a', [2] in operand 'b'");
  // n + 2 is neither 1 nor, whatever n is, n + 3.
  EXPECT_EQ(add({n + Dim(2)}, {n + Dim(3)}),
            "error: shapes do not broadcast: [n + 2] in operand 'a', [n + 3] "
            "in operand 'b'");
}

TEST_F(ElementwiseTest, UnrelatedSymbolsMayBeOne) {
  EXPECT_EQ(infer(OpKind::Add, {f32({n}), f32({m})}), "f32[broadcast(m, n)]");
  EXPECT_EQ(constraints(), "") << "evaluating the size checks it";
}

TEST_F(ElementwiseTest, SizesAboveOneMustBeEqual) {
  EXPECT_EQ(add({n + Dim(2)}, {m + Dim(2)}), "f32[n + 2]");
  EXPECT_EQ(constraints(), "n + 2 == m + 2");
}

TEST_F(ElementwiseTest, SymbolAgainstConstantIsOneOrEqual) {
  EXPECT_EQ(add({n}, {5}), "f32[5]");
  ASSERT_EQ(func.constraints.size(), 1u);
  auto holds = [&](int64_t value) {
    auto env = [&](llvm::StringRef) { return std::optional(value); };
    return func.constraints[0].a.evaluate(env) ==
           func.constraints[0].b.evaluate(env);
  };
  EXPECT_TRUE(holds(1));
  EXPECT_TRUE(holds(5));
  EXPECT_FALSE(holds(0));
  EXPECT_FALSE(holds(3));
  EXPECT_FALSE(holds(6));
}

TEST_F(ElementwiseTest, ElementTypesMustAgree) {
  EXPECT_EQ(infer(OpKind::Mul, {f32({2}), i64({2})}),
            "error: element types differ: f32 in operand 'a', i64 in operand "
            "'b'");
  EXPECT_EQ(infer(OpKind::Pow, {f32({2}), i64({2})}), "f32[2]");
}

TEST_F(ElementwiseTest, ElementTypesMustHaveTheOperation) {
  EXPECT_EQ(infer(OpKind::Exp, {i64({2})}),
            "error: operand 'x' has element type i64, expected a float type of "
            "16 bits or more");
  EXPECT_EQ(infer(OpKind::Add, {boolean({2}), boolean({2})}),
            "error: operand 'a' has element type bool, expected a float (16 "
            "bits or more) or integer (8 bits or more) type");
  Value *small = argument(ElementType::F8E4M3FN, {2});
  EXPECT_NE(infer(OpKind::Neg, {small}).find("error: "), std::string::npos);
  EXPECT_EQ(infer(OpKind::And, {f32({2}), f32({2})}),
            "error: operand 'a' has element type f32, expected bool");
  EXPECT_EQ(infer(OpKind::Less, {i64({2}), i64({2})}), "bool[2]");
  EXPECT_EQ(infer(OpKind::Equal, {boolean({2}), boolean({1})}), "bool[2]");
  EXPECT_EQ(infer(OpKind::IsNan, {f32({n})}), "bool[n]");
}

TEST_F(ElementwiseTest, WhereBroadcastsAllThree) {
  EXPECT_EQ(infer(OpKind::Where, {boolean({n, 1}), i64({3}), i64({})}),
            "i64[n, 3]");
  EXPECT_EQ(infer(OpKind::Where, {i64({2}), i64({2}), i64({2})}),
            "error: operand 'condition' has element type i64, expected bool");
  EXPECT_EQ(infer(OpKind::Where, {boolean({2}), f32({3}), f32({4})}),
            "error: shapes do not broadcast: [2] in operand 'condition', [3] "
            "in operand 'a', [4] in operand 'b'");
}

TEST_F(ElementwiseTest, CastTakesAllTypes) {
  CastAttrs attrs;
  attrs.to = ElementType::F8E4M3FN;
  EXPECT_EQ(infer(OpKind::Cast, {boolean({n})}, attrs), "f8e4m3fn[n]");
}

} // namespace
