//===- Sizes.cpp - sizes for people ---------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/support/Sizes.h"

#include "runtime/support/Status.h"

namespace tenon::rt {

std::string describeBytes(double bytes) {
  if (bytes < 1e4)
    return format("%.0f B", bytes);
  if (bytes < 1e6)
    return format("%.1f kB", bytes / 1e3);
  return bytes < 1e10 ? format("%.1f MB", bytes / 1e6)
                      : format("%.2f GB", bytes / 1e9);
}

} // namespace tenon::rt
