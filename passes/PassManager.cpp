//===- PassManager.cpp - running passes ----------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/PassManager.h"
#include "ir/support/Diag.h"
#include "ir/text/Names.h"
#include "ir/text/Text.h"
#include "ir/verify/Verify.h"
#include "passes/VerifyNumerics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include <chrono>

using namespace tenon;
using namespace tenon::passes;
using llvm::StringRef;

namespace {

std::string toText(const ir::Module &module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  ir::print(module, os);
  return text;
}

/// Calls \p visit with every constant of \p module.
void forEachConstant(const ir::Module &module,
                     llvm::function_ref<void(const ir::ConstantRef &)> visit) {
  for (const std::unique_ptr<ir::Func> &func : module.funcs)
    for (ir::Op &op : func->body)
      if (op.kind() == ir::OpKind::Const)
        visit(op.attrs<ir::ConstAttrs>().value);
}

/// Parses what was printed and prints it again.
llvm::Error checkRoundTrip(const ir::Module &module, const std::string &text) {
  // Under the names of the text: those of the model need not differ.
  ir::ConstantNames names(module, ir::PrintOptions().maxInlineElements);
  llvm::StringMap<ir::ConstantRef> weights;
  forEachConstant(module, [&](const ir::ConstantRef &constant) {
    if (StringRef name = names.of(constant.get()); !name.empty())
      weights[name] = constant;
  });
  llvm::Expected<ir::ParsedFile> parsed =
      ir::parse(llvm::MemoryBufferRef(text, "round-trip"),
                [&](StringRef name) { return weights.lookup(name); });
  if (!parsed)
    return withPrefix(parsed.takeError(),
                      "internal error: the text form does not parse: ");
  if (toText(*parsed->module) != text)
    return userError("internal error: the text form does not round-trip");
  return llvm::Error::success();
}

} // namespace

bool PassManager::wantsDump(StringRef name) const {
  return llvm::is_contained(options.dumpAfter, name) ||
         llvm::is_contained(options.dumpAfter, "all");
}

void PassManager::dump(const ir::Module &module, StringRef after) {
  log << "// after " << after << '\n';
  ir::print(module, log);
}

llvm::Expected<bool> PassManager::run(ir::Module &module,
                                      const PassInfo &pass) {
  if (hasStopped)
    return false;
  context.passName = pass.name;
  std::string before = options.paranoid ? toText(module) : std::string();
  std::unique_ptr<ir::Module> original =
      options.verifyNumerics ? module.clone() : nullptr;

  auto start = std::chrono::steady_clock::now();
  llvm::Expected<bool> changed = pass.create()->run(module, context);
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (!changed)
    return withPrefix(changed.takeError(), pass.name + ": ");

  Time &time = times[pass.name];
  time.seconds += took.count();
  ++time.runs;
  time.changes += *changed;
  if (llvm::Error error = check(module, pass, *changed, before, original.get()))
    return withPrefix(std::move(error), pass.name + ": ");
  if (*changed && wantsDump(pass.name))
    dump(module, pass.name);
  hasStopped = options.stopAfter == pass.name;
  return changed;
}

llvm::Error PassManager::check(ir::Module &module, const PassInfo &pass,
                               bool changed, const std::string &before,
                               const ir::Module *original) {
  if (changed && options.verify)
    if (llvm::Error error = ir::verify(module))
      return error;
  if (options.paranoid) {
    std::string after = toText(module);
    if (!changed && after != before)
      return userError("internal error: it changed the module and denies it");
    if (changed && after == before)
      return userError("internal error: it claims a change and made none");
    if (changed)
      if (llvm::Error error = checkRoundTrip(module, after))
        return error;
  }
  // Another interface is another function.
  if (changed && original &&
      original->entry().inputs.size() == module.entry().inputs.size())
    return verifyNumerics(*original, module, log);
  return llvm::Error::success();
}

llvm::Error PassManager::reachStage(ir::Module &module, ir::Stage stage) {
  if (hasStopped)
    return llvm::Error::success();
  module.stage = stage;
  StringRef name = ir::stageName(stage);
  if (options.verify)
    if (llvm::Error error = ir::verify(module))
      return withPrefix(std::move(error), "stage " + name + ": ");
  if (llvm::is_contained(options.dumpAfter, name))
    dump(module, name);
  hasStopped = options.stopAfter == name;
  return llvm::Error::success();
}

void PassManager::printTiming() const {
  llvm::SmallVector<const llvm::StringMapEntry<Time> *, 32> sorted;
  for (const auto &entry : times)
    sorted.push_back(&entry);
  llvm::sort(sorted, [](const auto *a, const auto *b) {
    if (a->second.seconds != b->second.seconds)
      return a->second.seconds > b->second.seconds;
    return a->first() < b->first();
  });
  for (const auto *entry : sorted)
    log << llvm::format("%10.3f ms  %2u runs  %2u changed  ",
                        entry->second.seconds * 1e3, entry->second.runs,
                        entry->second.changes)
        << entry->first() << '\n';
}
