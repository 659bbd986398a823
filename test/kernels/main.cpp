//===- main.cpp - entry point of the kernel tests -------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/kernels/support.h"

#include <gtest/gtest.h>

namespace {
/// Each test has the same data, whichever run before it.
struct SeedEachTest : testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo &) override {
    test::generator().seed(std::mt19937::default_seed);
  }
};
} // namespace

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(new SeedEachTest);
  return RUN_ALL_TESTS();
}
