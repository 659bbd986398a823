//===- Progress.h - progress on a terminal -------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_TOOLS_TENON_PROGRESS_H
#define TENON_TOOLS_TENON_PROGRESS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>
#include <string>

namespace tenon::tools {

/// Shows the stage that runs and how long each took, in one line, when the
/// stream is a terminal; says nothing otherwise.
class Progress {
public:
  explicit Progress(llvm::raw_ostream &os);
  ~Progress() { finish(); }
  void begin(llvm::StringRef stage);
  /// Clears the line; returns the seconds since the start.
  double finish();

private:
  using Clock = std::chrono::steady_clock;
  llvm::raw_ostream &os;
  bool shown;
  Clock::time_point start = Clock::now(), stageStart = start;
  std::string done, current;
};

} // namespace tenon::tools

#endif // TENON_TOOLS_TENON_PROGRESS_H
