//===- plan_seeds.cpp - writes plans to fuzz from -----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/runtime/TestPlans.h"

#include <fstream>

/// usage: plan_seeds AFFINE SELECT
int main(int argc, char **argv) {
  using namespace tenon::test;
  std::vector<uint8_t> plans[] = {affinePlan(), selectPlan()};
  for (int i = 1; i < argc && i <= 2; ++i)
    std::ofstream(argv[i], std::ios::binary)
        .write(reinterpret_cast<const char *>(plans[i - 1].data()),
               long(plans[i - 1].size()));
  return argc == 3 ? 0 : 1;
}
