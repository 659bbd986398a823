//===- Checksum.h - checksums of plans, weights and zip members -----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_SUPPORT_CHECKSUM_H
#define TENON_RUNTIME_SUPPORT_CHECKSUM_H

#include "runtime/support/Bytes.h"

#include <cstddef>
#include <cstdint>

namespace tenon::rt {

/// 64-bit hash of `bytes` (the public XXH64 algorithm). Guards against damage,
/// not against an attacker.
uint64_t checksum(Bytes bytes, uint64_t seed = 0);

/// Block size of `blockChecksum`.
inline constexpr size_t checksumBlock = size_t(4) << 20;

/// Checksum of long data that many threads may compute: the checksum of the
/// checksums of its 4 MiB blocks. `threads` >= 1.
uint64_t blockChecksum(Bytes bytes, unsigned threads = 1);

/// CRC-32 as in zip files.
uint32_t crc32(Bytes bytes, uint32_t crc = 0);

} // namespace tenon::rt

#endif // TENON_RUNTIME_SUPPORT_CHECKSUM_H
