//===- Cuda.cpp - runs launches on a GPU ----------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/device/Cuda.h"

#include "runtime/Fault.h"
#include "runtime/Frame.h"
#include "runtime/device/CudaContext.h"
#include "runtime/device/CudaSteps.h"
#include "runtime/device/CudaWeights.h"
#include "runtime/device/TensorMaps.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <map>
#include <utility>

namespace tenon::rt {
namespace {

/// Shared memory that every kernel may have without asking.
constexpr uint32_t plainShared = 48 << 10;
/// Graphs that a segment keeps, for as many sets of shapes.
constexpr size_t maxGraphs = 64;

int64_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t(time.tv_sec) * 1000000000 + time.tv_nsec;
}

/// Memory of the GPU that grows on demand.
struct Block {
  CUdeviceptr pointer = 0;
  uint64_t capacity = 0;
};

/// An input or output: its memory on both sides.
struct Slot {
  explicit Slot(const CudaDriver &driver) : host(driver) {}
  Block device;
  PinnedBuffer host;
  void *caller = nullptr;
  uint64_t bytes = 0;
};

struct Graph {
  Steps steps;
  CUgraphExec exec = nullptr;
};

class CudaDevice final : public Device {
public:
  CudaDevice(const Model &model, std::unique_ptr<CudaContext> context,
             const CudaOptions &options)
      : model(model), plan(model.plan()), context(std::move(context)),
        api(this->context->api()), weightsHere(model, *this->context),
        emulated(options.emulated),
        stepwise(options.emulated || options.stepwise),
        maker(model, *this->context, weightsHere, faultBlock.pointer,
              counterBlock.pointer),
        faults(api), arenas(plan.segments().size()),
        graphs(plan.segments().size()) {
    for (size_t i = 0; i < plan.inputs().size(); ++i)
      inputs.emplace_back(api);
    for (size_t i = 0; i < plan.outputs().size(); ++i)
      outputs.emplace_back(api);
  }
  ~CudaDevice() override;

  Status start();

  std::string name() const override {
    return context->name() + (emulated ? " (emulated)" : "");
  }
  unsigned workers() const override { return 1; }

  std::string memoryNote() const override { return weightsHere.note(); }

  /// The host's, by which StepMaker and fetch() know them: on the GPU they
  /// move.
  char *weights() override {
    return const_cast<char *>(
        reinterpret_cast<const char *>(model.weights().data()));
  }
  Result<char *> reserveArena(uint32_t segment, uint64_t bytes) override;
  Result<char *> placeInput(size_t index, const void *data,
                            uint64_t bytes) override;
  Result<char *> placeOutput(size_t index, void *data, uint64_t bytes) override;
  Result<char *> reserveState(uint64_t bytes) override {
    if (Status status = grow(stateBlock, bytes, "states"); !status.ok())
      return status;
    return asPointer(stateBlock.pointer);
  }
  Status put(char *to, const void *from, uint64_t bytes) override {
    Status status =
        api.check(api.cuMemcpyHtoDAsync(reinterpret_cast<CUdeviceptr>(to), from,
                                        bytes, context->stream()),
                  "copying a state to the GPU");
    return status.ok() ? context->synchronize("copying a state to the GPU")
                       : status;
  }
  Status run(const Frame &frame, uint32_t segment) override;
  Status fetch(void *to, const char *from, uint64_t bytes) override;
  Status finish() override;

  void enableProfile() override { profiling = true; }
  void beginRun() override {
    faultsCleared = false;
    times.clear();
    began = now();
  }
  std::span<const LaunchTime> profile() const override { return times; }

private:
  static char *asPointer(CUdeviceptr pointer) {
    return reinterpret_cast<char *>(pointer);
  }
  Status grow(Block &block, uint64_t bytes, const char *what);
  Status issue(const Steps &steps, const Step &step);
  Status issueAll(const Steps &steps, size_t begin, size_t end);
  Status clearFaults();
  Status findFault(size_t first, size_t count);
  Status runStepwise(const Steps &steps, size_t begin, size_t end);
  Status runTimed(const Steps &steps, size_t begin, size_t end);
  Status runPart(const Steps &steps, size_t begin, size_t end);
  Status runBlocks(const Steps &steps);
  Result<CUgraphExec> capture(const Steps &steps);
  Status runGraph(Steps steps, uint32_t segment);
  std::string describe(const Step &step) const { return maker.describe(step); }

