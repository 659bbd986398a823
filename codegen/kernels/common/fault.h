//===- fault.h - what kernels find wrong with data ------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A kernel that meets data it cannot work with, such as an index out of range,
/// reports it and leaves out what it cannot do: the run ends after the launch,
/// with a message that names the node, the element and the limits. On a CPU
/// each thread has a record of its own, which keeps the smallest position that
/// the thread reports, and of all of them the smallest is told: a kernel that
/// goes on after a fault gives the same message for any number of threads. On a
/// device the launch has one record, of whoever is first.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_COMMON_FAULT_H
#define TENON_KERNELS_COMMON_FAULT_H

#include "kernels/common/form.h"
#include "runtime/format/abi.h"

#if defined(__CUDACC__)
#define TN_COLD inline __device__ __noinline__
#else
#define TN_COLD inline __attribute__((noinline, cold))
#endif

namespace tn {
inline namespace TN_FORM {

/// Records a fault. Out of line: the fast path is one comparison. (Of a
/// tn_args no address goes there, so that on a device it stays in registers.)
TN_COLD void record(tn_fault *known, tn_fault found) {
  if (!known)
    return;
#if defined(__CUDACC__)
  if (atomicCAS(&known->kind, TN_FAULT_NONE, found.kind) != TN_FAULT_NONE)
    return;
#else
  if (known->kind != TN_FAULT_NONE && known->position <= found.position)
    return;
#endif
  *known = found;
}

TN_FN void report(const tn_args *args, const tn_fault &found) {
  record(args->fault, found);
}

/// Brings an index into [0, size); negative ones count from the end. One out of
/// range is reported as element `position` of view `operand` and gives false.
TN_FN bool take_index(const tn_args *args, int64_t &index, int64_t size,
                      int operand, int axis, int64_t position) {
  int64_t at = index < 0 ? index + size : index;
  if (uint64_t(at) >= uint64_t(size)) [[unlikely]] {
    report(args, {TN_FAULT_INDEX, operand, axis, 0, position, index, size});
    return false;
  }
  index = at;
  return true;
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_COMMON_FAULT_H
