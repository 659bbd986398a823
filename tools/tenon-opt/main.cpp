//===- main.cpp - tenon-opt: passes on graphs as text ------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
/// \file
///   tenon-opt [--PASS ...] [--pipeline=canonical|fused]
///             [--lower=selected|planned|source] FILE.tn
///
/// Runs the named passes in the order given, then the pipeline up to a stage,
/// and prints the module; or, with --lower, each function as a program or the
/// source of its units. A FILE.tnk is checked and printed again.

#include "codegen/Codegen.h"
#include "ir/kernel/Program.h"
#include "ir/support/Diag.h"
#include "ir/text/SideFile.h"
#include "ir/text/Text.h"
#include "ir/verify/Verify.h"
#include "passes/Pipelines.h"
#include "tools/common/LoadModule.h"
#include "tools/common/PassFlags.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace tenon;
namespace cl = llvm::cl;

namespace {

/// An index into allPasses(); a type of its own for the command line's sake.
enum class PassNumber : unsigned {};

/// How far --lower goes.
enum class Lower { No, Selected, Planned, Source };

/// The command line of tenon-opt.
struct Options {
  cl::OptionCategory category{"tenon-opt"};
  cl::opt<std::string> input{cl::Positional, cl::desc("FILE.tn"), cl::init("-"),
                             cl::cat(category)};
  cl::opt<std::string> output{"o", cl::desc("where to print (stdout)"),
                              cl::value_desc("FILE"), cl::init("-"),
                              cl::cat(category)};
  cl::opt<ir::Stage> pipeline{
      "pipeline", cl::desc("bring the module up to this stage"),
      cl::values(clEnumValN(ir::Stage::Canonical, "canonical", ""),
                 clEnumValN(ir::Stage::Fused, "fused", "")),
      cl::init(ir::Stage::Imported), cl::cat(category)};
  cl::opt<Lower> lower{
      "lower", cl::desc("print programs instead of the module"),
      cl::values(clEnumValN(Lower::Selected, "selected", "kernels chosen"),
                 clEnumValN(Lower::Planned, "planned", "buffers placed"),
                 clEnumValN(Lower::Source, "source", "units as C++")),
      cl::init(Lower::No), cl::cat(category)};
  cl::opt<std::string> cpu{"cpu", cl::desc("CPU forms, for --lower=source"),
                           cl::value_desc("native|LIST"), cl::init("native"),
                           cl::cat(category)};
  cl::opt<int64_t> maxContext{
      "max-context", cl::init(0), cl::value_desc("N"),
      cl::desc("for --lower: caches become state with room for N")};
  cl::opt<bool> lastLogitsOnly{
      "last-logits-only",
      cl::desc("for --lower: logits of the last token alone")};
  cl::opt<std::string> target{"target", cl::desc("target, for --lower"),
                              cl::value_desc("cpu|cuda"), cl::init("cpu"),
                              cl::cat(category)};
  cl::opt<bool> noLocations{"no-locations",
                            cl::desc("print without locations"),
                            cl::cat(category)};
  cl::list<PassNumber> passes{cl::desc("Passes, run in the order given:"),
                            cl::cat(category)};
  tools::PassFlags passFlags;

  Options() {
    for (const auto &[i, pass] : llvm::enumerate(passes::allPasses()))
      passes.getParser().addLiteralOption(pass.name, PassNumber(i), pass.doc);
  }
};

llvm::Error runPasses(ir::Module &module, const Options &flags,
                      const passes::PassOptions &options) {
  if (llvm::Error error = passes::checkNames(options))
    return error;
  passes::Remarks remarks;
  passes::PassManager manager(options, remarks, llvm::errs());
  for (PassNumber number : flags.passes) {
    llvm::Expected<bool> changed = manager.run(
        module, passes::allPasses()[static_cast<unsigned>(number)]);
    if (!changed)
      return changed.takeError();
  }
  if (flags.pipeline != ir::Stage::Imported && !manager.stopped()) {
    llvm::Expected<passes::PipelineResult> result = passes::runPipeline(
        module, flags.pipeline, options, remarks, llvm::errs());
    return result.takeError();
  }
  if (options.timing)
    manager.printTiming();
  if (llvm::Error error = passes::checkRequired(module, options, remarks))
    return error;
  return options.remarksFile.empty() ? llvm::Error::success()
                                     : remarks.write(options.remarksFile);
}

/// Prints the programs of all functions, or their units' source.
llvm::Error printLowered(const ir::Module &module, const Options &flags,
                         llvm::raw_ostream &os) {
  codegen::TargetOptions target;
  auto forms = codegen::parseCpuForms(flags.cpu);
  if (!forms)
    return forms.takeError();
  target.forms = *forms;
  target.maxContext = flags.maxContext;
  target.lastLogitsOnly = flags.lastLogitsOnly;
  auto which = codegen::parseTarget(flags.target);
  if (!which)
    return which.takeError();
  target.target = *which;
  for (const auto &func : module.funcs) {
    llvm::Expected<kernel::Program> program =
        codegen::select(module, *func, target);
    if (!program)
      return program.takeError();
    if (flags.lower != Lower::Selected)
      codegen::plan(*program);
    if (flags.lower != Lower::Source) {
      kernel::print(*program, os);
      continue;
    }
    for (const auto &source : codegen::emitUnits(program->units, target))
      os << "// " << source.name << '\n' << source.text;
  }
  return llvm::Error::success();
}

llvm::Error reprintProgram(const Options &flags, llvm::raw_ostream &os) {
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(flags.input);
  if (!buffer)
    return userError("cannot read '{0}': {1}", flags.input.getValue(),
                     buffer.getError().message());
  llvm::Expected<kernel::Program> program = kernel::parse(**buffer);
  if (!program)
    return program.takeError();
  kernel::print(*program, os);
  return llvm::Error::success();
}

llvm::Error run(const Options &flags) {
  llvm::Expected<passes::PassOptions> options = flags.passFlags.options();
  if (!options)
    return options.takeError();
  // This is a tool for tests: the passes are always checked.
  options->paranoid = true;
  std::error_code code;
  llvm::raw_fd_ostream os(flags.output, code, llvm::sys::fs::OF_Text);
  if (code)
    return userError("cannot write '{0}': {1}", flags.output.getValue(),
                     code.message());
  if (llvm::StringRef(flags.input).ends_with(".tnk"))
    return reprintProgram(flags, os);
  llvm::Expected<std::unique_ptr<ir::Module>> module =
      tools::loadModule(flags.input);
  if (!module)
    return module.takeError();
  if (llvm::Error error = runPasses(**module, flags, *options))
    return withPrefix(std::move(error), flags.input + ": error: ");
  if (flags.lower != Lower::No) {
    llvm::Error error = printLowered(**module, flags, os);
    return error ? withPrefix(std::move(error), flags.input + ": error: ")
                 : llvm::Error::success();
  }
  ir::PrintOptions print;
  print.locations = !flags.noLocations;
  ir::print(**module, os, print);
  return llvm::Error::success();
}

} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  // LLVM's shared library brings the flags of all its code generators.
  cl::ResetCommandLineParser();
  Options options;
  cl::ParseCommandLineOptions(argc, argv, "passes on graphs as text\n");
  if (llvm::Error error = run(options)) {
    llvm::logAllUnhandledErrors(std::move(error), llvm::errs());
    return 1;
  }
  return 0;
}
