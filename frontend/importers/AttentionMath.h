//===- AttentionMath.h - what importers of attention share ---------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_FRONTEND_IMPORTERS_ATTENTIONMATH_H
#define TENON_FRONTEND_IMPORTERS_ATTENTIONMATH_H

#include "frontend/Emitter.h"

namespace tenon::frontend {

/// One attention, with q[B, Sq, H, D], k[B, Skv, Hkv, D], v[B, Skv, Hkv, Dv]
/// and a mask that broadcasts to [B, H, Sq, Skv] (null: none).
struct AttentionParts {
  ir::Value *q = nullptr, *k = nullptr, *v = nullptr, *mask = nullptr;
  ir::AttentionAttrs attrs;
};

/// As one op: [B, Sq, H, Dv].
ir::Value *emitAttention(Emitter &emit, const AttentionParts &parts);

/// What elementary ops compute on the way, each [B, H, Sq, Skv].
struct AttentionScores {
  ir::Value *scaled = nullptr;  ///< scale * q k^T
  ir::Value *capped = nullptr;  ///< after softcap
  ir::Value *masked = nullptr;  ///< plus mask and causality
  ir::Value *weights = nullptr; ///< softmax, masked rows as `masked_row` says
};
/// For ops that also want the scores.
AttentionScores emitScores(Emitter &emit, const AttentionParts &parts);
/// weights times v: [B, Sq, H, Dv].
ir::Value *emitWeighted(Emitter &emit, ir::Value *weights, ir::Value *v);

/// A scalar that may be infinite.
ir::Value *constantScalar(Emitter &emit, ir::ElementType type, double value);

/// [B, S, H * D] -> [B, S, H, D]
ir::Value *splitHeads(Emitter &emit, ir::Value *x, int64_t heads,
                      llvm::StringRef what);
/// [B, S, H, D] -> [B, S, H * D]
ir::Value *mergeHeads(Emitter &emit, ir::Value *x);
/// [B, H, S, D] <-> [B, S, H, D]
ir::Value *swapHeads(Emitter &emit, ir::Value *x);
/// bool[1, 1, Sq, Skv]: key j is at most query i + offset.
ir::Value *causalMask(Emitter &emit, ir::Dim queries, ir::Dim keys,
                      ir::Value *offset);

} // namespace tenon::frontend

#endif // TENON_FRONTEND_IMPORTERS_ATTENTIONMATH_H
