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

/// What a unit can find wrong with the data it is given.
typedef enum tn_fault_kind {
  TN_FAULT_NONE = 0,
  /// An element of `operand`, an index along `axis` of something else, is
  /// outside [-limit, limit).
  TN_FAULT_INDEX = 1,
  /// An element of `operand`, a length or a position, is outside [0, limit].
  TN_FAULT_LENGTH = 2,
  /// The size `value` of dimension `axis` of `operand` is greater than `limit`.
  TN_FAULT_SIZE = 3,
  /// Dimension `axis` of `operand` is empty: there is nothing to choose from.
  TN_FAULT_EMPTY = 4,
} tn_fault_kind;

/// A fault: where a launch's data are wrong, with what the message needs.
typedef struct tn_fault {
  int32_t kind;    ///< a tn_fault_kind
  int32_t operand; ///< number of the view
  int32_t axis;
  int32_t reserved;
  int64_t position; ///< the element's number in the view, row-major
  int64_t value, limit;
} tn_fault;

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
  /// Where this thread leaves its fault, the one with the smallest position
  /// that it finds; null where nobody asks. After a fault the launch's results
  /// may be anything and the run ends, but as ever the unit stays within its
  /// views and meets the others at each barrier.
  tn_fault *fault;
} tn_args;

typedef void (*tn_unit)(const tn_args *args);

#ifdef __cplusplus
}
#endif

#endif // TENON_RUNTIME_FORMAT_ABI_H
