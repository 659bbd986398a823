//===- Views.h - views instead of copies ---------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_CODEGEN_SELECT_VIEWS_H
#define TENON_CODEGEN_SELECT_VIEWS_H

/// \file
/// What reshape, transpose, slice and broadcast do to a strided view, with
/// sizes and strides as symbolic expressions. Nothing is copied; where no
/// strides say it, there is no view.

#include "ir/kernel/Program.h"

namespace tenon::codegen {

using ir::Dim;
using ir::Dims;
using kernel::View;

/// Whether the elements lie in row-major order without gaps, for all sizes.
bool isContiguous(const View &view);
/// Whether a step in dimension `i` is always as far as all of dimension i + 1,
/// so that both are one dimension for a kernel.
bool canMerge(const View &view, unsigned i);
/// \p view under \p shape, which has as many elements.
std::optional<View> reshapeView(const View &view, ir::ShapeRef shape);
View transposeView(const View &view, llvm::ArrayRef<int64_t> perm);
/// result[i] = view[starts + i * steps], sizes[d] of them in dimension d.
View sliceView(const View &view, llvm::ArrayRef<Dim> starts,
               llvm::ArrayRef<Dim> sizes, llvm::ArrayRef<int64_t> steps);
/// \p view repeated to \p shape as NumPy broadcasts. A dimension that may or
/// may not be 1 gets a stride that is 0 exactly where it is, unless
/// \p provedEqual knows better.
View broadcastView(const View &view, ir::ShapeRef shape,
                   llvm::function_ref<bool(Dim, Dim)> provedEqual);
/// Dimension \p i removed at index 0.
View dropDim(View view, unsigned i);
/// A dimension of size 1 put before dimension \p i.
View insertDim(View view, unsigned i);
/// Dimensions [first, last) as one, if their strides allow; an empty range
/// inserts a dimension of size 1.
std::optional<View> mergeDims(const View &view, unsigned first, unsigned last);

} // namespace tenon::codegen

#endif // TENON_CODEGEN_SELECT_VIEWS_H
