//===- Compile.cpp - tenon compile ---------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/Codegen.h"
#include "codegen/artifact/Artifact.h"
#include "codegen/tokenizer/Tokenizer.h"
#include "frontend/Import.h"
#include "ir/OpDef.h"
#include "ir/support/Diag.h"
#include "ir/support/Output.h"
#include "ir/text/SideFile.h"
#include "ir/text/Text.h"
#include "passes/Pipelines.h"
#include "tools/common/ImportFlags.h"
#include "tools/common/LoadModule.h"
#include "tools/common/PassFlags.h"
#include "tools/common/Precision.h"
#include "tools/tenon/Commands.h"
#include "tools/tenon/Progress.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

using namespace llvm;
using namespace tenon;
using namespace tenon::tools;

namespace {

/// What --emit asks for.
enum class Emit { Automatic, Executable, SharedObject, Source, Ir };

/// The stages behind the graph, for --stop-after; the graph's own are the pass
/// manager's.
constexpr StringLiteral codeStages[] = {"selected", "planned", "source",
                                        "objects", "artifact"};

class CompileCommand final : public Command {
public:
  CompileCommand()
      : Command("compile", "compile a model into one binary"), importFlags(sub),
        passFlags(sub) {}
  int run() override;

private:
  cl::opt<std::string> model{cl::Positional, cl::desc("MODEL.onnx"),
                             cl::sub(sub)};
  cl::opt<std::string> out{"o", cl::value_desc("OUT"),
                           cl::desc("the artifact to write"), cl::sub(sub)};
  cl::opt<std::string> target{"target", cl::init("cpu"),
                              cl::value_desc("cpu|cuda"),
                              cl::desc("what to compile for"), cl::sub(sub)};
  cl::opt<std::string> cpu{
      "cpu", cl::init("native"), cl::value_desc("native|LIST"),
      cl::desc("CPU forms to include: x86-64, x86-64-v3, x86-64-v4, "
               "x86-64-v4-vnni, x86-64-v4-amx"),
      cl::sub(sub)};
  cl::opt<std::string> arch{
      "arch", cl::value_desc("LIST"),
      cl::desc("GPU architectures to include (sm_80,sm_90a)"), cl::sub(sub)};
  ImportFlags importFlags;
  cl::opt<Emit> emit{
      "emit", cl::desc("what to write (by default by OUT's suffix)"),
      cl::values(clEnumValN(Emit::Executable, "exe", "an executable"),
                 clEnumValN(Emit::SharedObject, "so",
                            "a shared library and its C header"),
                 clEnumValN(Emit::Source, "source",
                            "the generated C++, into the folder OUT"),
                 clEnumValN(Emit::Ir, "ir", "the fused graph as text")),
      cl::init(Emit::Automatic), cl::sub(sub)};
  cl::opt<std::string> keepSources{"keep-sources", cl::value_desc("DIR"),
                                   cl::desc("leave the generated C++ there"),
                                   cl::sub(sub)};
  cl::opt<int64_t> maxContext{
      "max-context", cl::init(0), cl::value_desc("N"),
      cl::desc("keep caches (past, present) in the artifact's own memory, with "
               "room for N tokens"),
      cl::sub(sub)};
  cl::opt<bool> lastLogitsOnly{
      "last-logits-only",
      cl::desc("compute the logits of the last token alone, also in --run "
               "(--generate always does)"),
      cl::sub(sub)};
  cl::opt<unsigned> jobs{"j",
                         cl::Prefix,
                         cl::init(0),
                         cl::value_desc("N"),
                         cl::desc("host compilers at a time (all cores)"),
                         cl::sub(sub)};
  cl::opt<std::string> tokenizer{
      "tokenizer", cl::value_desc("tokenizer.json"),
      cl::desc("embed this Hugging Face tokenizer, for --generate"),
      cl::sub(sub)};
  PassFlags passFlags;

  std::string stopAfter;
  passes::Remarks remarks;
  size_t nodes = 0;

