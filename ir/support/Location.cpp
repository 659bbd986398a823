//===- Location.cpp - where an op came from ------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/support/Location.h"
#include "llvm/ADT/STLExtras.h"

namespace tenon::ir {

void Location::merge(const Location &other) {
  if (this == &other)
    return;
  for (const std::string &node : other.nodes)
    if (!llvm::is_contained(nodes, node))
      nodes.push_back(node);
}

} // namespace tenon::ir
