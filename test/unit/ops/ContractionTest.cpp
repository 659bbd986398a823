//===- ContractionTest.cpp - inference of matmul and conv ----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "OpTest.h"

using namespace tenon::ir;

namespace {

class ContractionTest : public OpTest {
protected:
  std::string matmul(llvm::ArrayRef<Value *> operands) {
    return infer(OpKind::MatMul, operands, MatMulAttrs());
  }
};

TEST_F(ContractionTest, MatMulFollowsNumPy) {
  EXPECT_EQ(matmul({f32({n, 3}), f32({3, m})}), "f32[n, m]");
  EXPECT_EQ(matmul({f32({3}), f32({3, m})}), "f32[m]");
  EXPECT_EQ(matmul({f32({n, 3}), f32({3})}), "f32[n]");
  EXPECT_EQ(matmul({f32({3}), f32({3})}), "f32");
  EXPECT_EQ(matmul({f32({2, 1, 4, 3}), f32({5, 3, m})}), "f32[2, 5, 4, m]");
  EXPECT_EQ(constraints(), "");
}

TEST_F(ContractionTest, MatMulComparesTheContractingDimensions) {
  EXPECT_EQ(matmul({f32({2, 768}), f32({64, 8})}),
            "error: contracting dimensions differ: 768 in operand 'a', 64 in "
            "operand 'b'");
  EXPECT_EQ(matmul({f32({2, n}), f32({m, 8})}), "f32[2, 8]");
  EXPECT_EQ(constraints(), "n == m");
}

TEST_F(ContractionTest, MatMulRefusesWhatItCannotMultiply) {
  EXPECT_EQ(matmul({f32({2, 2, 3}), f32({4, 3, 2})}),
            "error: batch dimensions do not broadcast: [2, 2, 3] in operand "
            "'a', [4, 3, 2] in operand 'b'");
  for (const std::string &message :
       {matmul({f32({}), f32({3, 2})}),
        matmul({f32({2, 3}), argument(ElementType::F64, {3, 2})}),
        matmul({argument(ElementType::Bool, {2, 3}),
                argument(ElementType::Bool, {3, 2})}),
        matmul({f32({2, 3}), f32({3, 2}), f32({2})})})
    EXPECT_EQ(message.substr(0, 7), "error: ") << message;
}

ConvAttrs conv(int64_t stride, int64_t dilation, int64_t low, int64_t high,
               int64_t groups = 1) {
  ConvAttrs attrs;
  attrs.strides = {stride};
  attrs.dilations = {dilation};
  attrs.padLow = {low};
  attrs.padHigh = {high};
  attrs.groups = groups;
  return attrs;
}

TEST_F(ContractionTest, ConvCountsWindows) {
  EXPECT_EQ(infer(OpKind::Conv, {f32({n, 4, 10}), f32({6, 2, 3})},
                  conv(2, 2, 1, 0, 2)),
            "f32[n, 6, 4]");
  EXPECT_EQ(
      infer(OpKind::Conv, {f32({1, 1, n}), f32({1, 1, 3})}, conv(1, 1, 1, 1)),
      "f32[1, 1, n]");
}

TEST_F(ContractionTest, ConvChecksGroups) {
  EXPECT_EQ(infer(OpKind::Conv, {f32({1, 4, 9}), f32({5, 2, 3})},
                  conv(1, 1, 0, 0, 2)),
            "error: 5 filters cannot be split into 2 groups");
  std::string message = infer(OpKind::Conv, {f32({1, 3, 9}), f32({4, 2, 3})},
                              conv(1, 1, 0, 0, 2));
  EXPECT_NE(message.find("channels"), std::string::npos) << message;
}

} // namespace
