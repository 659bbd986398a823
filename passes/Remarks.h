//===- Remarks.h - what was and was not done -----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_PASSES_REMARKS_H
#define TENON_PASSES_REMARKS_H

#include "ir/support/Location.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include <string>
#include <vector>

namespace tenon::passes {

/// One candidate of one pass: fused, or the first condition that failed.
struct Remark {
  std::string pass;
  bool applied = false;
  ir::Location loc;
  /// Why not; empty when applied.
  std::string reason;

  /// remark: fuse-attention: not fused at '/layer.3/MatMul': reason
  void print(llvm::raw_ostream &os) const;
};

/// All remarks of a run, in order.
class Remarks {
public:
  void add(Remark remark) { list.push_back(std::move(remark)); }
  llvm::ArrayRef<Remark> all() const { return list; }
  /// How often \p pass applied.
  unsigned countApplied(llvm::StringRef pass) const;

  /// Writes \p path as YAML when it ends in .yaml or .yml, else as JSON: a list
  /// of {pass, applied, nodes, reason}.
  llvm::Error write(llvm::StringRef path) const;
  void writeJson(llvm::raw_ostream &os) const;
  void writeYaml(llvm::raw_ostream &os) const;

private:
  std::vector<Remark> list;
};

} // namespace tenon::passes

#endif // TENON_PASSES_REMARKS_H
