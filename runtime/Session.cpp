//===- Session.cpp - one caller's runs of a model -----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/Session.h"

#include "runtime/device/Cuda.h"
#include "runtime/format/DType.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace tenon::rt {
namespace {

std::string describeOutput(const Plan &plan, size_t index) {
  const char *name = plan.string(plan.outputs()[index].name);
  return "output '" + printable(std::string(name)) + "'";
}

/// Copies a strided view into C order; elements are whole bytes.
void copyStrided(const tn_view &from, size_t rank, size_t size, char *to) {
  int64_t index[maxRank] = {};
  for (size_t d = 0; d < rank; ++d)
    if (from.shape[d] == 0)
      return;
  const char *at = from.data;
  while (true) {
    std::memcpy(to, at, size);
    to += size;
    size_t d = rank;
    while (true) {
      if (d-- == 0)
        return;
      at += from.stride[d] * int64_t(size);
      if (++index[d] < from.shape[d])
        break;
      at -= from.stride[d] * int64_t(size) * from.shape[d];
      index[d] = 0;
    }
  }
}

bool isContiguous(const tn_view &view, size_t rank) {
  int64_t expected = 1;
  for (size_t d = rank; d-- > 0;) {
    if (view.shape[d] != 1 && view.stride[d] != expected)
      return false;
    expected *= view.shape[d];
  }
  return true;
}

} // namespace

Session::Session(const Model &model, std::unique_ptr<Device> device)
    : theModel(model), plan(model.plan()), theDevice(std::move(device)),
      frame(plan, *theDevice), inputs(plan.inputs().size()),
      results(plan.outputs().size()), symbols(plan.symbols().size()) {
  char *weights = theDevice->weights();
  for (uint32_t i = 0; i < plan.buffers().size(); ++i)
    if (plan.buffers()[i].kind == BufferKind::Weight)
      frame.setBase(i, weights + plan.buffers()[i].offset);
}

Result<std::unique_ptr<Session>> Session::create(const Model &model,
                                                 unsigned threads) {
  CudaOptions options;
  const char *wanted = std::getenv("TENON_DEVICE");
  options.emulated = wanted && std::strcmp(wanted, "emulated") == 0;
  auto device = model.deviceCode().empty() ? createCpuDevice(model, threads)
                                           : createCudaDevice(model, options);
  if (!device.ok())
    return device.status();
  return create(model, std::move(*device));
}

std::unique_ptr<Session> Session::create(const Model &model,
                                         std::unique_ptr<Device> device) {
  return std::unique_ptr<Session>(new Session(model, std::move(device)));
}

Status Session::setInput(size_t index, DType dtype,
                         std::span<const int64_t> shape, const void *data) {
  if (index >= inputs.size())
    return TN_ERROR("no input number %zu; the model has %zu inputs", index,
                    inputs.size());
  if (Status status = checkInput(plan, index, dtype, shape); !status.ok())
    return status;
  uint64_t count = 0;
  countElements(shape, count);
  size_t align = std::max(1, dtypeInfo(dtype).bits / 8);
  if (count != 0 && (!data || reinterpret_cast<uintptr_t>(data) % align != 0))
    return TN_ERROR("%s: its data are %s", describeInput(plan, index).c_str(),
                    data ? "not aligned" : "null");
  inputs[index].set = true;
  inputs[index].shape.assign(shape.begin(), shape.end());
  inputs[index].data = data;
  return {};
}

Status Session::setInput(const std::string &name, DType dtype,
                         std::span<const int64_t> shape, const void *data) {
  std::string known;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (name == plan.string(plan.inputs()[i].name))
      return setInput(i, dtype, shape, data);
    known += (known.empty() ? "'" : ", '") +
             printable(std::string(plan.string(plan.inputs()[i].name))) + "'";
  }
  return TN_ERROR("no input '%s'; the model's inputs are %s",
                  printable(name).c_str(),
                  known.empty() ? "none" : known.c_str());
}

Status Session::setOutput(size_t index, void *data, uint64_t capacity) {
  if (index >= results.size())
    return TN_ERROR("no output number %zu; the model has %zu outputs", index,
                    results.size());
  results[index].callerData = data;
  results[index].capacity = capacity;
  return {};
}

