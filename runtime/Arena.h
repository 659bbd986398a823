//===- Arena.h - memory for a segment's temporaries ---------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_ARENA_H
#define TENON_RUNTIME_ARENA_H

#include "runtime/support/Status.h"

#include <cstddef>
#include <cstdint>

namespace tenon::rt {

/// One block of memory that grows on demand and never shrinks. Pages cost
/// nothing until a kernel touches them. Its start is 64-byte aligned, and at a
/// large page where the block is big, so that the kernel can use those.
class Arena {
public:
  Arena() = default;
  Arena(const Arena &) = delete;
  Arena &operator=(const Arena &) = delete;
  ~Arena();

  /// Makes at least `bytes` available. The contents and the address may change.
  Status reserve(uint64_t bytes);
  /// Never null after a successful reserve().
  char *data() const { return start; }

private:
  void *base = nullptr;
  size_t mapped = 0;
  char *start = nullptr;
  uint64_t capacity = 0;
};

} // namespace tenon::rt

#endif // TENON_RUNTIME_ARENA_H
