//===- Explain.cpp - tenon explain ----------------------------------------===//
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
#include "tools/common/LoadModule.h"
#include "tools/common/PassFlags.h"
#include "tools/common/Precision.h"
#include "tools/tenon/Commands.h"
#include "tools/tenon/ExplainArtifact.h"
#include "tools/tenon/ExplainTable.h"
#include "llvm/BinaryFormat/Magic.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace tenon;
using namespace tenon::tools;

namespace {

/// Tensor cores serve what names a tensor-core form; the rest is ordinary f32.
Units unitsOf(const kernel::Unit &unit) {
  Units units = unit.kernel == "attention_mma" || unit.kernel == "gemm_sm90"
                    ? Units::Half
                    : Units::F32;
  for (const kernel::ConfigMember &member : unit.config) {
    if (member.value == "int8_t" || member.value == "tn::e4m3")
      return Units::Byte;
    if (member.value == "tn::Math::tensor")
      units = Units::Half;
    if (member.value == "tn::Math::tf32")
      units = Units::Tf32;
  }
  return units;
}

class ExplainCommand final : public Command {
public:
  ExplainCommand()
      : Command("explain", "say what each kernel of a model or artifact costs "
                           "at least on a GPU"),
        importFlags(sub), passFlags(sub) {}

  int run() override {
    if (Error error = explain())
      return fail(std::move(error));
    return 0;
  }

private:
  cl::opt<std::string> model{cl::Positional, cl::desc("MODEL.onnx|OUT"),
                             cl::sub(sub)};
  cl::opt<std::string> device{
      "device", cl::init("h200"), cl::value_desc("LIST"),
      cl::desc("GPUs to compare: h200, a100, ..."), cl::sub(sub)};
  ImportFlags importFlags;
  cl::opt<std::string> inputs{
      "inputs", cl::value_desc("F.npz"),
      cl::desc("an artifact's inputs: the emulator runs it and counts"),
      cl::sub(sub)};
  cl::opt<std::string> report{
      "emulator-report", cl::value_desc("FILE"),
      cl::desc("take the counts from what such a run has written"),
      cl::sub(sub)};
  cl::opt<bool> eachLaunch{
      "launches", cl::desc("list each launch with its node"), cl::sub(sub)};
  PassFlags passFlags;

  Error explain();
  Error explainModel(ArrayRef<const GpuPeaks *> gpus);
  Expected<std::unique_ptr<ir::Module>> fusedModule();
  Expected<std::vector<Work>> workOf(const kernel::Program &program);
};

Expected<std::unique_ptr<ir::Module>> ExplainCommand::fusedModule() {
  Expected<frontend::ImportOptions> import = importFlags.options();
  if (!import)
    return import.takeError();
  Expected<passes::PassOptions> options = passFlags.options();
  if (!options)
    return options.takeError();
  Expected<std::unique_ptr<ir::Module>> module = loadModule(model, *import);
  if (!module)
    return module.takeError();
  passes::Remarks remarks;
  Expected<passes::PipelineResult> fused = passes::runPipeline(
      **module, ir::Stage::Fused, *options, remarks, errs());
  if (!fused)
    return withPrefix(fused.takeError(), model + ": error: ");
  return module;
}

/// Every size must be a number by now.
Expected<std::vector<Work>>
ExplainCommand::workOf(const kernel::Program &program) {
  std::vector<Work> all;
  for (const kernel::Launch &launch : program.launches) {
    if (launch.kind != kernel::LaunchKind::Kernel)
      continue;
    auto flops = launch.flops.constant(), bytes = launch.bytes.constant();
    if (!flops || !bytes) {
      std::string open;
      for (const kernel::Symbol &symbol : program.symbols)
        open += (open.empty() ? "--dim " : " --dim ") + symbol.name + "=N";
      return userError("{0}: error: the model's sizes are open; give them: {1}",
                       model, open);
    }
    const kernel::Unit &unit = program.units[launch.unit];
    all.push_back({launch.unit, std::string(unit.kernel),
                   launch.loc.name().str(), double(*flops), double(*bytes),
                   unitsOf(unit)});
  }
  return all;
}

Error ExplainCommand::explainModel(ArrayRef<const GpuPeaks *> gpus) {
  Expected<std::unique_ptr<ir::Module>> module = fusedModule();
  if (!module)
    return module.takeError();
  codegen::TargetOptions options;
  options.target = codegen::Target::Cuda;
  Expected<passes::PassOptions> flags = passFlags.options();
  if (!flags)
    return flags.takeError();
  if (Error error = setPrecision(flags->precision, "", options))
    return error;
  Expected<kernel::Program> program =
      codegen::lower(**module, (*module)->entry(), options);
  if (!program)
    return withPrefix(program.takeError(), model + ": error: ");
  Expected<std::vector<Work>> work = workOf(*program);
  if (!work)
    return work.takeError();
  std::optional<double> peak;
  if (auto bytes = program->peakBytes.constant())
    peak = double(*bytes);
  for (const GpuPeaks *gpu : gpus)
    printGpu(*gpu, peak, outs());
  outs() << '\n';
  printLeastCosts(*work, gpus, eachLaunch, outs());
  printLegend(/*counts=*/false, outs());
  return Error::success();
}

Error ExplainCommand::explain() {
  if (model.empty())
    return userError("nothing given to explain: tenon explain MODEL.onnx|OUT "
                     "--device=h200");
  Expected<std::vector<const GpuPeaks *>> chosen = parseGpus(device);
  if (!chosen)
    return chosen.takeError();
  file_magic kind;
  if (std::error_code failed = identify_magic(model.getValue(), kind))
    return userError("{0}: error: cannot be read: {1}", model,
                     failed.message());
  bool elf = kind == file_magic::elf_executable ||
             kind == file_magic::elf_shared_object || kind == file_magic::elf;
  if (elf)
    return explainArtifact(
        {model, *chosen, inputs, importFlags.dims, report, eachLaunch}, outs());
  if (!inputs.empty() || !report.empty())
    return userError("--{0} is for artifacts: compile the model with "
                     "--target=cuda",
                     inputs.empty() ? "emulator-report" : "inputs");
  return explainModel(*chosen);
}

} // namespace

std::unique_ptr<Command> tenon::tools::makeExplainCommand() {
  return std::make_unique<ExplainCommand>();
}