Status Session::bind() {
  if (Status status = bindSymbols(plan, inputs, length(), chosen, symbols);
      !status.ok())
    return status;
  frame.setSymbols(symbols, 0);
  Status sizes = frame.prepareSizes(0);
  // Too long a state is outside its buffer; this is the better message.
  if (Status status = checkRoom(); !status.ok())
    return status;
  if (!sizes.ok())
    return sizes;
  return checkDerivedDims(plan, inputs, frame.values());
}

std::optional<int64_t> Session::peakBytes() const {
  ExprId id = plan.header().peakBytes;
  if (id == none || plan.segmentOf(id) != 0)
    return std::nullopt;
  int64_t sum = frame.values()[id];
  __builtin_add_overflow(sum, copiedBytes(), &sum);
  return sum;
}

int64_t Session::copiedBytes() const {
  int64_t sum = 0;
  for (const State &state : plan.states()) {
    const Port &port = plan.outputs()[state.output];
    int64_t bytes = statesWanted ? dtypeInfo(port.dtype).bits / 8 : 0;
    for (ExprId dim : plan.run(port.shape, port.rank))
      __builtin_mul_overflow(bytes, frame.values()[dim], &bytes);
    __builtin_add_overflow(sum, bytes, &sum);
  }
  return sum;
}

int64_t Session::total(ExprId Launch::*cost) const {
  int64_t sum = 0;
  for (const Launch &launch : plan.launches())
    if (launch.*cost != none)
      __builtin_add_overflow(sum, frame.values()[launch.*cost], &sum);
  return sum;
}

Result<char *> Session::outputMemory(size_t index, uint64_t bytes) {
  OutputSlot &slot = results[index];
  if (slot.callerData) {
    if (bytes > slot.capacity)
      return TN_ERROR("%s: needs %llu bytes, its memory has %llu",
                      describeOutput(plan, index).c_str(),
                      static_cast<unsigned long long>(bytes),
                      static_cast<unsigned long long>(slot.capacity));
    return static_cast<char *>(slot.callerData);
  }
  if (!slot.own || slot.ownBytes < bytes) {
    slot.own.reset(); // first, so that the two are never there together
    slot.own = allocateAligned(bytes);
    slot.ownBytes = bytes;
  }
  if (!slot.own)
    return TN_ERROR("%s: not enough memory for %llu bytes",
                    describeOutput(plan, index).c_str(),
                    static_cast<unsigned long long>(bytes));
  return reinterpret_cast<char *>(slot.own.get());
}

Status Session::placeOutputs(uint32_t segment) {
  for (uint32_t i = 0; i < plan.buffers().size(); ++i) {
    const Buffer &buffer = plan.buffers()[i];
    if (buffer.kind != BufferKind::Output ||
        plan.segmentOf(buffer.bytes) != segment)
      continue;
    Result<char *> memory =
        outputMemory(size_t(buffer.offset), frame.bufferBytes(i));
    if (!memory.ok())
      return memory.status();
    results[size_t(buffer.offset)].placed = *memory;
    Result<char *> base = theDevice->placeOutput(size_t(buffer.offset), *memory,
                                                 frame.bufferBytes(i));
    if (!base.ok())
      return base.status();
    frame.setBase(i, *base);
  }
  return {};
}

int64_t Session::capacity() const {
  int64_t least = INT64_MAX;
  for (const State &state : plan.states())
    least = std::min(least, state.capacity);
  return least;
}

/// How long the states are after a run with the bound symbols.
int64_t Session::newLength() const {
  const State &state = plan.states()[0];
  const Port &port = plan.outputs()[state.output];
  return frame.values()[plan.run(port.shape, port.rank)[state.axis]];
}

Status Session::checkRoom() const {
  if (plan.states().empty() || newLength() <= capacity())
    return {};
  return TN_ERROR("the context is full: it would be %lld long and has room for "
                  "%lld; compile with a larger --max-context (%s)",
                  static_cast<long long>(newLength()),
                  static_cast<long long>(capacity()),
                  describeSymbols(plan, symbols).c_str());
}

