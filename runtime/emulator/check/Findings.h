//===- Findings.h - what the checkers report ------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_EMULATOR_CHECK_FINDINGS_H
#define TENON_RUNTIME_EMULATOR_CHECK_FINDINGS_H

#include <cstdint>
#include <mutex>
#include <string>

namespace tenon::emu {

enum class Fault : uint8_t {
  None,
  OutOfBounds,
  Misaligned,
  Uninitialised,
  SharedRace,
  GlobalRace,
  DivergentBarrier,
  PendingCopy,
  MissingFence,
  BadMask,
  Deadlock,
  BadInstruction, // operands that the instruction does not allow
  Trap,
  AssertFailed,
  CallStack,
  WriteToConstant,
};

/// A short name, "out-of-bounds", for tests and machines.
const char *nameOf(Fault fault);

/// The first finding of a launch; what follows it is mostly its consequence.
class Findings {
public:
  /// Keeps the first text that is reported.
  void report(Fault fault, std::string text) {
    std::lock_guard<std::mutex> lock(mutex);
    if (kind != Fault::None)
      return;
    kind = fault;
    message = std::move(text);
  }
  Fault fault() const { return kind; }
  const std::string &text() const { return message; }

private:
  std::mutex mutex;
  Fault kind = Fault::None;
  std::string message;
};

/// Which checks run; bounds and alignment always do.
struct Checks {
  bool initialised = true;
  bool races = true;

  /// From TENON_EMULATOR_CHECKS: "all" (the default), "bounds", or a list of
  /// "initialised" and "races".
  static Checks fromEnvironment();
};

} // namespace tenon::emu

#endif // TENON_RUNTIME_EMULATOR_CHECK_FINDINGS_H
