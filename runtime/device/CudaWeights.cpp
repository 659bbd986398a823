//===- CudaWeights.cpp - a model's weights on a GPU -----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/device/CudaWeights.h"

#include "runtime/support/Sizes.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace tenon::rt {
namespace {

constexpr uint64_t uploadPiece = uint64_t(32) << 20;
/// Where a weight may start: what any kernel's loads and bulk copies need.
constexpr uint64_t alignment = 256;

uint64_t aligned(uint64_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

std::string describe(uint64_t bytes) { return describeBytes(double(bytes)); }

} // namespace

//===----------------------------------------------------------------------===//
// Stager
//===----------------------------------------------------------------------===//

Stager::Stager(const CudaDriver &driver)
    : driver(driver), buffers{PinnedBuffer(driver), PinnedBuffer(driver)} {}

Stager::~Stager() {
  for (CUevent event : done)
    if (event)
      driver.cuEventDestroy(event);
}

Status Stager::open(uint64_t bytes) {
  bytes = std::clamp<uint64_t>(bytes, 1, uploadPiece);
  if (bytes <= pieceBytes)
    return {};
  for (unsigned i = 0; i < 2; ++i) {
    if (waiting[i])
      driver.cuEventSynchronize(done[i]);
    if (Status status = buffers[i].reserve(bytes); !status.ok())
      return status;
    if (done[i])
      continue;
    if (Status status = driver.check(
            driver.cuEventCreate(&done[i], CU_EVENT_DISABLE_TIMING),
            "cannot make an event");
        !status.ok())
      return status;
  }
  pieceBytes = bytes;
  return {};
}

Status Stager::copy(CUdeviceptr to, const uint8_t *from, uint64_t bytes,
                    CUstream stream) {
  for (uint64_t at = 0; at < bytes; at += pieceBytes, next ^= 1) {
    uint64_t size = std::min(pieceBytes, bytes - at);
    CUresult result =
        waiting[next] ? driver.cuEventSynchronize(done[next]) : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS) {
      std::memcpy(buffers[next].data(), from + at, size);
      result =
          driver.cuMemcpyHtoDAsync(to + at, buffers[next].data(), size, stream);
    }
    if (result == CUDA_SUCCESS)
      result = driver.cuEventRecord(done[next], stream);
    if (result != CUDA_SUCCESS)
      return driver.check(result, "copying weights to the GPU");
    waiting[next] = true;
  }
  return {};
}

//===----------------------------------------------------------------------===//
// CudaWeights: the plan
//===----------------------------------------------------------------------===//

CudaWeights::CudaWeights(const Model &model, CudaContext &context)
    : plan(model.plan()), host(model.weights()), context(context),
      api(context.api()), stager(api) {}

CudaWeights::~CudaWeights() {
  giveWay();
  for (Slot &slot : slots)
    for (CUevent event : {slot.filled, slot.free})
      if (event)
        api.cuEventDestroy(event);
  if (copies)
    api.cuStreamDestroy(copies);
}

/// What each launch reads.
Status CudaWeights::readPlan() {
  size_t count = plan.buffers().size();
  sizes.assign(count, 0);
  numUses.assign(count, 0);
  readBy.assign(plan.launches().size(), {});
  for (size_t b = 0; b < count; ++b) {
    const Buffer &buffer = plan.buffers()[b];
    if (buffer.kind != BufferKind::Weight)
      continue;
    const Expr &bytes = plan.exprs()[buffer.bytes];
    if (bytes.op != ExprOp::Constant || bytes.value < 0 ||
        !inRange(buffer.offset, uint64_t(bytes.value), host.size()))
      return TN_ERROR("damaged plan: weight %zu lies outside the weights", b);
    sizes[b] = uint64_t(bytes.value);
  }
  for (size_t l = 0; l < readBy.size(); ++l) {
    const Launch &launch = plan.launches()[l];
    std::vector<uint32_t> &list = readBy[l];
    for (uint32_t view : plan.run(launch.views, launch.numViews))
      if (uint32_t buffer = plan.views()[view].buffer; sizes[buffer] != 0)
        list.push_back(buffer);
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    for (uint32_t buffer : list)
      ++numUses[buffer];
  }
  return {};
}

/// The most bytes that come for one launch.
uint64_t CudaWeights::largestLaunch(const std::vector<bool> &stays) const {
  uint64_t largest = 0;
  for (const std::vector<uint32_t> &list : readBy) {
    uint64_t bytes = 0;
    for (uint32_t buffer : list)
      bytes += stays[buffer] ? 0 : aligned(sizes[buffer]);
    largest = std::max(largest, bytes);
  }
  return largest;
}

