//===- Progress.cpp - progress on a terminal -----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/tenon/Progress.h"
#include "llvm/Support/Format.h"

using namespace llvm;
using namespace tenon;
using namespace tenon::tools;

Progress::Progress(raw_ostream &os) : os(os), shown(os.is_displayed()) {}

static double seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

void Progress::begin(StringRef stage) {
  if (!shown)
    return;
  Clock::time_point now = Clock::now();
  if (!current.empty())
    raw_string_ostream(done)
        << current << format(" %.1f s, ", seconds(now - stageStart));
  stageStart = now;
  current = stage.str();
  os << "\r\x1b[K" << done << current << " ...";
  os.flush();
}

double Progress::finish() {
  if (shown && !current.empty())
    os << "\r\x1b[K";
  current.clear();
  os.flush();
  return seconds(Clock::now() - start);
}
