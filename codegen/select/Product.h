//===- Product.h - the operands of a matmul ------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_CODEGEN_SELECT_PRODUCT_H
#define TENON_CODEGEN_SELECT_PRODUCT_H

#include "codegen/select/Epilogue.h"
#include "codegen/select/Lowering.h"

namespace tenon::codegen {

/// A matmul with all operands of rank at least 2: a[..., M, K], b[..., K, N],
/// c[..., M, N]; a and b may have fewer dimensions than c.
struct Product {
  View a, b, c;

  Dim m() const { return c.shape[c.rank() - 2]; }
  Dim n() const { return c.shape.back(); }
  Dim k() const { return a.shape.back(); }
  ir::ShapeRef batch() const { return ir::ShapeRef(c.shape).drop_back(2); }
};

/// What a constant matrix is a window of, if sizes are known now and there is
/// one matrix for all batches.
std::optional<kernel::Weight::Matrix> constantMatrix(const Lowering &lowering,
                                                     const View &b);

/// Completes the launch of a kernel whose own operands are in \p spec.
void addEpilogue(LaunchSpec &spec, const Product &p, const Epilogue &epilogue);

/// Makes one matrix of the rows of all batches, which share b, if the strides
/// of a, c and \p epilogue's operands allow.
void flattenRows(Product &p, Epilogue &epilogue);

} // namespace tenon::codegen

#endif // TENON_CODEGEN_SELECT_PRODUCT_H
