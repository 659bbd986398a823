//===- Pass.cpp - what a pass is -----------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Pass.h"

using namespace tenon;
using namespace tenon::passes;
using llvm::StringRef;

bool PassContext::allow(StringRef rule, const ir::Op &root) {
  if (rewriteCount >= options.rewriteLimit)
    return false;
  ++rewriteCount;
  if (rewriteCount == options.rewriteLimit)
    explainTo << "note: --rewrite-limit: the last rewrite is number "
              << rewriteCount << ", " << passName << " (" << rule << ") at "
              << ir::describe(root) << '\n';
  return true;
}

void PassContext::simplified(StringRef law, const ir::Location &loc) {
  if (isExplained())
    explainTo << passName << ": " << law << " at '" << loc.name() << "'\n";
}

void PassContext::applied(StringRef rule, const ir::Location &loc,
                          llvm::ArrayRef<ir::Op *> ops) {
  Remark remark{rule.str(), /*applied=*/true, loc, ""};
  if (isExplained())
    remark.print(explainTo);
  remarks.add(std::move(remark));
}

void PassContext::missed(StringRef rule, const ir::Location &loc,
                         StringRef reason) {
  Remark remark{rule.str(), /*applied=*/false, loc, reason.str()};
  if (isExplained())
    remark.print(explainTo);
  remarks.add(std::move(remark));
}

llvm::Expected<bool> FuncPass::run(ir::Module &module, PassContext &context) {
  bool changed = false;
  for (const std::unique_ptr<ir::Func> &func : module.funcs) {
    llvm::Expected<bool> one = runOnFunc(module, *func, context);
    if (!one)
      return one.takeError();
    changed |= *one;
  }
  return changed;
}

llvm::Expected<bool> RulePass::runOnFunc(ir::Module &module, ir::Func &func,
                                         PassContext &context) {
  llvm::SmallVector<ir::Rule *, 4> list;
  for (const std::unique_ptr<ir::Rule> &rule : rules)
    list.push_back(rule.get());
  return ir::applyRules(module, func, list, &context);
}

llvm::ArrayRef<PassInfo> tenon::passes::allPasses() {
  static const PassInfo passes[] = {
#define TN_PASS(Class, flag, doc) {llvm::StringLiteral(flag), create##Class,    \
                                   llvm::StringLiteral(doc)},
#include "passes/Passes.def"
  };
  return passes;
}

const PassInfo *tenon::passes::findPass(StringRef name) {
  for (const PassInfo &info : allPasses())
    if (info.name == name)
      return &info;
  return nullptr;
}
