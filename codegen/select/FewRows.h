//===- FewRows.h - what GPUs do for a few rows at a time -----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_CODEGEN_SELECT_FEWROWS_H
#define TENON_CODEGEN_SELECT_FEWROWS_H

/// \file
/// A model that writes text runs with one row most of the time, and with many
/// when it reads a prompt. Of what is slow in the other form, both forms are
/// launches of the plan, each with a grid that is empty where the other's turn
/// is: the sizes of a run choose. Where few rows are the rule, the kernels for
/// them take up neighbours that stand alone elsewhere: the norm in front of a
/// product, the gate behind it.

#include "codegen/select/Product.h"
#include "codegen/select/Quantised.h"

namespace tenon::codegen {

/// So many rows, or queries, are few.
inline constexpr int64_t fewRows = 8;

/// 1 where \p value is at most \p limit (or above it), else 0.
Dim isAtMost(Dim value, int64_t limit);
Dim isAbove(Dim value, int64_t limit);

/// Launches the form for few rows of \p op, whose rows are flat already, if it
/// has one: a product with a matrix whose columns are contiguous, or become so
/// as a weight (p.b is that view then), or with \p codes. Gives the condition
/// under which another form must do the work: 1 where there is none for few,
/// 0 where there are never many.
Dim launchFewRows(Lowering &lowering, const ir::Op &op, Product &p,
                  const QuantisedMatrix *codes, const Epilogue &epilogue);

/// The form for any number of rows of a product with \p codes, but for the
/// epilogue: tiles, else the one for few rows, which reads codes again for each
/// eight.
LaunchSpec codesProduct(Lowering &lowering, const Product &p,
                        const QuantisedMatrix &codes, const Epilogue &epilogue);

/// Whether a kernel on GPUs multiplies by \p codes.
bool fitsGpu(const QuantisedMatrix &codes);

} // namespace tenon::codegen

#endif // TENON_CODEGEN_SELECT_FEWROWS_H
