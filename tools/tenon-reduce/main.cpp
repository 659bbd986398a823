//===- main.cpp - tenon-reduce: the smallest graph that shows a fault ----===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
/// \file
///   tenon-reduce [--test=COMMAND] [--PASS ...] [--pipeline=canonical|fused]
///                [-o OUT.tn] MODEL
///
/// Makes the graph in MODEL (.tn or .onnx) smaller for as long as COMMAND exits
/// with 0 for it; the file's name is appended to COMMAND. Without --test, for
/// as long as the passes are wrong: they crash, fail, break the IR, or results
/// after one of them differ from those before.
///
///   tenon-reduce --bisect [--test=COMMAND] ... MODEL
///
/// Finds the first rewrite of the passes after which COMMAND exits with 0 for
/// the graph that they leave; without --test, after which they are wrong.

#include "ir/support/Diag.h"
#include "ir/text/SideFile.h"
#include "ir/text/Text.h"
#include "ir/verify/Verify.h"
#include "passes/Pipelines.h"
#include "passes/VerifyNumerics.h"
#include "tools/common/LoadModule.h"
#include "tools/common/PassFlags.h"
#include "tools/tenon-reduce/Edits.h"
#include "tools/tenon-reduce/Predicate.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"

using namespace tenon;
using namespace tenon::reduce;
namespace cl = llvm::cl;

namespace {

/// An index into allPasses(); a type of its own for the command line's sake.
enum class PassNumber : unsigned {};

/// The command line of tenon-reduce.
struct Flags {
  cl::OptionCategory category{"tenon-reduce"};
  cl::opt<std::string> input{cl::Positional, cl::desc("MODEL"), cl::Required,
                             cl::cat(category)};
  cl::opt<std::string> output{"o", cl::desc("where to print (stdout)"),
                              cl::value_desc("FILE"), cl::init("-"),
                              cl::cat(category)};
  cl::opt<std::string> test{
      "test", cl::value_desc("COMMAND"),
      cl::desc("exits with 0 for a file that is interesting"),
      cl::cat(category)};
  cl::opt<bool> bisect{"bisect", cl::desc("find the first wrong rewrite"),
                       cl::cat(category)};
  cl::opt<unsigned> timeout{"timeout", cl::value_desc("SECONDS"), cl::init(60),
                            cl::desc("for each try (60)"), cl::cat(category)};
  cl::opt<ir::Stage> pipeline{
      "pipeline",
      cl::desc("the passes up to this stage (fused, unless passes "
               "are named)"),
      cl::values(clEnumValN(ir::Stage::Canonical, "canonical", ""),
                 clEnumValN(ir::Stage::Fused, "fused", "")),
      cl::init(ir::Stage::Imported), cl::cat(category)};
  cl::list<PassNumber> passes{cl::desc("Passes, run in the order given:"),
                              cl::cat(category)};

  Flags() {
    for (const auto &[i, pass] : llvm::enumerate(passes::allPasses()))
      passes.getParser().addLiteralOption(pass.name, PassNumber(i), pass.doc);
  }
};

/// What is done to one model.
class Reducer {
public:
  Reducer(const Flags &flags, std::string folder)
      : flags(flags), command(flags.test, folder, flags.timeout) {
    for (PassNumber number : flags.passes)
      passes.names.push_back(
          passes::allPasses()[static_cast<unsigned>(number)].name.str());
    passes.pipeline = flags.pipeline;
    if (passes.names.empty() && passes.pipeline == ir::Stage::Imported)
      passes.pipeline = ir::Stage::Fused;
  }

  llvm::Expected<std::unique_ptr<ir::Module>>
  reduce(std::unique_ptr<ir::Module> module);
  llvm::Error bisect(const ir::Module &module, llvm::raw_ostream &os);

private:
  bool isInteresting(const ir::Module &module);
  bool isWrongAfter(const ir::Module &module, uint64_t limit);
  std::string textAfter(const ir::Module &module, uint64_t limit);
  bool tryEdits(std::unique_ptr<ir::Module> &module, const EditList &list);

