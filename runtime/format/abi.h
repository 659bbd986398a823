//===- abi.h - what a compiled kernel unit and the runtime agree on -------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A *unit* is one specialised kernel: a function `void unit(const tn_args *)`
/// with C linkage. Every thread of the team calls it with the same views and
/// parameters and its own `thread`; the unit does that thread's static share.
/// The runtime puts a barrier after each launch.
///
/// This header is included by kernels that the host compiler builds when a
/// model is compiled, so it stays C-compatible and free of other headers.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_FORMAT_ABI_H
#define TENON_RUNTIME_FORMAT_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// One operand of a launch: a strided window into a buffer. The rank and the
/// element type are known to the unit at compile time. Shapes and strides count
/// elements; a stride may be zero (a broadcast dimension) or negative.
typedef struct tn_view {
  char *data;
  const int64_t *shape;
  const int64_t *stride;
} tn_view;

/// What a unit is called with.
typedef struct tn_args {
  /// Operands in the order of the kernel's contract, results last.
  const tn_view *views;
  /// The launch's parameters (sizes, scalars that depend on symbolic
  /// dimensions), evaluated for the current shapes.
  const int64_t *params;
  /// Shared scratch memory of the launch, 64-byte aligned, or null. Its size is
  /// a formula in the plan. Contents are undefined at entry.
  char *scratch;
  /// Waits until every thread of the team has called it. Only kernels with more
  /// than one phase need it.
  void (*barrier)(const struct tn_args *args);
  /// Opaque to units; `barrier` uses it.
  void *team;
  /// This thread's index, 0 <= thread < threads.
  int32_t thread;
  int32_t threads;
} tn_args;

typedef void (*tn_unit)(const tn_args *args);

#ifdef __cplusplus
}
#endif

#endif // TENON_RUNTIME_FORMAT_ABI_H
