//===- GraphOrder.h - checking and sorting a graph's nodes ---------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_FRONTEND_GRAPHORDER_H
#define TENON_FRONTEND_GRAPHORDER_H

#include "frontend/Functions.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include <vector>

namespace tenon::frontend {

/// What a graph's nodes may refer to besides each other's outputs.
struct Surroundings {
  /// What defines a name in the graph itself ("graph input"), or "".
  llvm::function_ref<llvm::StringRef(llvm::StringRef)> definedHere;
  /// Whether an enclosing graph defines it.
  llvm::function_ref<bool(llvm::StringRef)> definedOutside;
};

/// The order in which to import \p nodes: as they are when each comes after
/// what it reads (ONNX demands that), else sorted (some quantisers shuffle
/// them). Errors: a name that is defined twice or not at all, a cycle.
llvm::Expected<std::vector<int>> orderNodes(const NodeList &nodes,
                                            const Surroundings &around);

} // namespace tenon::frontend

#endif // TENON_FRONTEND_GRAPHORDER_H