  Error compile();
  Error checkFlags();
  Expected<std::unique_ptr<ir::Module>> makeGraph(Progress &progress,
                                                  bool &stopped);
  Error printOrWrite(function_ref<void(raw_ostream &)> print);
  Error writeIr(const ir::Module &module);
  Error writeSources(ArrayRef<codegen::Source> sources, StringRef folder);
  Expected<codegen::TargetOptions> parseTargetOptions();
  Error build(const ir::Module &module, Progress &progress);
  Error fillManifest(json::Object &manifest);
  Expected<std::vector<uint8_t>> readTokenizer(const kernel::Program &program);
  void summarize(const ir::Module &module, const kernel::Program &program,
                 const codegen::ArtifactReport &report, double seconds);
  bool stopsAt(StringRef stage) const { return stopAfter == stage; }
};

/// How many logits a language model computes for each token: the last dimension
/// of its output "logits", or of the first of floating point.
std::optional<int64_t> vocabularyOf(const kernel::Program &program) {
  const kernel::Port *logits = nullptr;
  for (const kernel::Port &port : program.outputs)
    if (port.type.rank() >= 2 && ir::isFloat(port.type.element) &&
        (!logits || port.name == "logits"))
      logits = &port;
  return logits ? logits->type.shape.back().constant() : std::nullopt;
}

int CompileCommand::run() {
  if (Error error = compile())
    return fail(std::move(error));
  return 0;
}

Error CompileCommand::checkFlags() {
  for (const cl::opt<std::string> *flag : {&arch, &keepSources, &tokenizer})
    if (Error error = refuseEmpty(*flag))
      return error;
  if (jobs.getNumOccurrences() && jobs == 0)
    return userError("-j 0: expected a number of at least 1");
  if (model.empty())
    return userError("no model given: tenon compile MODEL.onnx -o OUT");
  if (emit == Emit::Automatic)
    emit = StringRef(out).ends_with(".so")   ? Emit::SharedObject
           : StringRef(out).ends_with(".tn") ? Emit::Ir
                                             : Emit::Executable;
  // What is text is printed when there is no file for it.
  bool isText =
      emit == Emit::Ir || (!stopAfter.empty() && !stopsAt("objects") &&
                           !stopsAt("artifact") && emit != Emit::Source);
  if (out.empty() && !isText)
    return userError("no output given: tenon compile {0} -o OUT", model);
  if (!out.empty() && sys::fs::is_directory(out) && emit != Emit::Source &&
      !stopsAt("source"))
    return userError("{0}: error: is a directory, expected a file to write",
                     out);
  bool same = false;
  if (!out.empty() && !sys::fs::equivalent(model, out, same) && same)
    return userError("{0}: error: is the model itself; give another -o", out);
  return Error::success();
}

Expected<std::unique_ptr<ir::Module>>
CompileCommand::makeGraph(Progress &progress, bool &stopped) {
  Expected<passes::PassOptions> options = passFlags.options();
  if (!options)
    return options.takeError();
  options->maxContext = maxContext;
  stopAfter = options->stopAfter;
  if (is_contained(codeStages, StringRef(stopAfter)))
    options->stopAfter.clear();
  if (Error error = checkFlags())
    return error;
  if (target == "cpu")
    options->halves = passes::Halves::Weights;
  Expected<frontend::ImportOptions> import = importFlags.options();
  if (!import)
    return import.takeError();

  progress.begin("imported");
  Expected<std::unique_ptr<ir::Module>> module = loadModule(model, *import);
  if (!module)
    return module.takeError();
  nodes = (*module)->entry().body.size();
  progress.begin("fused");
  Expected<passes::PipelineResult> result = passes::runPipeline(
      **module, ir::Stage::Fused, *options, remarks, errs());
  if (!result)
    return withPrefix(result.takeError(), model + ": error: ");
  stopped = result->stopped;
  return module;
}

Error CompileCommand::printOrWrite(function_ref<void(raw_ostream &)> print) {
  if (out.empty()) {
    print(outs());
    return Error::success();
  }
  return writeWhole(out, print);
}

Error CompileCommand::writeIr(const ir::Module &module) {
  if (!out.empty())
    return ir::writeFile(module, out);
  ir::print(module, outs());
  return Error::success();
}

Error CompileCommand::writeSources(ArrayRef<codegen::Source> sources,
                                   StringRef folder) {
  if (std::error_code code = sys::fs::create_directories(folder))
    return userError("{0}: error: cannot be made: {1}", folder, code.message());
  for (const codegen::Source &source : sources) {
    SmallString<128> path(folder);
    sys::path::append(path, source.name);
    if (Error error =
            writeWhole(path, [&](raw_ostream &os) { os << source.text; }))
      return error;
  }
  return Error::success();
}

Expected<codegen::TargetOptions> CompileCommand::parseTargetOptions() {
  codegen::TargetOptions options;
  Expected<codegen::Target> which = codegen::parseTarget(target);
  if (!which)
    return withPrefix(which.takeError(), "--target: ");
  options.target = *which;
  Expected<std::vector<const codegen::CpuForm *>> forms =
      codegen::parseCpuForms(cpu);
  if (!forms)
    return forms.takeError();
  options.forms = std::move(*forms);
  if (maxContext < 0 || maxContext > (int64_t(1) << 31))
    return userError("--max-context={0}: expected a number of tokens",
                     int64_t(maxContext));
  options.maxContext = maxContext;
  options.lastLogitsOnly = lastLogitsOnly;
  Expected<std::vector<const codegen::GpuArch *>> archs =
      codegen::parseGpuArchs(arch);
  if (!archs)
    return withPrefix(archs.takeError(), "--arch: ");
  options.archs = std::move(*archs);
  Expected<passes::PassOptions> flags = passFlags.options();
  if (!flags)
    return flags.takeError();
  if (Error error = setPrecision(flags->precision, arch, options))
    return error;
  return options;
}

Error CompileCommand::build(const ir::Module &module, Progress &progress) {
  Expected<codegen::TargetOptions> parsed = parseTargetOptions();
  if (!parsed)
    return parsed.takeError();
  const codegen::TargetOptions &targetOptions = *parsed;

  progress.begin("selected");
  Expected<kernel::Program> program =
      codegen::select(module, module.entry(), targetOptions);
  if (!program)
    return withPrefix(program.takeError(), model + ": error: ");
  auto printProgram = [&](raw_ostream &os) { kernel::print(*program, os); };
  if (stopsAt("selected"))
    return printOrWrite(printProgram);
  progress.begin("planned");
  codegen::plan(*program);
  if (stopsAt("planned"))
    return printOrWrite(printProgram);

  progress.begin("source");
  std::vector<codegen::Source> sources =
      codegen::emitUnits(program->units, targetOptions);
  if (stopsAt("source") || emit == Emit::Source) {
    if (out.empty() && keepSources.empty())
      return printOrWrite([&](raw_ostream &os) {
        for (const codegen::Source &source : sources)
          os << "//===- " << source.name << '\n' << source.text;
      });
    return writeSources(sources, out.empty() ? keepSources : out);
  }

  progress.begin("artifact");
  codegen::ArtifactOptions options;
  options.kind = emit == Emit::SharedObject
                     ? codegen::ArtifactKind::SharedLibrary
                     : codegen::ArtifactKind::Executable;
  options.toolchain.jobs = jobs;
  options.toolchain.keepSources = keepSources;
  options.archs = targetOptions.archs;
  if (Error error = fillManifest(options.manifest))
    return error;
  Expected<std::vector<uint8_t>> table = readTokenizer(*program);
  if (!table)
    return table.takeError();
  options.tokenizer = *table;
  Expected<codegen::ArtifactReport> report =
      codegen::buildArtifact(*program, sources, options, out);
  if (!report)
    return report.takeError();
  summarize(module, *program, *report, progress.finish());
  if (!report->cacheProblem.empty())
    errs() << "warning: nothing was kept for the next compilation: "
           << report->cacheProblem
           << "; TENON_CACHE_DIR names another folder\n";
  return Error::success();
}

Error CompileCommand::compile() {
  Progress progress(errs());
  bool stopped = false;
  Expected<std::unique_ptr<ir::Module>> module = makeGraph(progress, stopped);
  if (!module)
    return module.takeError();
  if (stopped || emit == Emit::Ir)
    return writeIr(**module);
  return build(**module, progress);
}

/// Where the artifact comes from: the model's name and content hash, flags.
Error CompileCommand::fillManifest(json::Object &manifest) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> bytes = MemoryBuffer::getFile(
      model, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!bytes)
    return userError("{0}: error: cannot be read: {1}", model,
                     bytes.getError().message());
  XXH128_hash_t hash =
      xxh3_128bits(arrayRefFromStringRef((*bytes)->getBuffer()));
  manifest["model"] = sys::path::filename(model).str();
  manifest["model_xxh3"] =
      formatv("{0:x-16}{1:x-16}", hash.high64, hash.low64).str();
  manifest["target"] = target;
  if (target == "cpu")
    manifest["cpu"] = cpu;
  else
    manifest["arch"] = arch;
  Expected<passes::PassOptions> flags = passFlags.options();
  if (!flags)
    return flags.takeError();
  manifest["precision"] = passes::precisionName(flags->precision);
  manifest["dims"] = json::Array(importFlags.dims);
  manifest["set"] = json::Array(importFlags.values);
  return Error::success();
}

