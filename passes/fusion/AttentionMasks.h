//===- AttentionMasks.h - what an attention's operands say by indices ----===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_PASSES_FUSION_ATTENTIONMASKS_H
#define TENON_PASSES_FUSION_ATTENTIONMASKS_H

#include "ir/Builder.h"

namespace tenon::passes {

/// What the conditions of a mask come to: bounds that attributes of attention
/// say, and a tensor.
struct Visibility {
  bool causal = false;
  ir::Dim queryOffset;
  /// Keys before the query's own that stay visible; -1 is no limit.
  int64_t windowLeft = -1;
  /// A boolean tensor for the rest, or null.
  ir::Value *mask = nullptr;

  bool isBounded() const { return causal || windowLeft >= 0; }
  bool hides() const { return mask || isBounded(); }
  /// Whether every query sees a key at least, the first.
  bool always() const {
    return !mask && windowLeft < 0 && (!causal || queryOffset.isAtLeast(0));
  }
};

/// Writes the bounds of \p visible to \p attrs.
void setBounds(ir::AttentionAttrs &attrs, const Visibility &visible);

/// Moves what \p condition, a boolean tensor over [..., Sq, Skv], says of
/// causality and sliding windows to \p visible, and what else it says to its
/// mask, with ops that \p builder makes.
void takeCondition(ir::Module &module, ir::Value *condition,
                   Visibility &visible, ir::Builder &builder);

/// Whether takeCondition would find a bound in \p condition, or that it is
/// always true, when there is none in \p visible yet.
bool hasBounds(ir::Module &module, ir::Value *condition,
               const Visibility &visible);

/// What \p x, of rank 4, repeats along its dimension \p axis, Hkv to n * Hkv,
/// head by head: x is reshape(broadcast(y)), and y, of rank 5, has a 1 behind
/// the heads. Null when it repeats nothing.
ir::Value *beforeRepeatedHeads(ir::Value *x, unsigned axis);

} // namespace tenon::passes

#endif // TENON_PASSES_FUSION_ATTENTIONMASKS_H
