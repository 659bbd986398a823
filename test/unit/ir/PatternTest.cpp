//===- PatternTest.cpp - what patterns do and do not match ---------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/match/Pattern.h"
#include "ir/text/Text.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"

using namespace tenon::ir;

namespace {

/// Values and indices of a top_k, and a sum of the values with themselves.
class TopKResults : public testing::Test {
protected:
  void SetUp() override {
    llvm::Expected<ParsedFile> file = parse(llvm::MemoryBufferRef(R"(
func @main(%x: f32[8]) -> (f32[3], i64[3]) {
  %values, %indices = top_k %x {axis = 0, k = 3} : f32[3], i64[3]
  %sum = add %values, %values : f32[3]
  %twice = add %indices, %indices : i64[3]
  return %sum, %twice
}
)",
                                                                  "test.tn"));
    ASSERT_TRUE(bool(file)) << llvm::toString(file.takeError());
    module = std::move(file->module);
    Op *end = module->entry().body.terminator();
    sum = end->operand(0), twice = end->operand(1);
    values = sum->def()->operand(0), indices = twice->def()->operand(0);
  }

  std::unique_ptr<Module> module;
  Value *sum = nullptr, *twice = nullptr, *values = nullptr, *indices = nullptr;
};

TEST_F(TopKResults, AnOpPatternMeansTheFirstResult) {
  EXPECT_TRUE(match(values, m_TopK(m_Any())));
  EXPECT_FALSE(match(indices, m_TopK(m_Any())));
  EXPECT_TRUE(match(indices, m_Result(1, m_TopK(m_Any()))));
  EXPECT_FALSE(match(values, m_Result(1, m_TopK(m_Any()))));
}

TEST_F(TopKResults, AFailedAlternativeLeavesNothing) {
  // That result 1 was wanted before says nothing of the second alternative.
  EXPECT_FALSE(match(
      indices, m_AnyOf(m_Result(1, m_Relu(m_Any())), m_TopK(m_Any()))));
  EXPECT_TRUE(match(indices, m_AnyOf(m_Result(1, m_Relu(m_Any())),
                                     m_Result(1, m_TopK(m_Any())))));
  // Nor where the first alternative matched and what followed did not.
  Pattern noTopK = m_If(m_Any(), [](Value *) { return false; }, "never");
  EXPECT_FALSE(match(twice, m_Add(m_AnyOf(m_Result(1, m_Any()), m_Any()),
                                  m_TopK(noTopK))));
}

TEST_F(TopKResults, TheNumberHoldsForOneOperandOnly) {
  Pattern second = m_Result(1, m_TopK(m_Any()));
  EXPECT_TRUE(match(twice, m_Add(second, second)));
  EXPECT_FALSE(match(twice, m_Add(m_Result(1, m_Any()), m_TopK(m_Any()))));
  EXPECT_TRUE(match(sum, m_Add(m_TopK(m_Any()), m_TopK(m_Any()))));
}

} // namespace