  const Model &model;
  const Plan &plan;
  std::unique_ptr<CudaContext> context;
  const CudaDriver &api;
  CudaWeights weightsHere;
  bool emulated, stepwise, profiling = false;
  Block stateBlock;
  Block faultBlock;   ///< a record of faults for each launch
  Block counterBlock; ///< maxLaunchCounters, all 0 between launches
  StepMaker maker;
  PinnedBuffer faults;
  bool faultsCleared = false;
  const Frame *lastFrame = nullptr;
  std::vector<Block> arenas;
  std::vector<Slot> inputs, outputs;
  std::vector<std::vector<Graph>> graphs; ///< by segment, the latest first
  std::map<uint32_t, uint32_t> sharedOf;  ///< dynamic bytes allowed, by unit
  int64_t began = 0;
  std::vector<LaunchTime> times;
};

CudaDevice::~CudaDevice() {
  (void)context->synchronize(""); // whatever it says, this ends here
  for (std::vector<Graph> &ofSegment : graphs)
    for (Graph &graph : ofSegment)
      api.cuGraphExecDestroy(graph.exec);
  for (Block *block : {&stateBlock, &faultBlock, &counterBlock})
    context->release(block->pointer, block->capacity);
  for (Block &arena : arenas)
    context->release(arena.pointer, arena.capacity);
  for (std::vector<Slot> *slots : {&inputs, &outputs})
    for (Slot &slot : *slots)
      context->release(slot.device.pointer, slot.device.capacity);
}

Status CudaDevice::start() {
  auto code = DeviceCode::load(model.deviceCode());
  if (!code.ok())
    return code.status();
  if (code->numUnits() != plan.header().numUnits)
    return TN_ERROR("damaged artifact: GPU code of %u kernels, the plan has %u",
                    code->numUnits(), plan.header().numUnits);
  if (Status status = context->loadCode(*code); !status.ok())
    return status;
  uint64_t faultBytes = plan.launches().size() * sizeof(tn_fault);
  if (Status status = grow(faultBlock, faultBytes, "records of faults");
      !status.ok())
    return status;
  if (Status status = faults.reserve(std::max<uint64_t>(faultBytes, 1));
      !status.ok())
    return status;
  uint64_t counterBytes = maxLaunchCounters * sizeof(uint32_t);
  if (Status status = grow(counterBlock, counterBytes, "counters");
      !status.ok())
    return status;
  if (Status status =
          api.check(api.cuMemsetD8Async(counterBlock.pointer, 0, counterBytes,
                                        context->stream()),
                    "clearing the counters");
      !status.ok())
    return status;
  return weightsHere.start();
}

Status CudaDevice::grow(Block &block, uint64_t bytes, const char *what) {
  if (block.pointer != 0 && bytes <= block.capacity)
    return {};
  if (block.pointer != 0) {
    if (Status status = context->synchronize(what); !status.ok())
      return status;
    context->release(block.pointer, block.capacity);
    block = {};
  }
  Result<CUdeviceptr> pointer = context->allocate(bytes, what);
  if (!pointer.ok() && weightsHere.giveWay())
    pointer = context->allocate(bytes, what);
  if (!pointer.ok())
    return pointer.status();
  block = {*pointer, bytes};
  return {};
}

Result<char *> CudaDevice::reserveArena(uint32_t segment, uint64_t bytes) {
  if (Status status = grow(arenas[segment], bytes, "temporaries"); !status.ok())
    return status;
  return asPointer(arenas[segment].pointer);
}

Result<char *> CudaDevice::placeInput(size_t index, const void *data,
                                      uint64_t bytes) {
  Slot &slot = inputs[index];
  if (Status status = grow(slot.device, bytes, "an input"); !status.ok())
    return status;
  if (bytes == 0)
    return asPointer(slot.device.pointer);
  if (Status status = slot.host.reserve(bytes); !status.ok())
    return status;
  std::memcpy(slot.host.data(), data, bytes);
  Status status =
      api.check(api.cuMemcpyHtoDAsync(slot.device.pointer, slot.host.data(),
                                      bytes, context->stream()),
                "copying an input to the GPU");
  if (!status.ok())
    return status;
  return asPointer(slot.device.pointer);
}

Result<char *> CudaDevice::placeOutput(size_t index, void *data,
                                       uint64_t bytes) {
  Slot &slot = outputs[index];
  slot.caller = data;
  slot.bytes = bytes;
  if (Status status = grow(slot.device, bytes, "an output"); !status.ok())
    return status;
  if (Status status = slot.host.reserve(std::max<uint64_t>(bytes, 1));
      !status.ok())
    return status;
  return asPointer(slot.device.pointer);
}

Status CudaDevice::issue(const Steps &steps, const Step &step) {
  CUfunction function = context->function(step.unit);
  uint32_t &allowed =
      sharedOf.try_emplace(step.unit, plainShared).first->second;
  if (step.sharedBytes > allowed) {
    Status status =
        api.check(api.cuFuncSetAttribute(
                      function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                      int(step.sharedBytes)),
                  format("%s: %u bytes of shared memory",
                         describe(step).c_str(), step.sharedBytes));
    if (!status.ok())
      return status;
    allowed = step.sharedBytes;
  }
  auto *blob = const_cast<int64_t *>(steps.blob.data());
  void *parameters[1 + maxTensorMaps] = {blob + step.parameters};
  for (unsigned i = 0; i < step.numMaps; ++i)
    parameters[1 + i] = blob + step.maps + i * tensorMapWords;
  CUresult result = api.cuLaunchKernel(
      function, step.grid[0], step.grid[1], step.grid[2], step.threads, 1, 1,
      step.sharedBytes, context->stream(), parameters, nullptr);
  return result == CUDA_SUCCESS ? Status() : api.check(result, describe(step));
}

Status CudaDevice::issueAll(const Steps &steps, size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i)
    if (Status status = issue(steps, steps.list[i]); !status.ok())
      return status;
  return {};
}

