//===- Instructions.h - single instructions against their definitions ----===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TENON_TEST_EMULATOR_INSTRUCTIONS_H
#define TENON_TEST_EMULATOR_INSTRUCTIONS_H

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::test {

/// Three operands, each in the low bits of its word.
struct Operands {
  uint64_t a, b, c;
};

/// PTX that computes a result from %a, %b and %c in registers of the given
/// widths, and what it must be by the PTX manual. Registers: %a, %b, %c of 64
/// bits, %ra ... of 32, %ha ... of 16; results %d, %r, %h; predicates %p, %q;
/// more of each: %d1, %r1, %h1 to 3.
struct Case {
  const char *text;
  char result; // 'd', 'r' or 'h'
  uint64_t (*expected)(const Operands &operands);
};

/// Runs every case on every triple and compares all bits.
void checkCases(const std::vector<Case> &cases,
                const std::vector<Operands> &values,
                const std::string &target = "sm_90");

/// All triples of these.
std::vector<Operands> triples(const std::vector<uint64_t> &values);

} // namespace tenon::test

#endif // TENON_TEST_EMULATOR_INSTRUCTIONS_H