/// Gives the states their memory and what the caller brings for them. While
/// they hold something, they must stay where they are.
Status Session::placeStates() {
  if (plan.states().empty())
    return {};
  std::vector<uint64_t> offsets = {0};
  bool anyGiven = false;
  for (const State &state : plan.states()) {
    uint64_t end = 0;
    if (__builtin_add_overflow(offsets.back(), frame.bufferBytes(state.buffer),
                               &end) ||
        end > UINT64_MAX - bufferAlignment)
      return TN_ERROR("the states are too large (%s)",
                      describeSymbols(plan, symbols).c_str());
    offsets.push_back((end + bufferAlignment - 1) / bufferAlignment *
                      bufferAlignment);
    anyGiven |= inputs[state.input].set;
  }
  int64_t longest = *std::max_element(stateLengths.begin(), stateLengths.end());
  if (offsets != stateOffsets && longest != 0 && !anyGiven)
    return TN_ERROR("the states hold %lld steps of other sizes; reset them "
                    "first (%s)",
                    static_cast<long long>(longest),
                    describeSymbols(plan, symbols).c_str());
  if (Status status = reserveStates(std::move(offsets)); !status.ok())
    return status;
  for (size_t i = 0; i < plan.states().size(); ++i) {
    const State &state = plan.states()[i];
    frame.setBase(state.buffer, stateAt(i));
    if (!inputs[state.input].set)
      continue;
    if (Status status = fillState(state); !status.ok())
      return status;
  }
  return {};
}

/// Memory for all sets of states, a set with these offsets and this end.
Status Session::reserveStates(std::vector<uint64_t> offsets) {
  if (offsets == stateOffsets)
    return {};
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(offsets.back(), stateLengths.size(), &bytes))
    return TN_ERROR("the states are too large (%s)",
                    describeSymbols(plan, symbols).c_str());
  Result<char *> memory = theDevice->reserveState(bytes);
  if (!memory.ok())
    return memory.status();
  stateMemory = *memory;
  stateOffsets = std::move(offsets);
  return {};
}

void Session::keepStates(size_t count) {
  stateLengths.assign(count, 0);
  selected = 0;
  stateOffsets.clear(); // so that the next run places them
}

/// Copies the caller's input to its place.
Status Session::fillState(const State &state) {
  const Port &port = plan.inputs()[state.input];
  std::span<const int64_t> shape = inputs[state.input].shape;
  uint64_t outer = 1, inner = dtypeInfo(port.dtype).bits / 8;
  for (size_t d = 0; d < shape.size(); ++d)
    if (d != state.axis)
      (d < state.axis ? outer : inner) *= uint64_t(shape[d]);
  uint64_t from = inner * uint64_t(shape[state.axis]), to = 0, all = 0;
  if (__builtin_mul_overflow(inner, uint64_t(state.capacity), &to) ||
      __builtin_mul_overflow(outer, to, &all) ||
      all > frame.bufferBytes(state.buffer) || from > to)
    return TN_ERROR("damaged plan: %s does not fit its state",
                    describeInput(plan, state.input).c_str());
  const char *data = static_cast<const char *>(inputs[state.input].data);
  char *memory = stateAt(size_t(&state - &plan.states()[0]));
  for (uint64_t i = 0; from != 0 && i < outer; ++i)
    if (Status status = theDevice->put(memory + i * to, data + i * from, from);
        !status.ok())
      return status;
  return {};
}

Status Session::run() {
  if (Status status = bind(); !status.ok())
    return status;
  if (Status status = placeStates(); !status.ok())
    return status;
  for (uint32_t i = 0; i < plan.buffers().size(); ++i) {
    const Buffer &buffer = plan.buffers()[i];
    if (buffer.kind != BufferKind::Input)
      continue;
    size_t index = size_t(buffer.offset);
    uint64_t count = 0;
    countElements(inputs[index].shape, count);
    uint64_t bits = count * dtypeInfo(plan.inputs()[index].dtype).bits;
    if (frame.bufferBytes(i) > (bits + 7) / 8)
      return TN_ERROR("damaged plan: %s is smaller than its buffer",
                      describeInput(plan, index).c_str());
    Result<char *> base =
        theDevice->placeInput(index, inputs[index].data, frame.bufferBytes(i));
    if (!base.ok())
      return base.status();
    frame.setBase(i, *base);
  }
  theDevice->beginRun();
  uint32_t count = uint32_t(plan.segments().size());
  for (uint32_t s = 0; s < std::max(count, 1u); ++s) {
    if (Status status = frame.prepareSizes(s); !status.ok())
      return status;
    if (Status status = placeOutputs(s); !status.ok())
      return status;
    if (s < count)
      if (Status status = runSegment(s); !status.ok())
        return status;
  }
  if (Status status = theDevice->finish(); !status.ok())
    return status;
  for (size_t i = 0; i < results.size(); ++i)
    if (Status status = finishOutput(i); !status.ok())
      return status;
  if (!plan.states().empty())
    stateLengths[selected] = newLength();
  return {};
}

