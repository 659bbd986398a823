//===- Target.cpp - the targets by name ----------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/target/Target.h"
#include "ir/support/Diag.h"

namespace tenon::codegen {

namespace {

struct TargetInfo {
  llvm::StringLiteral name, text;
};

constexpr TargetInfo targets[] = {
#define TN_TARGET(enumerator, name, text) {#name, text},
#include "codegen/target/Targets.def"
};

} // namespace

llvm::Expected<Target> parseTarget(llvm::StringRef name) {
  std::string known;
  for (unsigned i = 0; i < std::size(targets); ++i) {
    if (targets[i].name == name)
      return Target(i);
    known += (known.empty() ? "" : ", ") + targets[i].name.str();
  }
  return userError("there is no target '{0}', only {1}", name, known);
}

llvm::StringRef targetText(Target target) {
  return targets[unsigned(target)].text;
}

} // namespace tenon::codegen
