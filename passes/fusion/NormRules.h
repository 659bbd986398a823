//===- NormRules.h - what layer norm and RMS norm share ------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_PASSES_FUSION_NORMRULES_H
#define TENON_PASSES_FUSION_NORMRULES_H

#include "ir/match/Rewriter.h"

namespace tenon::passes {

/// numerator / sqrt(variance + epsilon) in each spelling: divided by the root,
/// or multiplied by its reciprocal.
ir::Pattern dividedByRoot(ir::Pattern numerator, ir::Pattern variance,
                          double &epsilon);

/// x^2 as a product or a power.
ir::Pattern squareOf(ir::Value *&x);

/// Why \p mean (a reduce_mean) is not a norm's: over the last dimensions of its
/// operand with the rank kept, in f32 or a half; or nullopt.
std::optional<std::string> notTrailing(const ir::Op &mean);

/// Whether \p value has exactly the dimensions that \p norm normalises, behind
/// ones at most: a gamma or beta.
bool isNormParameter(const ir::Value *value, const ir::Op &norm);
/// Such a value without the leading ones.
ir::Value *asNormParameter(ir::Value *value, const ir::Op &norm,
                           ir::Builder &builder);

} // namespace tenon::passes

#endif // TENON_PASSES_FUSION_NORMRULES_H
