//===- Profile.h - where the time of a run went --------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_MAIN_PROFILE_H
#define TENON_RUNTIME_MAIN_PROFILE_H

#include "runtime/Session.h"

#include <string>

namespace tenon::rt {

/// What launches do in one run.
struct LaunchCost {
  size_t launches = 0;
  int64_t flops = 0, bytes = 0;
  double milliseconds = 0; ///< 0 where no profile was taken

  void add(const LaunchCost &other);
};

/// Launch `launch` in the session's last run.
LaunchCost costOf(const Session &session, size_t launch);

/// A line for each kernel, with rates and their shares of what the machine does
/// at most, and the launches that took longest, named by ONNX nodes. The
/// machine's limits are measured here, where a CPU ran; reading is of
/// `weights`.
std::string profileText(const Session &session, Bytes weights);

/// A trace of the session's last run that Perfetto and Chrome open: a row for
/// each thread, a slice for each launch, named by ONNX nodes.
std::string traceJson(const Session &session);

} // namespace tenon::rt

#endif // TENON_RUNTIME_MAIN_PROFILE_H
