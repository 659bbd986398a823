//===- Bytes.h - unaligned little-endian reads, byte spans ----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_SUPPORT_BYTES_H
#define TENON_RUNTIME_SUPPORT_BYTES_H

#include <cstdint>
#include <cstring>
#include <span>

namespace tenon::rt {

using Bytes = std::span<const uint8_t>;

/// Reads a T from `at`, which need not be aligned. The hosts Tenon runs on are
/// little-endian, as are the formats it reads this way.
template <typename T> T readAs(const uint8_t *at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

/// True when [offset, offset + length) lies in `size` bytes.
inline bool inRange(uint64_t offset, uint64_t length, uint64_t size) {
  return offset <= size && length <= size - offset;
}

} // namespace tenon::rt

#endif // TENON_RUNTIME_SUPPORT_BYTES_H
