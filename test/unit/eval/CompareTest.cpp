//===- CompareTest.cpp - comparing tensors -------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/eval/Compare.h"
#include "gtest/gtest.h"
#include <limits>

using namespace tenon::ir;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();

Tensor tensor(ElementType element, llvm::ArrayRef<int64_t> shape,
              llvm::ArrayRef<double> values) {
  Tensor result(element, shape);
  for (size_t i = 0; i != values.size(); ++i)
    result.set(i, values[i]);
  return result;
}

Tensor floats(llvm::ArrayRef<double> values) {
  return tensor(ElementType::F32, {int64_t(values.size())}, values);
}

TEST(Compare, NanAndInfinityEqualThemselves) {
  EXPECT_TRUE(compare(floats({nan, inf, -inf}), floats({nan, inf, -inf}), {})
                  .equal);
  EXPECT_FALSE(compare(floats({nan}), floats({1}), {1, 1}).equal);
  EXPECT_FALSE(compare(floats({inf}), floats({-inf}), {1, 1}).equal);
  EXPECT_FALSE(compare(floats({1}), floats({inf}), {1, 1}).equal);
}

TEST(Compare, ToleranceIsAbsolutePlusRelative) {
  EXPECT_TRUE(compare(floats({101}), floats({100}), {0.005, 0.5}).equal);
  EXPECT_FALSE(compare(floats({101.5}), floats({100}), {0.005, 0.5}).equal);
}

TEST(Compare, NamesTheWorstElement) {
  Comparison result = compare(
      tensor(ElementType::F32, {2, 2}, {1, 2, 3, 8}),
      tensor(ElementType::F32, {2, 2}, {1, 2.5, 3, 4}), {0, 0.1});
  EXPECT_FALSE(result.equal);
  EXPECT_EQ(result.mismatches, 2u);
  EXPECT_EQ(result.worst, 3u);
  EXPECT_EQ(result.maxAbsolute, 4);
  EXPECT_EQ(result.message, "2 of 4 elements differ, the worst at [1, 1]: "
                            "found 8, expected 4 (relative rms 0.71)");
}

TEST(Compare, IntegersIgnoreTolerance) {
  EXPECT_FALSE(compare(tensor(ElementType::I64, {}, {3}),
                       tensor(ElementType::I64, {}, {4}), {10, 10})
                   .equal);
}

TEST(Compare, TypesAndShapesMustBeEqual) {
  EXPECT_EQ(compare(floats({1}), tensor(ElementType::F64, {1, 1}, {1}), {})
                .message,
            "found f32[1], expected f64[1, 1]");
}

} // namespace
