//===- ExplainArtifact.cpp - tenon explain, of an artifact ----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/tenon/ExplainArtifact.h"

#include "codegen/artifact/Artifact.h"
#include "codegen/toolchain/Cubin.h"
#include "ir/support/Diag.h"
#include "runtime/Binding.h"
#include "runtime/Npz.h"
#include "runtime/Payload.h"
#include "runtime/device/DeviceCode.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace tenon;
using namespace tenon::tools;

namespace {

Error asError(const rt::Status &status, StringRef file) {
  return userError("{0}: error: {1}", file, status.message());
}

/// A file that goes with this object; its path is empty if none can be made.
class TemporaryFile {
public:
  explicit TemporaryFile(StringRef suffix) {
    int descriptor;
    if (!sys::fs::createTemporaryFile("tenon-explain", suffix, descriptor,
                                      name))
      sys::Process::SafelyCloseFileDescriptor(descriptor);
  }
  TemporaryFile(const TemporaryFile &) = delete;
  ~TemporaryFile() { sys::fs::remove(name); }

  std::string path() const { return name.str().str(); }

private:
  SmallString<128> name;
};

class ArtifactExplainer {
public:
  ArtifactExplainer(const ExplainRequest &request, raw_ostream &os)
      : request(request), os(os) {}

  Error run();

private:
  Error open();
  Error bindInputs();
  Error bindDims();
  Error explainFor(const GpuPeaks &gpu);
  Error runEmulated(const GpuPeaks &gpu, StringRef report);
  Expected<std::map<unsigned, Counted>> readReport(StringRef file);
  Expected<std::map<unsigned, Taken>> resourcesFor(const GpuPeaks &gpu);
  const rt::Variant *variantOf(const rt::Launch &launch,
                               const GpuPeaks &gpu) const;
  Units unitsOf(StringRef kernel) const;
  std::vector<Work> workFor(const GpuPeaks &gpu,
                            const std::map<unsigned, Counted> &counted) const;

