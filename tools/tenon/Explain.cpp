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
#include "tools/common/LoadModule.h"
#include "tools/common/PassFlags.h"
#include "tools/common/Precision.h"
#include "tools/tenon/Commands.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace tenon;
using namespace tenon::tools;

namespace {

/// A GPU's published peaks: 10^12 operations, 10^9 bytes a second.
struct GpuPeaks {
  StringLiteral name, text;
  double f32, tf32, half, bandwidth, memory;
};

constexpr GpuPeaks gpus[] = {
#define TN_DEVICE(name, text, f32, tf32, half, bandwidth, memory)              \
  {#name, text, f32, tf32, half, bandwidth, memory},
#include "codegen/target/Devices.def"
};

Expected<std::vector<const GpuPeaks *>> parseGpus(StringRef list) {
  SmallVector<StringRef> names;
  list.split(names, ',');
  std::vector<const GpuPeaks *> chosen;
  for (StringRef name : names) {
    const GpuPeaks *found = find_if(
        gpus, [&](const GpuPeaks &gpu) { return gpu.name == name.trim(); });
    if (found == std::end(gpus)) {
      std::string known;
      for (const GpuPeaks &gpu : gpus)
        known += (known.empty() ? "" : ", ") + gpu.name.str();
      return userError("--device: no device '{0}'; there are {1}", name.trim(),
                       known);
    }
    chosen.push_back(found);
  }
  return chosen;
}

/// What a launch multiplies with.
enum class Units { F32, Tf32, Half };

/// One launch with its sizes filled in.
struct Work {
  const kernel::Launch *launch;
  StringRef kernel;
  double flops, bytes;
  Units units;

  double peak(const GpuPeaks &gpu) const {
    double rate = units == Units::Half   ? gpu.half
                  : units == Units::Tf32 ? gpu.tf32
                                         : gpu.f32;
    return rate * 1e12;
  }
  double computeSeconds(const GpuPeaks &gpu) const { return flops / peak(gpu); }
  double memorySeconds(const GpuPeaks &gpu) const {
    return bytes / (gpu.bandwidth * 1e9);
  }
  double seconds(const GpuPeaks &gpu) const {
    return std::max(computeSeconds(gpu), memorySeconds(gpu));
  }
};

/// Tensor cores serve what names a tensor-core form; the rest is ordinary f32.
Units unitsOf(const kernel::Unit &unit) {
  if (unit.kernel == "attention_mma")
    return Units::Half;
  for (const kernel::ConfigMember &member : unit.config) {
    if (member.value == "tn::Math::tensor")
      return Units::Half;
    if (member.value == "tn::Math::tf32")
      return Units::Tf32;
  }
  return Units::F32;
}

class ExplainCommand final : public Command {
public:
  ExplainCommand()
      : Command("explain",
                "say what each kernel of a model costs at least on a GPU"),
        passFlags(sub) {}

  int run() override {
    if (Error error = explain())
      return fail(std::move(error));
    return 0;
  }

private:
  cl::opt<std::string> model{cl::Positional, cl::desc("MODEL.onnx"),
                             cl::sub(sub)};
  cl::opt<std::string> device{
      "device", cl::init("h200"), cl::value_desc("LIST"),
      cl::desc("GPUs to compare: h200, a100, ..."), cl::sub(sub)};
  cl::list<std::string> dims{"dim", cl::value_desc("name=N"),
                             cl::desc("the size of a symbolic dimension"),
                             cl::sub(sub)};
  PassFlags passFlags;

  Error explain();
  Expected<std::unique_ptr<ir::Module>> fusedModule();
  Expected<std::vector<Work>> workOf(const kernel::Program &program);
  void print(ArrayRef<Work> work, const kernel::Program &program,
             ArrayRef<const GpuPeaks *> gpus);
};

Expected<std::unique_ptr<ir::Module>> ExplainCommand::fusedModule() {
  if (model.empty())
    return userError("no model given: tenon explain MODEL.onnx --device=h200");
  frontend::ImportOptions import;
  for (const std::string &dim : dims)
    if (Error error = frontend::parseDimOption(dim, import))
      return error;
  Expected<passes::PassOptions> options = passFlags.options();
  if (!options)
    return options.takeError();
  Expected<std::unique_ptr<ir::Module>> module = loadModule(model, import);
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
    all.push_back(
        {&launch, unit.kernel, double(*flops), double(*bytes), unitsOf(unit)});
  }
  return all;
}

/// "12.3 M".
std::string scaled(double value) {
  static constexpr const char *units[] = {"", " k", " M", " G", " T"};
  unsigned unit = 0;
  for (; value >= 9999.5 && unit + 1 < std::size(units); ++unit)
    value /= 1000;
  return formatv("{0:F1}{1}", value, units[unit]);
}

void ExplainCommand::print(ArrayRef<Work> work, const kernel::Program &program,
                           ArrayRef<const GpuPeaks *> gpus) {
  auto row = [&](StringRef kernel, double flops, double bytes,
                 ArrayRef<std::string> times, StringRef node) {
    outs() << format("%-16s %10s %10s %8.2f", kernel.str().c_str(),
                     scaled(flops).c_str(), scaled(bytes).c_str(),
                     bytes > 0 ? flops / bytes : 0.0);
    for (const std::string &time : times)
      outs() << format(" %18s", time.c_str());
    outs() << "  " << node << '\n';
  };
  outs() << left_justify("kernel", 16) << right_justify("FLOP", 11)
         << right_justify("bytes", 11) << right_justify("FLOP/B", 9);
  for (const GpuPeaks *gpu : gpus)
    outs() << format(" %18s", (gpu->name + " at least").str().c_str());
  outs() << "  node\n";
  double flops = 0, bytes = 0;
  std::vector<double> total(gpus.size(), 0);
  for (const Work &item : work) {
    std::vector<std::string> times;
    for (auto [i, gpu] : enumerate(gpus)) {
      bool compute = item.computeSeconds(*gpu) > item.memorySeconds(*gpu);
      times.push_back(formatv("{0:F3} us {1}", item.seconds(*gpu) * 1e6,
                              compute ? "compute" : "memory "));
      total[i] += item.seconds(*gpu);
    }
    flops += item.flops;
    bytes += item.bytes;
    row(item.kernel, item.flops, item.bytes, times, item.launch->loc.name());
  }
  std::vector<std::string> times;
  for (double seconds : total)
    times.push_back(formatv("{0:F3} us        ", seconds * 1e6));
  row("all", flops, bytes, times, (Twine(work.size()) + " launches").str());
  outs() << '\n';
  for (const GpuPeaks *gpu : gpus) {
    auto peak = program.peakBytes.constant();
    bool fits = peak && double(*peak) <= gpu->memory * 1e9;
    outs() << format("%-10s %s: %.1f TFLOP/s f32, %.1f tf32, %.1f half, "
                     "%.0f GB/s; needs %s of %.0f GB%s\n",
                     gpu->name.data(), gpu->text.data(), gpu->f32, gpu->tf32,
                     gpu->half, gpu->bandwidth, program.peakFormula.c_str(),
                     gpu->memory, fits ? "" : ": does not fit");
  }
  outs() << "at least: the greater of FLOP at the device's published peak and "
            "bytes at its\nbandwidth, each operand read and each result "
            "written once\n";
}

Error ExplainCommand::explain() {
  Expected<std::vector<const GpuPeaks *>> chosen = parseGpus(device);
  if (!chosen)
    return chosen.takeError();
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
  print(*work, *program, *chosen);
  return Error::success();
}

} // namespace

std::unique_ptr<Command> tenon::tools::makeExplainCommand() {
  return std::make_unique<ExplainCommand>();
}
