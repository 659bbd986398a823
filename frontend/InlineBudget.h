//===- InlineBudget.h - how much a model's functions may expand to -------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_FRONTEND_INLINEBUDGET_H
#define TENON_FRONTEND_INLINEBUDGET_H

#include "llvm/Support/Error.h"
#include <cstdint>
#include <onnx-ml.pb.h>

namespace tenon::frontend {

/// Functions that call each other expand to any amount of work from a file of a
/// kilobyte. Adds up what was expanded; no real model comes near the limits.
class InlineBudget {
public:
  static constexpr uint64_t nodeLimit = 300'000;
  /// Of inputs, outputs and entries of attributes.
  static constexpr uint64_t partLimit = 10'000'000;

  /// A node of a graph or of a called function's body.
  llvm::Error addNode(const onnx::NodeProto &node);
  /// What a call of \p function takes besides its nodes.
  llvm::Error addCall(const onnx::FunctionProto &function);

private:
  llvm::Error check() const;
  uint64_t nodes = 0, parts = 0;
};

} // namespace tenon::frontend

#endif // TENON_FRONTEND_INLINEBUDGET_H