Status Session::runSegment(uint32_t segment) {
  const Segment &run = plan.segments()[segment];
  if (run.numLaunches == 0)
    return {};
  frame.preparePointers(segment);
  if (Status status = theDevice->run(frame, segment); !status.ok())
    return status;
  size_t last = run.firstLaunch + run.numLaunches - 1;
  if (plan.launches()[last].kind != LaunchKind::BindSymbols)
    return {};
  if (Status status = bindFromData(last); !status.ok())
    return status;
  frame.setSymbols(symbols, segment + 1);
  return {};
}

Status Session::bindFromData(size_t index) {
  const Launch &launch = plan.launches()[index];
  const View &described = plan.views()[plan.run(launch.views, 1)[0]];
  const tn_view &view = frame.viewsOf(index)[0];
  int64_t room = 1;
  for (size_t d = 0; d < described.rank; ++d)
    room *= view.shape[d];
  if (uint64_t(room) < launch.numParams)
    return TN_ERROR("damaged plan: launch %zu binds more than there is", index);
  bool wide = described.dtype == DType::I64;
  std::vector<uint8_t> values(launch.numParams * size_t(wide ? 8 : 4));
  if (Status status = theDevice->fetch(values.data(), view.data, values.size());
      !status.ok())
    return status;
  const uint8_t *data = values.data();
  auto ids = plan.run(launch.params, launch.numParams);
  std::string where =
      format("%s: a size computed from the data is ",
             printable(std::string(plan.string(launch.location))).c_str());
  for (size_t i = 0; i < ids.size(); ++i) {
    int64_t value =
        wide ? readAs<int64_t>(data + 8 * i) : readAs<int32_t>(data + 4 * i);
    if (Status status = checkRange(plan, ids[i], value, where); !status.ok())
      return status;
    symbols[ids[i]] = value;
  }
  return {};
}

Status Session::finishOutput(size_t index) {
  const Port &port = plan.outputs()[index];
  OutputSlot &slot = results[index];
  Result<tn_view> view = frame.resolve(port.target, slot.dims);
  if (!view.ok())
    return view.status();
  uint64_t count = 0;
  size_t bits = dtypeInfo(port.dtype).bits;
  slot.value.dtype = port.dtype;
  slot.value.shape = {slot.dims.data(), port.rank};
  if (!countElements(slot.value.shape, count))
    return TN_ERROR("%s: its size is out of range",
                    describeOutput(plan, index).c_str());
  slot.value.bytes = (count * bits + 7) / 8;
  if (!statesWanted && plan.stateOfOutput(index)) {
    slot.value.data = nullptr;
    return {};
  }
  const Buffer &buffer = plan.buffers()[plan.views()[port.target].buffer];
  bool contiguous = isContiguous(*view, port.rank);
  if (buffer.kind == BufferKind::Output && buffer.offset == index) {
    int64_t offset = frame.values()[plan.views()[port.target].offset];
    if (count != 0 && (!contiguous || offset != 0))
      return TN_ERROR("damaged plan: %s is not contiguous",
                      describeOutput(plan, index).c_str());
    slot.value.data = slot.placed;
    return {};
  }
  Result<char *> memory = outputMemory(index, slot.value.bytes);
  if (!memory.ok())
    return memory.status();
  slot.value.data = *memory;
  if (contiguous || bits % 8 != 0)
    return theDevice->fetch(*memory, view->data, slot.value.bytes);
  return count == 0 ? Status() : copyOut(*view, port.rank, bits / 8, *memory);
}

/// Copies a strided view of the device's memory into C order.
Status Session::copyOut(const tn_view &view, size_t rank, size_t size,
                        char *to) {
  int64_t low = 0, high = 0;
  for (size_t d = 0; d < rank; ++d)
    (view.stride[d] < 0 ? low : high) += (view.shape[d] - 1) * view.stride[d];
  int64_t begin = low * int64_t(size), end = (high + 1) * int64_t(size);
  AlignedBytes window = allocateAligned(uint64_t(end - begin));
  if (!window)
    return TN_ERROR("not enough memory for %lld bytes",
                    static_cast<long long>(end - begin));
  if (Status status = theDevice->fetch(window.get(), view.data + begin,
                                       uint64_t(end - begin));
      !status.ok())
    return status;
  tn_view host = view;
  host.data = reinterpret_cast<char *>(window.get()) - begin;
  copyStrided(host, rank, size, to);
  return {};
}

} // namespace tenon::rt
