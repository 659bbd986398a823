//===- main.cpp - the emulator's tests ------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include <cstdlib>
#include <gtest/gtest.h>

int main(int argc, char **argv) {
  setenv("TENON_EMULATED_ARCH", "sm_90a", 0);
  setenv("TENON_EMULATED_MEMORY", "64M", 0);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