  const Flags &flags;
  Command command;
  Passes passes;
  unsigned tries = 0;
};

bool Reducer::isInteresting(const ir::Module &module) {
  ++tries;
  if (!flags.test.empty())
    return command.isInteresting(module);
  Passes checked = passes;
  checked.options.paranoid = checked.options.verifyNumerics = true;
  std::optional<int> status = runApart(
      [&] {
        std::unique_ptr<ir::Module> copy = module.clone();
        llvm::Error error = runPasses(*copy, checked, llvm::nulls());
        bool failed = bool(error);
        llvm::consumeError(std::move(error));
        return int(failed);
      },
      flags.timeout);
  return status != 0;
}

/// Applies one edit of \p list after another that leaves a valid, interesting
/// module; whether any did.
bool Reducer::tryEdits(std::unique_ptr<ir::Module> &module,
                       const EditList &list) {
  bool any = false;
  for (bool again = true; again;) {
    again = false;
    for (const Edit &edit : list(*module)) {
      std::unique_ptr<ir::Module> candidate = module->clone();
      if (!edit(*candidate))
        continue;
      removeUnused(*candidate);
      if (llvm::Error error = ir::verify(*candidate)) {
        llvm::consumeError(std::move(error));
        continue;
      }
      if (!isInteresting(*candidate))
        continue;
      module = std::move(candidate);
      any = again = true;
      break;
    }
  }
  return any;
}

llvm::Expected<std::unique_ptr<ir::Module>>
Reducer::reduce(std::unique_ptr<ir::Module> module) {
  if (!isInteresting(*module))
    return flags.test.empty()
               ? userError("the passes do nothing wrong with this model")
               : userError("'{0}' does not exit with 0 for the model itself",
                           flags.test.getValue());
  size_t before = module->entry().body.size();
  for (bool again = true; again;) {
    again = false;
    for (const EditList &list : allEdits())
      again |= tryEdits(module, list);
  }
  llvm::errs() << "note: " << before << " ops became "
               << module->entry().body.size() << " in " << tries << " tries\n";
  return module;
}

/// Whether the first \p limit rewrites make \p module interesting.
bool Reducer::isWrongAfter(const ir::Module &module, uint64_t limit) {
  Passes limited = passes;
  limited.options.rewriteLimit = limit;
  // With a command, what is left is judged; without, all that happens.
  std::optional<int> status = runApart(
      [&] {
        std::unique_ptr<ir::Module> copy = module.clone();
        if (llvm::Error error = runPasses(*copy, limited, llvm::nulls())) {
          llvm::consumeError(std::move(error));
          return 1;
        }
        if (!flags.test.empty())
          return int(command.isInteresting(*copy));
        llvm::Error error =
            passes::verifyNumerics(module, *copy, llvm::nulls());
        bool wrong = bool(error);
        llvm::consumeError(std::move(error));
        return int(wrong);
      },
      flags.timeout);
  return status != 0;
}

std::string Reducer::textAfter(const ir::Module &module, uint64_t limit) {
  Passes limited = passes;
  limited.options.rewriteLimit = limit;
  std::unique_ptr<ir::Module> copy = module.clone();
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::consumeError(runPasses(*copy, limited, os));
  return text;
}

llvm::Error Reducer::bisect(const ir::Module &module, llvm::raw_ostream &os) {
  if (!isWrongAfter(module, ~0ull))
    return userError("nothing is wrong after all rewrites");
  if (isWrongAfter(module, 0))
    return userError("it is wrong before the first rewrite that is counted: "
                     "name passes, to find which it is");
  uint64_t good = 0, bad = 1;
  while (!isWrongAfter(module, bad)) {
    good = bad;
    bad *= 2;
  }
  while (bad - good > 1) {
    uint64_t middle = good + (bad - good) / 2;
    (isWrongAfter(module, middle) ? bad : good) = middle;
  }
  // The passes say which rewrite is the last; all but a crash gets so far.
  std::string said;
  std::optional<int> status = runApart(
      [&] { return int(textAfter(module, bad).empty()); }, flags.timeout);
  if (status)
    said = textAfter(module, bad);
  os << "the first wrong rewrite is number " << bad
     << " (--rewrite-limit=" << bad << ")\n"
     << said;
  return llvm::Error::success();
}

llvm::Error run(const Flags &flags) {
  if (llvm::Error error = tools::refuseEmpty(flags.test))
    return error;
  llvm::Expected<std::unique_ptr<ir::Module>> module =
      tools::loadModule(flags.input);
  if (!module)
    return module.takeError();
  llvm::SmallString<128> folder;
  if (std::error_code code =
          llvm::sys::fs::createUniqueDirectory("tenon-reduce", folder))
    return userError("cannot make a temporary folder: {0}", code.message());
  Reducer reducer(flags, folder.str().str());
  llvm::Error error = llvm::Error::success();
  if (flags.bisect) {
    error = llvm::joinErrors(std::move(error),
                             reducer.bisect(**module, llvm::outs()));
  } else if (auto reduced = reducer.reduce(std::move(*module)); !reduced) {
    error = llvm::joinErrors(std::move(error), reduced.takeError());
  } else {
    ir::PrintOptions print;
    print.locations = false;
    if (flags.output == "-")
      ir::print(**reduced, llvm::outs(), print);
    else
      error = llvm::joinErrors(std::move(error),
                               ir::writeFile(**reduced, flags.output, print));
  }
  llvm::sys::fs::remove_directories(folder);
  return error;
}

} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  // LLVM's shared library brings the flags of all its code generators.
  cl::ResetCommandLineParser();
  Flags flags;
  cl::ParseCommandLineOptions(argc, argv,
                              "the smallest graph that shows a fault\n");
  if (llvm::Error error = run(flags)) {
    llvm::logAllUnhandledErrors(std::move(error), llvm::errs(),
                                "tenon-reduce: error: ");
    return 1;
  }
  return 0;
}