Status CudaDevice::clearFaults() {
  if (std::exchange(faultsCleared, true) || plan.launches().empty())
    return {};
  return api.check(
      api.cuMemsetD8Async(faultBlock.pointer, 0,
                          plan.launches().size() * sizeof(tn_fault),
                          context->stream()),
      "clearing the records of faults");
}

/// Waits, and says what went wrong in one of `count` launches.
Status CudaDevice::findFault(size_t first, size_t count) {
  if (count == 0)
    return {};
  tn_fault *records = reinterpret_cast<tn_fault *>(faults.data());
  Status status = api.check(
      api.cuMemcpyDtoHAsync(records + first,
                            faultBlock.pointer + first * sizeof(tn_fault),
                            count * sizeof(tn_fault), context->stream()),
      "copying from the GPU");
  if (status.ok())
    status = context->synchronize("a kernel failed; --stepwise tells which");
  for (size_t i = first; i < first + count && status.ok(); ++i)
    if (records[i].kind != TN_FAULT_NONE)
      return Faults::describe(plan, *lastFrame, i, records[i]);
  return status;
}

Status CudaDevice::runStepwise(const Steps &steps, size_t first, size_t end) {
  for (size_t i = first; i < end; ++i) {
    const Step &step = steps.list[i];
    int64_t begin = now();
    if (Status status = issue(steps, step); !status.ok())
      return status;
    CUresult result = api.cuStreamSynchronize(context->stream());
    if (result != CUDA_SUCCESS)
      return api.check(result, describe(step));
    if (Status status = findFault(step.launch, 1); !status.ok())
      return status;
    if (profiling)
      times.push_back({step.launch, 0, begin - began, now() - began});
  }
  return {};
}

/// Launches between events, for the GPU's own times.
Status CudaDevice::runTimed(const Steps &steps, size_t first, size_t end) {
  std::span<const Step> list(steps.list.data() + first, end - first);
  std::vector<CUevent> events(list.size() + 1, nullptr);
  Status status;
  for (CUevent &event : events)
    if (status.ok())
      status = api.check(api.cuEventCreate(&event, CU_EVENT_DEFAULT),
                         "cannot make an event");
  int64_t begin = now() - began;
  if (status.ok())
    api.cuEventRecord(events[0], context->stream());
  for (size_t i = 0; i < list.size() && status.ok(); ++i) {
    status = issue(steps, list[i]);
    api.cuEventRecord(events[i + 1], context->stream());
  }
  if (status.ok())
    status = context->synchronize("running a segment");
  auto since = [&](size_t i) {
    float milliseconds = 0;
    api.cuEventElapsedTime(&milliseconds, events[0], events[i]);
    return begin + int64_t(double(milliseconds) * 1e6);
  };
  for (size_t i = 0; i < list.size() && status.ok(); ++i)
    times.push_back({list[i].launch, 0, since(i), since(i + 1)});
  for (CUevent event : events)
    if (event)
      api.cuEventDestroy(event);
  return status;
}

Status CudaDevice::runPart(const Steps &steps, size_t begin, size_t end) {
  return stepwise    ? runStepwise(steps, begin, end)
         : profiling ? runTimed(steps, begin, end)
                     : issueAll(steps, begin, end);
}

