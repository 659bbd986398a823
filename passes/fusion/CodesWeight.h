//===- CodesWeight.h - matrices of codes side by side --------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_PASSES_FUSION_CODESWEIGHT_H
#define TENON_PASSES_FUSION_CODESWEIGHT_H

#include "ir/Builder.h"
#include "llvm/ADT/ArrayRef.h"
#include <optional>
#include <string>

namespace tenon::passes {

/// A matrix [K, N] as importers spell it out that is stored as codes:
///
///   cast(codes[N, blocks, block]) [- zero[N, blocks, 1]] * scale[N, blocks, 1]
///
/// then moved to its shape. Kernels multiply by the codes themselves
/// (passes/analysis/PackedWeights.h).
struct CodesWeight {
  ir::ConstantRef codes;
  llvm::SmallVector<ir::Op *, 8> steps; ///< the cast first

  int64_t columns() const { return codes->shape()[0]; }
};

/// \p weight, if it is one.
std::optional<CodesWeight> codesWeight(const ir::Value *weight);

/// Why the matrices cannot be one with the columns of all; nothing if they can.
std::optional<std::string> notJoinable(llvm::ArrayRef<CodesWeight> weights);

/// That matrix.
ir::Value *joinColumns(llvm::ArrayRef<CodesWeight> weights,
                       ir::Builder &builder);

} // namespace tenon::passes

#endif // TENON_PASSES_FUSION_CODESWEIGHT_H
