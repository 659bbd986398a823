//===- AttentionScores.h - what stands between q k^T and the softmax -----===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_PASSES_FUSION_ATTENTIONSCORES_H
#define TENON_PASSES_FUSION_ATTENTIONSCORES_H

#include "ir/Op.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>
#include <string>

namespace tenon::passes {

/// The scores of an attention, read from the softmax towards the product:
///
///   scores = softcap * tanh(scale * (q k^T) / softcap) + masks
struct AttentionScores {
  /// The product of queries and transposed keys.
  ir::Op *product = nullptr;
  /// Its operands without the scalar factors in front of them.
  ir::Value *query = nullptr, *keyTransposed = nullptr;
  double scale = 1, softcap = 0;
  /// Tensors that are added to the scores.
  llvm::SmallVector<ir::Value *, 2> additive;
  /// Where the scores stay (or, negated, where they are replaced by `fill`).
  struct Condition {
    ir::Value *value;
    bool negated;
  };
  llvm::SmallVector<Condition, 2> conditions;
  /// What the conditions put in place of a score: finite and hugely negative,
  /// or -inf.
  bool infiniteFill = false;
};

/// Reads the scores that \p softmax normalises. When they are not an
/// attention's, \p reason says why and the result is empty.
std::optional<AttentionScores> readAttentionScores(const ir::Op &softmax,
                                                   std::string &reason);

} // namespace tenon::passes

#endif // TENON_PASSES_FUSION_ATTENTIONSCORES_H
