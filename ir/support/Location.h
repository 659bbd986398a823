//===- Location.h - where an op came from --------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_IR_SUPPORT_LOCATION_H
#define TENON_IR_SUPPORT_LOCATION_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace tenon::ir {

/// The ONNX nodes an op stands for: one when imported, several when fused.
/// Printed `loc("/layer.0/MatMul", "/layer.0/Add")`.
struct Location {
  llvm::SmallVector<std::string, 1> nodes;

  Location() = default;
  explicit Location(llvm::StringRef node) : nodes{node.str()} {}
  bool empty() const { return nodes.empty(); }
  /// Appends the nodes of \p other that are not here yet.
  void merge(const Location &other);
  /// The first node's name, or "".
  llvm::StringRef name() const {
    return nodes.empty() ? llvm::StringRef() : llvm::StringRef(nodes.front());
  }
  bool operator==(const Location &) const = default;
};

} // namespace tenon::ir

#endif // TENON_IR_SUPPORT_LOCATION_H
