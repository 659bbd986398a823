//===- QuantMath.h - what importers of quantised ops share ---------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_FRONTEND_IMPORTERS_QUANTMATH_H
#define TENON_FRONTEND_IMPORTERS_QUANTMATH_H

#include "frontend/Emitter.h"

namespace tenon::frontend {

/// Elements of \p bits bits out of the bytes of the last dimension, the first
/// in the low bits: u8[..., n * 8 / bits].
ir::Value *unpackBits(Emitter &emit, ir::Value *bytes, int64_t bits);

} // namespace tenon::frontend

#endif // TENON_FRONTEND_IMPORTERS_QUANTMATH_H
