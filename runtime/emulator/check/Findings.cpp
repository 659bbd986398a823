//===- Findings.cpp - what the checkers report ----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/emulator/check/Findings.h"

#include <cstdlib>
#include <cstring>

using namespace tenon::emu;

const char *tenon::emu::nameOf(Fault fault) {
  static constexpr const char *names[] = {"none",
                                          "out-of-bounds",
                                          "misaligned",
                                          "uninitialised",
                                          "shared-race",
                                          "global-race",
                                          "divergent-barrier",
                                          "pending-copy",
                                          "missing-fence",
                                          "bad-mask",
                                          "deadlock",
                                          "bad-instruction",
                                          "trap",
                                          "assert",
                                          "call-stack",
                                          "write-to-constant"};
  return names[static_cast<unsigned>(fault)];
}

Checks Checks::fromEnvironment() {
  Checks checks;
  const char *text = std::getenv("TENON_EMULATOR_CHECKS");
  if (!text || std::strcmp(text, "all") == 0)
    return checks;
  checks.initialised = std::strstr(text, "initialised") != nullptr;
  checks.races = std::strstr(text, "races") != nullptr;
  return checks;
}
