//===- CommandLine.cpp - the passes' flags -----------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/CommandLine.h"
#include "ir/OpDef.h"
#include "ir/support/Diag.h"
#include "passes/Pass.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace tenon;
using namespace tenon::passes;
using llvm::StringRef;
namespace cl = llvm::cl;

struct PassFlags::Flags {
  cl::OptionCategory &category;
  cl::SubCommand &command;

  cl::opt<std::string> stopAfter{
      "stop-after", cl::desc("run nothing behind this stage or pass"),
      cl::value_desc("STAGE|PASS"), cl::cat(category), cl::sub(command)};
  cl::list<std::string> dumpAfter{
      "dump-after", cl::desc("print the graph after these passes where they "
                             "changed it, or after these stages"),
      cl::value_desc("PASS|STAGE|all"), cl::CommaSeparated, cl::cat(category),
      cl::sub(command)};
  cl::opt<std::string> explain{
      "explain", cl::desc("print what this pass did and why not more"),
      cl::value_desc("PASS"), cl::cat(category), cl::sub(command)};
  cl::opt<std::string> remarks{
      "remarks", cl::desc("write what was and was not fused, as JSON or YAML"),
      cl::value_desc("FILE"), cl::cat(category), cl::sub(command)};
  cl::list<std::string> requireFused{
      "require-fused", cl::desc("fail with fewer ops of a kind than given"),
      cl::value_desc("attention:12,..."), cl::CommaSeparated,
      cl::cat(category), cl::sub(command)};
  cl::opt<uint64_t> rewriteLimit{
      "rewrite-limit", cl::desc("do the first N rewrites and no more"),
      cl::value_desc("N"), cl::init(UINT64_MAX), cl::cat(category),
      cl::sub(command)};
  cl::opt<bool> timing{"timing", cl::desc("print the time of each pass"),
                       cl::cat(category), cl::sub(command)};
  cl::opt<bool> verifyNumerics{
      "verify-numerics",
      cl::desc("evaluate before and after each pass and compare"),
      cl::cat(category), cl::sub(command)};
};

PassFlags::PassFlags(cl::OptionCategory &category, cl::SubCommand &command)
    : flags(new Flags{category, command}) {}

PassFlags::~PassFlags() = default;

namespace {

/// All stages that a module or a compilation goes through.
constexpr llvm::StringLiteral stages[] = {
    "imported", "canonical", "fused",   "selected",
    "planned",  "source",    "objects", "artifact"};

llvm::Error checkName(StringRef flag, StringRef name, bool allowStages) {
  if (findPass(name) || (allowStages && llvm::is_contained(stages, name)))
    return llvm::Error::success();
  std::string known;
  for (const PassInfo &pass : allPasses())
    known += (known.empty() ? "" : ", ") + pass.name.str();
  return userError("--{0}: there is no pass{1} '{2}'; passes are {3}", flag,
                   allowStages ? " or stage" : "", name, known);
}

llvm::Expected<std::pair<std::string, unsigned>> parseRequired(StringRef text) {
  auto [name, count] = text.split(':');
  unsigned number;
  if (count.getAsInteger(10, number))
    return userError("--require-fused: found '{0}', expected OP:COUNT such as "
                     "attention:12",
                     text);
  if (!ir::parseMnemonic(name))
    return userError("--require-fused: there is no op '{0}'", name);
  return std::pair(name.str(), number);
}

} // namespace

llvm::Expected<PassOptions> PassFlags::options() const {
  PassOptions options;
  options.stopAfter = flags->stopAfter;
  options.dumpAfter.assign(flags->dumpAfter.begin(), flags->dumpAfter.end());
  options.explain = flags->explain;
  options.remarksFile = flags->remarks;
  options.rewriteLimit = flags->rewriteLimit;
  options.timing = flags->timing;
  options.verifyNumerics = flags->verifyNumerics;
  if (!options.stopAfter.empty())
    if (llvm::Error error = checkName("stop-after", options.stopAfter, true))
      return error;
  for (const std::string &name : options.dumpAfter)
    if (name != "all")
      if (llvm::Error error = checkName("dump-after", name, true))
        return error;
  if (!options.explain.empty())
    if (llvm::Error error = checkName("explain", options.explain, false))
      return error;
  for (const std::string &text : flags->requireFused) {
    llvm::Expected<std::pair<std::string, unsigned>> required =
        parseRequired(text);
    if (!required)
      return required.takeError();
    options.requireFused.push_back(*required);
  }
  return options;
}