/// Weights stay, the largest first, as long as there is room; and where there
/// is not, as long as that makes the slots smaller by more than it takes.
CudaWeights::Choice CudaWeights::choose(unsigned slots, uint64_t room) const {
  std::vector<uint32_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return sizes[a] * numUses[a] > sizes[b] * numUses[b];
  });
  Choice choice;
  choice.slots = slots;
  choice.stays.assign(sizes.size(), false);
  choice.slotBytes = largestLaunch(choice.stays);
  for (uint32_t buffer : order) {
    if (numUses[buffer] == 0)
      continue;
    Choice larger = choice;
    larger.stays[buffer] = true;
    larger.stayingBytes += aligned(sizes[buffer]);
    larger.slotBytes = largestLaunch(larger.stays);
    if (larger.total() <= std::max(room, choice.total()))
      choice = std::move(larger);
  }
  return choice;
}

/// Blocks end with their segment, or when the next launch's weights do not fit.
void CudaWeights::makeBlocks(const Choice &choice) {
  blocks.clear();
  blockOfLaunch.assign(plan.launches().size(), 0);
  unsigned filled = 0;
  for (const Segment &segment : plan.segments()) {
    blocks.emplace_back();
    for (uint32_t l = segment.firstLaunch;
         l < segment.firstLaunch + segment.numLaunches; ++l) {
      std::vector<uint32_t> fresh;
      uint64_t bytes = 0;
      auto collect = [&] {
        fresh.clear();
        bytes = 0;
        for (uint32_t buffer : readBy[l])
          if (!choice.stays[buffer] &&
              std::none_of(blocks.back().places.begin(),
                           blocks.back().places.end(),
                           [&](Place p) { return p.buffer == buffer; })) {
            fresh.push_back(buffer);
            bytes += aligned(sizes[buffer]);
          }
      };
      collect();
      if (blocks.back().bytes + bytes > choice.slotBytes) {
        blocks.emplace_back();
        collect();
      }
      Block &block = blocks.back();
      if (block.places.empty() && !fresh.empty())
        block.slot = filled++ % choice.slots;
      for (uint32_t buffer : fresh) {
        block.places.push_back({buffer, block.bytes});
        block.bytes += aligned(sizes[buffer]);
      }
      blockOfLaunch[l] = uint32_t(blocks.size() - 1);
    }
  }
}

//===----------------------------------------------------------------------===//
// CudaWeights: the memory
//===----------------------------------------------------------------------===//

Status CudaWeights::place() {
  if (placed)
    return {};
  if (!std::exchange(read, true))
    if (Status status = readPlan(); !status.ok())
      return status;
  uint64_t room = context.freeBytes();
  if (host.size() <= room) {
    Result<CUdeviceptr> all = context.allocate(host.size(), "the weights");
    if (all.ok()) {
      memory = *all;
      memoryBytes = host.size();
      return placeAll();
    }
  }
  return placeSome(room);
}

Status CudaWeights::placeAll() {
  blocks.clear();
  staying.assign(sizes.size(), 0);
  for (size_t b = 0; b < sizes.size(); ++b)
    if (plan.buffers()[b].kind == BufferKind::Weight)
      staying[b] = memory + plan.buffers()[b].offset;
  if (Status status = upload(memory, 0, host.size()); !status.ok())
    return status;
  placed = true;
  return context.synchronize("copying weights to the GPU");
}

Status CudaWeights::upload(CUdeviceptr to, uint64_t offset, uint64_t bytes) {
  if (bytes == 0)
    return {};
  if (Status status = stager.open(bytes); !status.ok())
    return status;
  return stager.copy(to, host.data() + offset, bytes, context.stream());
}

std::string CudaWeights::largestName(const std::vector<bool> &stays) const {
  uint64_t largest = largestLaunch(stays);
  for (size_t l = 0; l < readBy.size(); ++l) {
    uint64_t bytes = 0;
    for (uint32_t buffer : readBy[l])
      bytes += stays[buffer] ? 0 : aligned(sizes[buffer]);
    if (bytes != largest)
      continue;
    const Launch &launch = plan.launches()[l];
    return format("kernel '%s' of node '%s'", plan.string(launch.kernel),
                  printable(std::string(plan.string(launch.location))).c_str());
  }
  return "a kernel";
}

