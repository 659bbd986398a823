//===- NormMath.h - what importers of normalisations share ---------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_FRONTEND_IMPORTERS_NORMMATH_H
#define TENON_FRONTEND_IMPORTERS_NORMMATH_H

#include "frontend/Emitter.h"

namespace tenon::frontend {

/// gamma or beta with exactly the dimensions of \p x from \p axis on, to which
/// ONNX lets it broadcast. Null for one that is left out.
ir::Value *normOperand(Emitter &emit, ir::Value *operand, ir::Value *x,
                       int64_t axis, llvm::StringRef what);

/// The extra outputs of norms, in f32: the mean (when \p centred) and
/// 1 / sqrt(variance + epsilon), with sizes of 1 from \p axis on.
struct Statistics {
  ir::Value *mean = nullptr, *inverse = nullptr;
};
Statistics statistics(Emitter &emit, ir::Value *x, int64_t axis, double epsilon,
                      bool centred);

} // namespace tenon::frontend

#endif // TENON_FRONTEND_IMPORTERS_NORMMATH_H
