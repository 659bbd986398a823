//===- RotaryTable.h - the angles' cosines and sines of rotary forms -----===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_PASSES_FUSION_ROTARYTABLE_H
#define TENON_PASSES_FUSION_ROTARYTABLE_H

#include "ir/Builder.h"

namespace tenon::passes {

/// How a table holds each of n angles twice along its last dimension.
enum class Doubling {
  Halves, ///< a0 .. an-1 a0 .. an-1
  Pairs,  ///< a0 a0 a1 a1 ..
};

/// Whether the last dimension of \p table, [..., 2 n], has every value twice,
/// as
/// \p doubling says. Followed: elementwise ops, reshapes, transposes and
/// broadcasts of the other dimensions, gathers of rows, concat(x, x), repeats,
/// and constants by their contents.
bool isDoubled(ir::Value *table, Doubling doubling);

/// \p table, for which isDoubled holds, with each value once: [..., n].
ir::Value *halved(ir::Value *table, Doubling doubling, ir::Builder &builder);

} // namespace tenon::passes

#endif // TENON_PASSES_FUSION_ROTARYTABLE_H
