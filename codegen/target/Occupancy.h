//===- Occupancy.h - what of a kernel a multiprocessor holds --------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_CODEGEN_TARGET_OCCUPANCY_H
#define TENON_CODEGEN_TARGET_OCCUPANCY_H

namespace tenon::codegen {

/// Warps on a multiprocessor at the same time, and as many as it can hold.
struct Occupancy {
  unsigned warps = 0, most = 0;

  double share() const { return most ? double(warps) / most : 0; }
};

/// That of blocks of \p threads threads with \p registers registers each and
/// \p sharedBytes of shared memory, on architecture \p arch (90 for sm_90a), as
/// the CUDA C++ Programming Guide's tables of compute capabilities say. All 0
/// for an unknown architecture, no warps for a kernel that does not fit.
Occupancy occupancyOf(unsigned arch, unsigned threads, unsigned registers,
                      unsigned sharedBytes);

} // namespace tenon::codegen

#endif // TENON_CODEGEN_TARGET_OCCUPANCY_H
