//===- SelfTest.h - inputs from files and answers stored in an artifact -===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_MAIN_SELFTEST_H
#define TENON_RUNTIME_MAIN_SELFTEST_H

#include "runtime/Session.h"

namespace tenon::rt {

/// Gives the session its inputs from arrays of those names; a single array
/// without a name (an .npy file) is the only input. Each input must be there,
/// and nothing else.
Status setInputs(Session &session, std::span<NpyArray> arrays);

/// Runs on the stored inputs of `golden` (see Payload) and compares with the
/// stored outputs; gives the largest absolute difference.
Result<double> compareGolden(Session &session, Bytes golden);

} // namespace tenon::rt

#endif // TENON_RUNTIME_MAIN_SELFTEST_H