/// The tokenizer's table, checked against the model; empty without --tokenizer.
Expected<std::vector<uint8_t>>
CompileCommand::readTokenizer(const kernel::Program &program) {
  if (tokenizer.empty())
    return std::vector<uint8_t>();
  ErrorOr<std::unique_ptr<MemoryBuffer>> json = MemoryBuffer::getFile(
      tokenizer, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!json)
    return userError("{0}: error: cannot be read: {1}", tokenizer,
                     json.getError().message());
  Expected<codegen::GenerationConfig> config =
      codegen::readGenerationConfig(sys::path::parent_path(model));
  if (!config)
    return config.takeError();
  Expected<std::vector<uint8_t>> table =
      codegen::compileTokenizer((*json)->getBuffer(), tokenizer, *config);
  if (!table)
    return table.takeError();
  uint32_t ids = codegen::tokenizerIdCount(*table);
  std::optional<int64_t> words = vocabularyOf(program);
  if (words && int64_t(ids) > *words)
    return userError("{0}: error: its ids go up to {1}, but the model's "
                     "vocabulary has {2}: it belongs to another model",
                     tokenizer, ids - 1, *words);
  // Vocabularies are padded, but by little.
  if (words && int64_t(ids) < *words)
    errs() << formatv("{0}: warning: it has {1} ids, but the model's "
                      "vocabulary has {2}: what others say is not printed\n",
                      tokenizer, ids, *words);
  return table;
}

