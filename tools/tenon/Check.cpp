//===- Check.cpp - tenon check -------------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/Codegen.h"
#include "frontend/Import.h"
#include "ir/support/Diag.h"
#include "passes/Pipelines.h"
#include "tools/common/ImportFlags.h"
#include "tools/common/PassFlags.h"
#include "tools/common/Precision.h"
#include "tools/tenon/CheckErrors.h"
#include "tools/tenon/Commands.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace tenon;
using namespace tenon::tools;

namespace {

/// Says what a model needs and whether Tenon can compile it; everything that is
/// missing at once. With --precision or --weights also how much these choices
/// change what the model gives.
class CheckCommand final : public Command {
public:
  CheckCommand()
      : Command("check", "say what a model needs and whether it compiles"),
        importFlags(sub), passFlags(sub) {}

  int run() override {
    if (model.empty())
      return fail(userError("no model given: tenon check MODEL.onnx"));
    Expected<frontend::ModelSummary> summary = frontend::summarizeOnnx(model);
    if (!summary)
      return fail(summary.takeError());
    frontend::print(*summary, outs());
    if (!summary->unsupported.empty())
      return 1;
    if (Error error = estimate())
      return fail(std::move(error));
    if (Error error = compareChoices())
      return fail(std::move(error));
    return 0;
  }

private:
  cl::opt<std::string> model{cl::Positional, cl::desc("MODEL.onnx"),
                             cl::sub(sub)};
  cl::opt<std::string> inputs{
      "inputs", cl::value_desc("F.npz"),
      cl::desc("what to run on for --precision and --weights (made up)"),
      cl::sub(sub)};
  ImportFlags importFlags;
  PassFlags passFlags;

  /// Each of --precision and --weights that is given, and both of them.
  static std::vector<Choice> choicesOf(const passes::PassOptions &given) {
    passes::PassOptions none = given;
    none.precision = passes::Precision::Model;
    none.weights = {};
    none.halves = passes::Halves::Weights;
    Choice stored{"", none}, quantised{"", none};
    if (given.precision != passes::Precision::Model) {
      stored.options.precision = given.precision;
      stored.flags =
          "--precision=" + passes::precisionName(given.precision).str();
    }
    if (given.weights.bits) {
      quantised.options.weights = given.weights;
      quantised.flags = "--weights=int" + std::to_string(given.weights.bits);
      if (given.weights.block)
        quantised.flags += ":" + std::to_string(given.weights.block);
    }
    std::vector<Choice> choices;
    for (const Choice &choice : {stored, quantised})
      if (!choice.flags.empty())
        choices.push_back(choice);
    if (choices.size() == 2) {
      stored.options.weights = given.weights;
      choices.push_back({stored.flags + " " + quantised.flags, stored.options});
    }
    return choices;
  }

  Error compareChoices() {
    Expected<passes::PassOptions> options = passFlags.options();
    if (!options)
      return options.takeError();
    codegen::TargetOptions target; // which precisions are for others
    if (Error error = setPrecision(options->precision, "", target))
      return error;
    Expected<frontend::ImportOptions> import = importFlags.options();
    if (!import)
      return import.takeError();
    ErrorCheck check{model, std::move(*import), inputs, choicesOf(*options)};
    if (check.choices.empty())
      return Error::success();
    if (Error error = printErrors(check, outs()))
      return withPrefix(std::move(error), model + ": error: ");
    return Error::success();
  }

  /// Compiles up to the plan, which knows memory and work as formulas.
  Error estimate() {
    Expected<std::unique_ptr<ir::Module>> module = frontend::importOnnx(model);
    if (!module)
      return module.takeError();
    passes::PassOptions options;
    options.halves = passes::Halves::Weights;
    passes::Remarks remarks;
    Expected<passes::PipelineResult> fused = passes::runPipeline(
        **module, ir::Stage::Fused, options, remarks, errs());
    if (!fused)
      return withPrefix(fused.takeError(), model + ": error: ");
    Expected<kernel::Program> program =
        codegen::lower(**module, (*module)->entry());
    if (!program)
      return withPrefix(program.takeError(), model + ": error: ");
    ir::Dim flops = 0;
    for (const kernel::Launch &launch : program->launches)
      flops = flops + launch.flops;
    outs() << "compiles for cpu: " << program->launches.size()
           << " launches of " << program->units.size() << " kernels\n"
           << "memory: " << program->peakFormula << "\n"
           << "work:   " << flops << " floating-point operations\n";
    return Error::success();
  }
};

} // namespace

std::unique_ptr<Command> tenon::tools::makeCheckCommand() {
  return std::make_unique<CheckCommand>();
}
