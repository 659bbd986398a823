//===- CudaWeights.h - a model's weights on a GPU -------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_DEVICE_CUDAWEIGHTS_H
#define TENON_RUNTIME_DEVICE_CUDAWEIGHTS_H

#include "runtime/Model.h"
#include "runtime/device/CudaContext.h"

namespace tenon::rt {

/// Copies from the host's memory, which may be a file, through two pinned
/// buffers, so that reading and copying overlap.
class Stager {
public:
  explicit Stager(const CudaDriver &driver);
  ~Stager();

  /// Makes the buffers, for pieces of at most `bytes`; more are no better than
  /// some megabytes.
  Status open(uint64_t bytes);
  /// Queues a copy on `stream`; `from` has been read when this returns.
  Status copy(CUdeviceptr to, const uint8_t *from, uint64_t bytes,
              CUstream stream);

private:
  const CudaDriver &driver;
  PinnedBuffer buffers[2];
  CUevent done[2] = {};
  bool waiting[2] = {};
  uint64_t pieceBytes = 0;
  unsigned next = 0;
};

/// All weights, where there is room for them. Else some of them stay, and the
/// others come in *blocks*: what a run of consecutive launches reads. Blocks
/// take turns in two slots (one, where there is no room for two), so that a
/// second stream fills one while the launches that use the other run.
class CudaWeights {
public:
  /// Both must outlive it.
  CudaWeights(const Model &model, CudaContext &context);
  ~CudaWeights();
  CudaWeights(const CudaWeights &) = delete;
  CudaWeights &operator=(const CudaWeights &) = delete;

  /// place(), if there is room for all. Else that waits for the first run, when
  /// everything that cannot come in blocks has its memory.
  Status start() {
    return host.size() <= context.freeBytes() ? place() : Status();
  }
  /// Finds the weights a place in what memory there is, unless they have one,
  /// and brings those that stay there.
  Status place();
  /// Gives the memory back, for something that cannot come in blocks; false if
  /// there is none. Waits.
  bool giveWay();

  /// Where `buffer`, a weight, is while launch number `launch` runs.
  CUdeviceptr address(uint32_t buffer, uint32_t launch) const;

  /// Whether there are blocks.
  bool streamed() const { return !blocks.empty(); }
  uint32_t blockOf(uint32_t launch) const { return blockOfLaunch[launch]; }
  /// Has what is queued next on the context's stream find the block.
  Status bring(uint32_t block);
  /// What uses the block has been queued.
  Status used(uint32_t block);

  /// What is where, for people; empty if all weights stay.
  std::string note() const;

private:
  /// A weight within a slot.
  struct Place {
    uint32_t buffer;
    uint64_t offset;
  };
  struct Block {
    std::vector<Place> places;
    uint64_t bytes = 0;
    unsigned slot = 0;
  };
  struct Slot {
    CUdeviceptr pointer = 0;
    CUevent filled = nullptr, free = nullptr;
    uint32_t holds = none; ///< a block
    bool inUse = false;    ///< `free` has been recorded
  };
  /// Which weights stay, and what that takes.
  struct Choice {
    std::vector<bool> stays;
    uint64_t stayingBytes = 0, slotBytes = 0;
    unsigned slots = 0;

    uint64_t total() const { return stayingBytes + slots * slotBytes; }
  };

  Status readPlan();
  Status placeAll();
  Status placeSome(uint64_t room);
  Choice choose(unsigned slots, uint64_t room) const;
  uint64_t largestLaunch(const std::vector<bool> &stays) const;
  std::string largestName(const std::vector<bool> &stays) const;
  void makeBlocks(const Choice &choice);
  Status openSlots(const Choice &choice);
  Status upload(CUdeviceptr to, uint64_t offset, uint64_t bytes);

  const Plan &plan;
  Bytes host;
  CudaContext &context;
  const CudaDriver &api;
  Stager stager;
  CUstream copies = nullptr;
  bool read = false, placed = false;
  CUdeviceptr memory = 0;
  uint64_t memoryBytes = 0;
  std::vector<uint64_t> sizes;   ///< of buffers; 0 for those of no weight
  std::vector<unsigned> numUses; ///< launches that read the buffer
  std::vector<std::vector<uint32_t>> readBy; ///< buffers of each launch
  std::vector<CUdeviceptr> staying;          ///< by buffer; 0: it comes
  std::vector<uint32_t> blockOfLaunch;
  std::vector<Block> blocks;
  std::vector<Slot> slots;
  uint64_t stayingBytes = 0, slotBytes = 0;
};

} // namespace tenon::rt

#endif // TENON_RUNTIME_DEVICE_CUDAWEIGHTS_H
