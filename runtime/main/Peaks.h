//===- Peaks.h - what the processor computes at most ---------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_MAIN_PEAKS_H
#define TENON_RUNTIME_MAIN_PEAKS_H

namespace tenon::rt {

/// Operations a second that threads do together in loops that do nothing else;
/// 0 where there is no such unit.
struct Peaks {
  double fma = 0;   ///< multiply-adds of f32 from registers, the widest
  double bf16 = 0;  ///< products of AMX's tiles, of numbers that are not zero:
  double bytes = 0; ///< zeros are multiplied faster
  unsigned vectorBits = 0;
};

/// Takes the best of many short repetitions, each unit for `seconds`: a limit
/// is wanted, and another program's work would lower a mean.
Peaks measurePeaks(unsigned threads, double seconds = 0.1);

} // namespace tenon::rt

#endif // TENON_RUNTIME_MAIN_PEAKS_H