  const ExplainRequest &request;
  raw_ostream &os;
  std::optional<rt::Payload> payload;
  const rt::Plan *plan = nullptr;
  std::optional<rt::DeviceCode> code;
  std::vector<int64_t> symbols, values;
  std::string precision; ///< that it was compiled with
};

Error ArtifactExplainer::open() {
  auto opened = rt::Payload::open(request.artifact);
  if (!opened.ok())
    return asError(opened.status(), request.artifact);
  payload.emplace(std::move(*opened));
  plan = &payload->plan();
  if (payload->deviceCode().empty())
    return userError("{0}: error: has no code for GPUs; explain the model, or "
                     "compile it with --target=cuda",
                     request.artifact);
  auto loaded = rt::DeviceCode::load(payload->deviceCode());
  if (!loaded.ok())
    return asError(loaded.status(), request.artifact);
  code.emplace(std::move(*loaded));
  Expected<json::Value> manifest =
      json::parse(plan->string(plan->header().manifest));
  if (!manifest)
    consumeError(manifest.takeError());
  else if (const json::Object *object = manifest->getAsObject())
    precision = object->getString("precision").value_or("").str();
  return Error::success();
}

Error ArtifactExplainer::bindInputs() {
  auto arrays = rt::readNpzFile(request.inputs);
  if (!arrays.ok())
    return userError("{0}", arrays.message());
  std::vector<rt::InputValue> inputs(plan->inputs().size());
  for (size_t i = 0; i < inputs.size(); ++i)
    for (const rt::NpyArray &array : *arrays)
      if (array.name == plan->string(plan->inputs()[i].name))
        inputs[i] = {true, array.shape, array.data.get()};
  rt::Status status = rt::bindSymbols(*plan, inputs, /*length=*/0,
                                      /*chosen=*/INT64_MAX, symbols);
  return status.ok() ? Error::success() : asError(status, request.inputs);
}

Error ArtifactExplainer::bindDims() {
  std::vector<bool> given(symbols.size());
  for (StringRef dim : request.dims) {
    auto [name, number] = dim.split('=');
    auto found = find_if(plan->symbols(), [&](const rt::Symbol &symbol) {
      return name == plan->string(symbol.name);
    });
    size_t index = found - plan->symbols().begin();
    if (index == symbols.size() || number.getAsInteger(10, symbols[index]))
      return userError("--dim: found '{0}', expected one of the artifact's "
                       "dimensions and a number: name=N",
                       dim);
    given[index] = true;
  }
  std::string open;
  for (size_t i = 0; i < symbols.size(); ++i)
    if (!given[i])
      open += formatv(" --dim {0}=N", plan->string(plan->symbols()[i].name));
  if (!open.empty())
    return userError(
        "{0}: error: the sizes are open; give --inputs=F.npz or{1}",
        request.artifact, open);
  return Error::success();
}

/// The architecture that an artifact's code is looked for, and the emulator
/// told: with its own instructions where it has some.
std::string emulatedName(const GpuPeaks &gpu) {
  return formatv("sm_{0}{1}", gpu.arch, gpu.arch >= 90 ? "a" : "");
}

Error ArtifactExplainer::runEmulated(const GpuPeaks &gpu, StringRef report) {
  SmallString<128> program(request.artifact);
  sys::fs::make_absolute(program);
  TemporaryFile outputs("npz"), log("txt");
  std::string arguments[] = {program.str().str(),
                             "--run",
                             "--device=emulated",
                             "--emulated-arch=" + emulatedName(gpu),
                             "--emulator-report=" + report.str(),
                             "--inputs=" + request.inputs,
                             "--outputs=" + outputs.path()};
  // The emulator that lies beside this program.
  std::string emulator =
      sys::path::parent_path(sys::fs::getMainExecutable(nullptr, nullptr))
          .str() +
      "/libtenon_emulator.so";
  if (sys::fs::exists(emulator) && !std::getenv("TENON_CUDA_DRIVER"))
    setenv("TENON_CUDA_DRIVER", emulator.c_str(), /*overwrite=*/1);
  std::string message;
  SmallVector<StringRef> list(std::begin(arguments), std::end(arguments));
  int status = sys::ExecuteAndWait(
      program, list, std::nullopt,
      {std::nullopt, StringRef(""), StringRef(log.path())}, 0, 0, &message);
  if (status == 0)
    return Error::success();
  if (auto text = MemoryBuffer::getFile(log.path()); text && message.empty())
    message = (*text)->getBuffer().rtrim().str();
  return userError("{0}: error: cannot be run on the emulator as {1}:\n{2}",
                   request.artifact, emulatedName(gpu), message);
}

Expected<std::map<unsigned, Counted>>
ArtifactExplainer::readReport(StringRef file) {
  auto buffer = MemoryBuffer::getFile(file);
  if (!buffer)
    return userError("{0}: error: cannot be read: {1}", file,
                     buffer.getError().message());
  Expected<json::Value> parsed = json::parse((*buffer)->getBuffer());
  if (!parsed)
    return withPrefix(parsed.takeError(), (file + ": error: ").str());
  const json::Object *top = parsed->getAsObject();
  const json::Array *kernels = top ? top->getArray("kernels") : nullptr;
  if (!kernels)
    return userError("{0}: error: is no report of the emulator", file);
  std::map<unsigned, Counted> counted;
  for (const json::Value &value : *kernels) {
    const json::Object *kernel = value.getAsObject();
    StringRef name = kernel ? kernel->getString("name").value_or("") : "";
    unsigned unit;
    if (!name.consume_front("tn_unit_") || name.getAsInteger(10, unit))
      continue;
    auto number = [&](StringRef part, StringRef field) {
      const json::Object *object = kernel->getObject(part);
      return object ? object->getNumber(field).value_or(0) : 0;
    };
    Counted &c = counted[unit];
    c.launches = kernel->getNumber("launches").value_or(0);
    c.movedBytes = 32 * (number("global", "load_sectors") +
                         number("global", "store_sectors"));
    c.wavefronts = number("shared", "wavefronts");
    c.conflicts = number("shared", "bank_conflicts");
    c.multiplyAdds = number("tensor", "multiply_adds");
  }
  return counted;
}

/// What runs for a launch: as the runtime chooses, see CudaSteps.cpp.
const rt::Variant *ArtifactExplainer::variantOf(const rt::Launch &launch,
                                                const GpuPeaks &gpu) const {
  for (const rt::Variant &variant : plan->variantsOf(launch)) {
    auto images = code->choose(code->moduleOf(variant.unit), gpu.arch, false);
    bool own = !images.empty() && images[0]->exact;
    if (values[variant.when] != 0 &&
        (variant.arch == 0 || (variant.arch == gpu.arch && own)))
      return &variant;
  }
  return nullptr;
}

/// What the tensor cores multiply in a kernel that uses them.
Units ArtifactExplainer::unitsOf(StringRef kernel) const {
  if (precision == "tf32")
    return Units::Tf32;
  bool bytes = precision == "int8" || precision == "fp8";
  return bytes && kernel.starts_with("gemm") ? Units::Byte : Units::Half;
}

std::vector<Work>
ArtifactExplainer::workFor(const GpuPeaks &gpu,
                           const std::map<unsigned, Counted> &counted) const {
  std::vector<Work> work;
  for (const rt::Launch &launch : plan->launches()) {
    if (launch.kind != rt::LaunchKind::Kernel)
      continue;
    const rt::Variant *variant = variantOf(launch, gpu);
    Work item;
    item.unit = variant ? variant->unit : launch.unit;
    item.kernel = formatv(
        "{0} {1}", plan->string(variant ? variant->kernel : launch.kernel),
        item.unit);
    item.node = rt::printable(plan->string(launch.location));
    if (launch.flops != rt::none)
      item.flops = double(values[launch.flops]);
    if (launch.bytes != rt::none)
      item.bytes = double(values[launch.bytes]);
    if (auto at = counted.find(item.unit);
        at != counted.end() && at->second.multiplyAdds > 0)
      item.units = unitsOf(item.kernel);
    work.push_back(std::move(item));
  }
  return work;
}

Expected<std::map<unsigned, Taken>>
ArtifactExplainer::resourcesFor(const GpuPeaks &gpu) {
  std::map<unsigned, Taken> taken;
  for (uint32_t module = 0; module < code->numModules(); ++module) {
    auto images = code->choose(module, gpu.arch, /*ptxOnly=*/false);
    if (images.empty() || images[0]->kind != rt::ImageKind::Cubin)
      continue; // the driver will compile it
    auto contents = code->contents(*images[0]);
    if (!contents.ok())
      return asError(contents.status(), request.artifact);
    auto kernels =
        codegen::cubinResources({contents->data(), contents->size()});
    if (!kernels)
      return withPrefix(kernels.takeError(), request.artifact + ": error: ");
    for (const codegen::KernelResources &kernel : *kernels)
      taken[kernel.unit] = {
          kernel.registers, kernel.sharedBytes, kernel.stackBytes, 0, {}};
  }
  // Dynamic shared memory and threads are the launches'.
  std::map<unsigned, unsigned> dynamic;
  auto note = [&](unsigned unit, rt::ExprId shared, unsigned threads) {
    dynamic[unit] = std::max(dynamic[unit], unsigned(values[shared]));
    if (auto at = taken.find(unit); at != taken.end())
      at->second.threads = std::max(at->second.threads, threads);
  };
  for (const rt::Launch &launch : plan->launches()) {
    if (launch.kind != rt::LaunchKind::Kernel)
      continue;
    if (const rt::Variant *variant = variantOf(launch, gpu))
      note(variant->unit, variant->sharedBytes, variant->threads);
    else
      note(launch.unit, launch.sharedBytes, launch.threads);
  }
  for (auto &[unit, t] : taken) {
    t.sharedBytes += dynamic[unit];
    t.occupancy =
        codegen::occupancyOf(gpu.arch, t.threads, t.registers, t.sharedBytes);
  }
  return taken;
}

Error ArtifactExplainer::explainFor(const GpuPeaks &gpu) {
  std::map<unsigned, Counted> counted;
  TemporaryFile own("json");
  bool runs = request.report.empty() && !request.inputs.empty();
  if (runs)
    if (Error error = runEmulated(gpu, own.path()))
      return error;
  if (runs || !request.report.empty()) {
    auto read = readReport(runs ? own.path() : request.report);
    if (!read)
      return read.takeError();
    counted = std::move(*read);
  }
  auto taken = resourcesFor(gpu);
  if (!taken)
    return taken.takeError();
  std::vector<Work> work = workFor(gpu, counted);
  std::optional<double> peak;
  if (rt::ExprId id = plan->header().peakBytes; id != rt::none)
    peak = double(values[id]);
  printGpu(gpu, peak, os);
  os << '\n';
  printLeastCosts(work, &gpu, request.eachLaunch, os);
  os << '\n';
  printCounts(work, counted, *taken, gpu, os);
  return Error::success();
}

Error ArtifactExplainer::run() {
  if (Error error = open())
    return error;
  symbols.assign(plan->symbols().size(), 0);
  for (size_t i = 0; i < symbols.size(); ++i)
    symbols[i] = plan->symbols()[i].low;
  if (Error error = request.inputs.empty() ? bindDims() : bindInputs())
    return error;
  auto evaluated = rt::evaluateAll(*plan, symbols);
  if (!evaluated.ok())
    return asError(evaluated.status(), request.artifact);
  values = std::move(*evaluated);
  std::string sizes = rt::describeSymbols(*plan, symbols);
  os << request.artifact << ": " << plan->launches().size() << " launches"
     << (sizes.empty() ? "" : ", ") << sizes << "\n";
  for (const GpuPeaks *gpu : request.gpus) {
    os << '\n';
    if (Error error = explainFor(*gpu))
      return error;
  }
  printLegend(/*counts=*/true, os);
  if (request.inputs.empty() && request.report.empty())
    os << "with --inputs=F.npz the emulator runs the artifact and counts what "
          "is moved\n";
  return Error::success();
}

} // namespace

Error tools::explainArtifact(const ExplainRequest &request, raw_ostream &os) {
  return ArtifactExplainer(request, os).run();
}