/// "12 attention, 25 layer_norm": ops that fusions made or kept whole.
std::string fusedOps(const ir::Module &module) {
  MapVector<StringRef, unsigned> counts;
  for (const ir::Op &op : module.entry().body) {
    ir::OpKind kind = op.kind();
    if (kind == ir::OpKind::Attention || kind == ir::OpKind::LayerNorm ||
        kind == ir::OpKind::RmsNorm || kind == ir::OpKind::Map)
      ++counts[ir::opDef(op).mnemonic];
    if (op.region() && ir::is(op, ir::HasEpilogue))
      ++counts["epilogue"];
  }
  std::vector<std::string> parts;
  for (auto &[name, count] : counts)
    parts.push_back((Twine(count) + " " + name).str());
  return parts.empty() ? "nothing" : join(parts, ", ");
}

void CompileCommand::summarize(const ir::Module &module,
                               const kernel::Program &program,
                               const codegen::ArtifactReport &report,
                               double seconds) {
  errs() << out << ": " << nodes << " ops in, " << program.launches.size()
         << " launches of " << program.units.size() << " kernels out, "
         << format("%.1f s", seconds) << "\n"
         << "  fused:    " << fusedOps(module) << "\n"
         << "  weights:  " << format("%.1f MB", report.weightBytes / 1e6)
         << "\n"
         << "  memory:   " << program.peakFormula << "\n"
         << "  artifact: " << format("%.1f MB", report.fileBytes / 1e6) << " ("
         << format("%.2f MB", (report.fileBytes - report.weightBytes) / 1e6)
         << " over its weights), " << report.compiled << " of "
         << report.numSources << " sources compiled, "
         << report.numSources - report.compiled << " from the cache\n";
}

} // namespace

std::unique_ptr<Command> tenon::tools::makeCompileCommand() {
  return std::make_unique<CompileCommand>();
}
