//===- Inflate.h - decompresses deflate streams -------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_INFLATE_H
#define TENON_RUNTIME_INFLATE_H

#include "runtime/support/Bytes.h"
#include "runtime/support/Status.h"

namespace tenon::rt {

/// Decompresses the raw deflate stream `from` (RFC 1951) into exactly `to`.
/// Never reads or writes outside the two; fails when the stream is damaged, or
/// gives fewer or more bytes.
Status inflate(Bytes from, std::span<uint8_t> to);

} // namespace tenon::rt

#endif // TENON_RUNTIME_INFLATE_H