Status CudaWeights::placeSome(uint64_t room) {
  Choice choice = choose(2, room);
  if (choice.total() > room)
    choice = choose(1, room);
  if (choice.total() > room)
    return TN_ERROR(
        "the weights do not fit: %s are left for them on %s, and %s needs %s "
        "of its own at once; with %s more the %s would come in blocks",
        describe(room).c_str(), context.name().c_str(),
        largestName(choice.stays).c_str(), describe(choice.slotBytes).c_str(),
        describe(choice.total() - room).c_str(), describe(host.size()).c_str());
  Result<CUdeviceptr> some = context.allocate(choice.total(), "weights");
  if (!some.ok())
    return some.status();
  memory = *some;
  memoryBytes = choice.total();
  makeBlocks(choice);
  stayingBytes = choice.stayingBytes;
  slotBytes = choice.slotBytes;
  staying.assign(sizes.size(), 0);
  uint64_t at = 0;
  for (size_t b = 0; b < sizes.size(); ++b) {
    if (!choice.stays[b])
      continue;
    staying[b] = memory + at;
    at += aligned(sizes[b]);
    if (Status status = upload(staying[b], plan.buffers()[b].offset, sizes[b]);
        !status.ok())
      return status;
  }
  if (Status status = context.synchronize("copying weights to the GPU");
      !status.ok())
    return status;
  return openSlots(choice);
}

Status CudaWeights::openSlots(const Choice &choice) {
  if (!copies)
    if (Status status =
            api.check(api.cuStreamCreate(&copies, CU_STREAM_NON_BLOCKING),
                      "cannot make a stream");
        !status.ok())
      return status;
  if (Status status = stager.open(choice.slotBytes); !status.ok())
    return status;
  while (slots.size() < choice.slots) {
    Slot &slot = slots.emplace_back();
    for (CUevent *event : {&slot.filled, &slot.free})
      if (Status status =
              api.check(api.cuEventCreate(event, CU_EVENT_DISABLE_TIMING),
                        "cannot make an event");
          !status.ok())
        return status;
  }
  for (size_t i = 0; i < slots.size(); ++i) {
    slots[i].pointer = memory + choice.stayingBytes + i * choice.slotBytes;
    slots[i].holds = none;
    slots[i].inUse = false;
  }
  placed = true;
  return {};
}

bool CudaWeights::giveWay() {
  if (memory == 0)
    return false;
  (void)context.synchronize(""); // an error shows again in what comes next
  if (copies)
    api.cuStreamSynchronize(copies);
  context.release(memory, memoryBytes);
  memory = 0;
  placed = false;
  return true;
}

CUdeviceptr CudaWeights::address(uint32_t buffer, uint32_t launch) const {
  if (staying[buffer] != 0 || blocks.empty())
    return staying[buffer];
  const Block &block = blocks[blockOfLaunch[launch]];
  for (const Place &place : block.places)
    if (place.buffer == buffer)
      return slots[block.slot].pointer + place.offset;
  return 0; // of size 0, or a view that nothing reads
}

//===----------------------------------------------------------------------===//
// CudaWeights: blocks
//===----------------------------------------------------------------------===//

Status CudaWeights::bring(uint32_t index) {
  const Block &block = blocks[index];
  if (block.places.empty())
    return {};
  Slot &slot = slots[block.slot];
  if (slot.holds != index) {
    slot.holds = none;
    if (slot.inUse)
      if (Status status = api.check(api.cuStreamWaitEvent(copies, slot.free, 0),
                                    "waiting for a block of weights");
          !status.ok())
        return status;
    for (const Place &place : block.places)
      if (Status status =
              stager.copy(slot.pointer + place.offset,
                          host.data() + plan.buffers()[place.buffer].offset,
                          sizes[place.buffer], copies);
          !status.ok())
        return status;
    if (Status status = api.check(api.cuEventRecord(slot.filled, copies),
                                  "copying weights to the GPU");
        !status.ok())
      return status;
    slot.holds = index;
  }
  return api.check(api.cuStreamWaitEvent(context.stream(), slot.filled, 0),
                   "waiting for a block of weights");
}

Status CudaWeights::used(uint32_t index) {
  if (blocks[index].places.empty())
    return {};
  Slot &slot = slots[blocks[index].slot];
  slot.inUse = true;
  return api.check(api.cuEventRecord(slot.free, context.stream()),
                   "using a block of weights");
}

std::string CudaWeights::note() const {
  if (!streamed())
    return "";
  uint64_t coming = 0;
  size_t count = 0;
  for (const Block &block : blocks) {
    coming += block.bytes;
    count += !block.places.empty();
  }
  return format("weights: %s stay on the GPU, %s come for each run in %zu "
                "blocks of %s at most",
                describe(stayingBytes).c_str(), describe(coming).c_str(), count,
                describe(slotBytes).c_str());
}

} // namespace tenon::rt
