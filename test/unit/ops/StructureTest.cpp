//===- StructureTest.cpp - inference of constants, dims and maps ---------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "OpTest.h"

using namespace tenon::ir;

namespace {

class StructureTest : public OpTest {
protected:
  DimsAttrs dims(Dims values, bool scalar = false) {
    DimsAttrs attrs;
    attrs.values = std::move(values);
    attrs.scalar = scalar;
    return attrs;
  }
  BindDimsAttrs symbols(Dims names) {
    BindDimsAttrs attrs;
    attrs.symbols = std::move(names);
    return attrs;
  }
};

TEST_F(StructureTest, Const) {
  ConstAttrs attrs;
  EXPECT_EQ(infer(OpKind::Const, {}, attrs),
            "error: attribute 'value' is missing");
  attrs.value = Constant::ints({1, 2, 3});
  EXPECT_EQ(infer(OpKind::Const, {}, attrs), "i64[3]");
}

TEST_F(StructureTest, Dims) {
  EXPECT_EQ(infer(OpKind::Dims, {}, dims({n, 3})), "i64[2]");
  EXPECT_EQ(infer(OpKind::Dims, {}, dims({})), "i64[0]");
  EXPECT_EQ(infer(OpKind::Dims, {}, dims({n}, true)), "i64");
  EXPECT_EQ(infer(OpKind::Dims, {}, dims({n, m}, true)),
            "error: a scalar has 2 values in attribute 'values', expected 1");
}

TEST_F(StructureTest, BindDims) {
  Value *sizes = argument(ElementType::I64, {2});
  EXPECT_EQ(infer(OpKind::BindDims, {sizes}, symbols({n, m})), "");
  EXPECT_EQ(infer(OpKind::BindDims, {sizes}, symbols({n})),
            "error: the number of elements of operand 'values' is 2, expected "
            "1");
  EXPECT_EQ(infer(OpKind::BindDims, {sizes}, symbols({n, n + Dim(1)})),
            "error: attribute 'symbols' holds n + 1, expected names of symbols "
            "only");
  EXPECT_EQ(infer(OpKind::BindDims, {f32({2})}, symbols({n, m})),
            "error: operand 'values' has element type f32, expected an integer "
            "type");
}

TEST_F(StructureTest, MapHasTheBroadcastOfItsInputs) {
  Value *x = f32({n, 1}), *y = argument(ElementType::I64, {3});
  Block body;
  Builder inside(&body);
  Value *a = body.addArgument({ElementType::F32, {}});
  Value *b = body.addArgument({ElementType::I64, {}});
  inside.buildYield({inside.buildNeg({a}), inside.buildEqual({b, b})});
  NoAttrs attrs;
  const TensorType *types[] = {&x->type, &y->type};
  InferContext context;
  ASSERT_FALSE(
      llvm::errorToBool(inferMap({OpKind::Map, types, attrs, &body}, context)));
  ASSERT_EQ(context.results.size(), 2u);
  EXPECT_EQ(context.results[0], (TensorType{ElementType::F32, {n, 3}}));
  EXPECT_EQ(context.results[1], (TensorType{ElementType::Bool, {n, 3}}));

  const TensorType *swapped[] = {&y->type, &x->type};
  EXPECT_EQ(
      llvm::toString(inferMap({OpKind::Map, swapped, attrs, &body}, context)),
      "argument 0 of the body is f32, expected i64 as in operand 'inputs "
      "#0'");
}

TEST_F(StructureTest, OnlyScalarsAreYielded) {
  EXPECT_EQ(infer(OpKind::Yield, {f32({2})}),
            "error: operand 'values #0' has rank 1, expected 0");
}

} // namespace
