//===- Sorting.h - lists whose length depends on data ----------*- C++ -*-===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_FRONTEND_IMPORTERS_SORTING_H
#define TENON_FRONTEND_IMPORTERS_SORTING_H

#include "frontend/Emitter.h"

namespace tenon::frontend {

/// The i64 indices [count] at which the list \p mask is not 0; the count is a
/// new symbol, named after \p name.
ir::Value *indicesWhere(Emitter &emit, ir::Value *mask, llvm::StringRef name);

/// A list (or the rows of lists) in order, and where each element was; equal
/// ones stay in order. Along the last dimension.
struct Sorted {
  ir::Value *values = nullptr, *order = nullptr;
};
Sorted sorted(Emitter &emit, ir::Value *x, bool largestFirst);

} // namespace tenon::frontend

#endif // TENON_FRONTEND_IMPORTERS_SORTING_H