/// Each block's launches when it has come; the next one comes meanwhile.
Status CudaDevice::runBlocks(const Steps &steps) {
  for (size_t begin = 0, end = 0; begin < steps.list.size(); begin = end) {
    uint32_t block = weightsHere.blockOf(steps.list[begin].launch);
    while (end < steps.list.size() &&
           weightsHere.blockOf(steps.list[end].launch) == block)
      ++end;
    Status status = weightsHere.bring(block);
    if (status.ok())
      status = runPart(steps, begin, end);
    if (status.ok())
      status = weightsHere.used(block);
    if (!status.ok())
      return status;
  }
  return {};
}

Result<CUgraphExec> CudaDevice::capture(const Steps &steps) {
  CUstream stream = context->stream();
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  Status status = api.check(
      api.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
      "cannot capture a graph");
  if (!status.ok())
    return status;
  status = issueAll(steps, 0, steps.list.size());
  Status ended =
      api.check(api.cuStreamEndCapture(stream, &graph), "capturing a graph");
  if (status.ok())
    status = ended;
  if (status.ok())
    status =
        api.check(api.cuGraphInstantiate(&exec, graph, 0), "making a graph");
  if (graph)
    api.cuGraphDestroy(graph);
  if (!status.ok())
    return status;
  return exec;
}

Status CudaDevice::runGraph(Steps steps, uint32_t segment) {
  std::vector<Graph> &known = graphs[segment];
  auto found = std::find_if(known.begin(), known.end(),
                            [&](const Graph &g) { return g.steps == steps; });
  if (found == known.end()) {
    Result<CUgraphExec> exec = capture(steps);
    if (!exec.ok())
      return exec.status();
    if (known.size() == maxGraphs) {
      api.cuGraphExecDestroy(known.back().exec);
      known.pop_back();
    }
    found = known.insert(known.begin(), Graph{std::move(steps), *exec});
  }
  std::rotate(known.begin(), found, found + 1);
  return api.check(api.cuGraphLaunch(known[0].exec, context->stream()),
                   "launching a graph");
}

Status CudaDevice::run(const Frame &frame, uint32_t segment) {
  lastFrame = &frame;
  if (Status status = weightsHere.place(); !status.ok())
    return status;
  if (Status status = clearFaults(); !status.ok())
    return status;
  Result<Steps> steps = maker.make(frame, segment);
  if (!steps.ok())
    return steps.status();
  if (steps->list.empty())
    return {};
  if (weightsHere.streamed())
    return runBlocks(*steps);
  if (stepwise || profiling)
    return runPart(*steps, 0, steps->list.size());
  return runGraph(std::move(*steps), segment);
}

Status CudaDevice::fetch(void *to, const char *from, uint64_t bytes) {
  if (bytes == 0)
    return {};
  if (from >= weights() && from < weights() + model.weights().size()) {
    std::memcpy(to, from, bytes); // an output that is a weight
    return {};
  }
  Status status =
      api.check(api.cuMemcpyDtoHAsync(to, reinterpret_cast<CUdeviceptr>(from),
                                      bytes, context->stream()),
                "copying from the GPU");
  if (!status.ok() || stepwise)
    return status.ok() ? context->synchronize("copying from the GPU") : status;
  return findFault(0, plan.launches().size());
}

Status CudaDevice::finish() {
  for (Slot &slot : outputs)
    if (slot.bytes != 0)
      if (Status status = api.check(
              api.cuMemcpyDtoHAsync(slot.host.data(), slot.device.pointer,
                                    slot.bytes, context->stream()),
              "copying an output from the GPU");
          !status.ok())
        return status;
  Status status = stepwise ? context->synchronize("copying the outputs")
                           : findFault(0, plan.launches().size());
  if (!status.ok())
    return status;
  for (Slot &slot : outputs)
    if (slot.bytes != 0)
      std::memcpy(slot.caller, slot.host.data(), slot.bytes);
  return {};
}

} // namespace

Result<std::unique_ptr<Device>> createCudaDevice(const Model &model,
                                                 const CudaOptions &options) {
  if (model.deviceCode().empty())
    return TN_ERROR("this artifact has no code for GPUs: compile it with "
                    "--target=cuda");
  CudaOptions chosen = options;
  if (chosen.emulated && chosen.emulatedArch.empty())
    if (auto code = DeviceCode::load(model.deviceCode()); code.ok())
      chosen.emulatedArch = code->emulatedArch();
  auto context = CudaContext::create(chosen);
  if (!context.ok())
    return context.status();
  auto device =
      std::make_unique<CudaDevice>(model, std::move(*context), chosen);
  if (Status status = device->start(); !status.ok())
    return status;
  return std::unique_ptr<Device>(std::move(device));
}

} // namespace tenon::rt
