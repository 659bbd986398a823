//===- Bandwidth.h - how fast memory can be read -------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_MAIN_BANDWIDTH_H
#define TENON_RUNTIME_MAIN_BANDWIDTH_H

#include "runtime/support/Bytes.h"

namespace tenon::rt {

/// Bytes per second at which `threads` threads read `bytes` in the best of many
/// rounds that take `seconds`, once all of it was read before; 0 if it cannot
/// be measured. What fits into a cache is read from there, as a model would.
double readBandwidth(Bytes bytes, unsigned threads, double seconds = 0.2);

} // namespace tenon::rt

#endif // TENON_RUNTIME_MAIN_BANDWIDTH_H
