//===- Canonicalize.cpp - one form for each computation ----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Pass.h"
#include "passes/canonical/Laws.h"

using namespace tenon;
using namespace tenon::passes;

namespace {

/// Applies the laws of all themes until none applies. Laws.h lists the forms
/// that result.
class Canonicalize final : public FuncPass {
public:
  Canonicalize() {
    addArithmeticLaws(laws);
    addLogicLaws(laws);
    addScaleLaws(laws);
    addBroadcastLaws(laws);
    addMovementLaws(laws);
    addReshapeLaws(laws);
    addSliceLaws(laws);
  }

  llvm::Expected<bool> runOnFunc(ir::Module &module, ir::Func &func,
                                 PassContext &context) override {
    return ir::applyPeepholes(module, func, laws, &context);
  }

private:
  ir::PeepholeSet laws;
};

} // namespace

std::unique_ptr<Pass> passes::createCanonicalize() {
  return std::make_unique<Canonicalize>();
}
