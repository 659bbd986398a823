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
#include "tools/tenon/Commands.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace tenon;
using namespace tenon::tools;

namespace {

/// Says what a model needs and whether Tenon can compile it; everything that is
/// missing at once.
class CheckCommand final : public Command {
public:
  CheckCommand()
      : Command("check", "say what a model needs and whether it compiles") {}

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
    return 0;
  }

private:
  cl::opt<std::string> model{cl::Positional, cl::desc("MODEL.onnx"),
                             cl::sub(sub)};

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
