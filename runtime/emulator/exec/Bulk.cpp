//===- Bulk.cpp - bulk copies and reductions ------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
/// \file
/// A bulk operation happens at once, but as the doing of the asynchronous warp
/// (SharedShadow): whoever touches its bytes before waiting for the mbarrier or
/// the group has made the mistake that a GPU punishes only sometimes.

#include "runtime/emulator/exec/Decoder.h"
#include "runtime/emulator/exec/Lanes.h"
#include "runtime/emulator/exec/SharedObject.h"
#include "runtime/emulator/exec/WarpGlobal.h"
#include "runtime/emulator/exec/WarpShared.h"
#include "runtime/emulator/tensor/BulkCopy.h"
#include "runtime/support/Status.h"

#include <algorithm>
#include <cstring>

using namespace tenon;
using namespace tenon::emu;
using ptx::Operand;
using ptx::Type;
using tensor::BulkError;
using tensor::ReduceOp;
using tensor::ReduceType;

namespace {

enum class Direction : uint8_t { Load, Store, Move };

/// One bulk instruction; which parts it has follows from its syntax.
struct Bulk {
  Direction direction = Direction::Load;
  unsigned rank = 0; ///< of the tensor; 0: plain bytes
  bool reduces = false;
  ReduceOp reduce = ReduceOp::Add;
  ReduceType type = ReduceType::B32;
  bool multicast = false;
  Place shared, other, barrier; ///< other: global, tensor map, or shared source
  Ref coords[5] = {};
  Ref size = 0, blocks = 0;
};

/// One lane's execution of a bulk instruction.
class Execution {
public:
  Execution(Warp &warp, const Op &op, const Bulk &bulk, unsigned lane)
      : warp(warp), op(op), bulk(bulk), lane(lane), global(warp, op, lane) {}

  bool run() {
    if (bulk.rank != 0 && !readMap())
      return false;
    if (!sharedAt(warp, op, bulk.shared, lane, address))
      return false;
    if (bulk.direction == Direction::Store)
      return check(store());
    return load();
  }

private:
  bool readMap();
  BulkError store();
  bool load();
  bool complete(uint32_t barrierAddress, uint64_t bytes);
  bool check(BulkError error);
  Block *blockAt(uint32_t at);
  uint32_t size() const { return lanes<uint32_t>(warp, bulk.size)[lane]; }

  Warp &warp;
  const Op &op;
  const Bulk &bulk;
  unsigned lane;
  WarpGlobal global;
  tensor::TensorMap map{};
  int32_t coords[5] = {};
  uint32_t address = 0; // in shared memory
};

bool Execution::check(BulkError error) {
  if (error != BulkError::None && error != BulkError::Refused)
    warp.fault(op,
               error == BulkError::Misaligned ? Fault::Misaligned
                                              : Fault::BadInstruction,
               lane, rt::format("is refused: %s", tensor::describe(error)));
  return error == BulkError::None;
}

bool Execution::readMap() {
  uint64_t at = addressAt(warp, bulk.other, lane);
  const Allocation *found = warp.launch->memory->find(at);
  bool whole =
      found && found->holds(at, sizeof(map)) && at % 64 == 0 &&
      tensor::TensorMap::decode(reinterpret_cast<const void *>(at), map);
  if (!whole || map.rank != bulk.rank) {
    warp.fault(op, Fault::BadInstruction, lane,
               whole ? rt::format("needs a tensor map of %u dimensions, this "
                                  "one has %u",
                                  bulk.rank, unsigned(map.rank))
                     : rt::format("needs a tensor map at 0x%llx, where none "
                                  "lies",
                                  static_cast<unsigned long long>(at)));
    return false;
  }
  for (unsigned d = 0; d != bulk.rank; ++d)
    coords[d] = lanes<int32_t>(warp, bulk.coords[d])[lane];
  return true;
}

Block *Execution::blockAt(uint32_t at) {
  uint32_t rank = at >> clusterShift;
  auto &blocks = warp.block->cluster->blocks;
  if (rank < blocks.size())
    return blocks[rank].get();
  warp.fault(op, Fault::OutOfBounds, lane,
             rt::format("uses shared address 0x%x, of a block that the cluster "
                        "does not have",
                        at));
  return nullptr;
}

BulkError Execution::store() {
  WarpShared shared(warp, op, *warp.block);
  if (bulk.rank != 0)
    return bulk.reduces
               ? reduceBox(map, coords, bulk.reduce, shared, address, global)
               : storeBox(map, coords, shared, address, global);
  uint64_t to = addressAt(warp, bulk.other, lane);
  return bulk.reduces ? bulkReduce(global, to, shared, address, size(),
                                   bulk.reduce, bulk.type)
                      : bulkStore(global, to, shared, address, size());
}

/// complete_tx at an mbarrier; those who wait for it know of the copy.
bool Execution::complete(uint32_t barrierAddress, uint64_t bytes) {
  BarrierPlace barrier;
  if (!findBarrier(warp, op, lane, barrierAddress, Touch::Read, barrier))
    return false;
  if (warp.launch->checks.races)
    barrier.block->shadow.releaseAsync(
        barrier.block->mbarriers[barrier.offset]);
  tensor::Mbarrier object = barrier.load();
  if (!accept(warp, op, lane, object.completeTx(static_cast<uint32_t>(bytes))))
    return false;
  barrier.store(object);
  return true;
}

bool Execution::load() {
  uint32_t barrierAddress;
  if (!sharedAt(warp, op, bulk.barrier, lane, barrierAddress))
    return false;
  // With .multicast the same offsets in several blocks.
  constexpr uint32_t offsetMask = (1u << clusterShift) - 1;
  uint32_t ranks[16], count = 0;
  if (bulk.multicast) {
    uint16_t mask = lanes<uint16_t>(warp, bulk.blocks)[lane];
    for (uint32_t rank = 0; rank != 16; ++rank)
      if (mask >> rank & 1)
        ranks[count++] = rank;
    address &= offsetMask;
    barrierAddress &= offsetMask;
  } else {
    ranks[count++] = address >> clusterShift;
    address &= offsetMask;
  }
  std::vector<WarpShared> memories;
  std::vector<tensor::SharedMemory *> destinations;
  for (uint32_t i = 0; i != count; ++i) {
    Block *block = blockAt(ranks[i] << clusterShift);
    if (!block)
      return false;
    memories.emplace_back(warp, op, *block, 0);
  }
  for (WarpShared &memory : memories)
    destinations.push_back(&memory);
  uint64_t bytes = bulk.rank != 0 ? map.boxBytes() : size();
  BulkError error;
  if (bulk.rank != 0) {
    error = loadBox(map, coords, global, destinations, address);
  } else if (bulk.direction == Direction::Move) {
    uint32_t source;
    if (!sharedAt(warp, op, bulk.other, lane, source))
      return false;
    WarpShared from(warp, op, *warp.block);
    error = bulkMove(memories[0], address, from, source, size());
  } else {
    error = bulkLoad(destinations, address, global,
                     addressAt(warp, bulk.other, lane), size());
  }
  if (!check(error))
    return false;
  for (uint32_t i = 0; i != count; ++i) {
    uint32_t at = bulk.multicast ? ranks[i] << clusterShift | barrierAddress
                                 : barrierAddress;
    if (!complete(at, bytes))
      return false;
  }
  return true;
}

void runBulk(Warp &warp, const Op &op, uint32_t mask) {
  const auto &bulk = *static_cast<const Bulk *>(warp.code->objects[op.extra]);
  for (; mask != 0; mask &= mask - 1) {
    Execution execution(warp, op, bulk,
                        static_cast<unsigned>(__builtin_ctz(mask)));
    if (!execution.run())
      return;
  }
}

void commitBulk(Warp &warp, const Op &, uint32_t) {
  warp.bulkGroups.emplace_back();
  if (warp.launch->checks.races)
    warp.block->shadow.releaseAsync(warp.bulkGroups.back());
}

void waitBulk(Warp &warp, const Op &op, uint32_t) {
  while (warp.bulkGroups.size() > op.extra) {
    warp.block->shadow.acquireFrom(warp.index, warp.bulkGroups.front());
    warp.bulkGroups.pop_front();
  }
}

void nothing(Warp &, const Op &, uint32_t) {}

// Rules.

std::optional<ReduceOp> takeReduceOp(Decoder &d) {
  static constexpr std::pair<std::string_view, ReduceOp> names[] = {
      {"add", ReduceOp::Add}, {"min", ReduceOp::Min}, {"max", ReduceOp::Max},
      {"inc", ReduceOp::Inc}, {"dec", ReduceOp::Dec}, {"and", ReduceOp::And},
      {"or", ReduceOp::Or},   {"xor", ReduceOp::Xor}};
  for (auto [name, reduceOp] : names)
    if (d.take(name))
      return reduceOp;
  return std::nullopt;
}

std::optional<ReduceType> takeReduceType(Decoder &d) {
  static constexpr std::pair<std::string_view, ReduceType> names[] = {
      {"f16", ReduceType::F16}, {"bf16", ReduceType::BF16},
      {"f32", ReduceType::F32}, {"f64", ReduceType::F64},
      {"s32", ReduceType::S32}, {"u32", ReduceType::U32},
      {"s64", ReduceType::S64}, {"u64", ReduceType::U64},
      {"b32", ReduceType::B32}, {"b64", ReduceType::B64}};
  for (auto [name, type] : names)
    if (d.take(name))
      return type;
  return std::nullopt;
}

unsigned takeRank(Decoder &d) {
  for (unsigned rank = 1; rank <= 5; ++rank)
    if (d.take(rt::format("%ud", rank)))
      return rank;
  return 0;
}

/// [tensor map, {coordinates}]
bool takeTensor(Decoder &d, size_t i, Bulk &bulk) {
  const Operand &operand = d.operand(i);
  bulk.other = takePlace(d, operand, AddressSpace::Generic);
  if (operand.parts.size() != bulk.rank) {
    d.refuse(rt::format("expected %u coordinates, found %zu", bulk.rank,
                        operand.parts.size()));
    return false;
  }
  for (unsigned c = 0; c != bulk.rank; ++c)
    bulk.coords[c] = d.src(operand.parts[c], Type::S32);
  return true;
}

/// From the destination's space on: shared memory is filled.
bool buildLoad(Decoder &d, Bulk &bulk) {
  if (!d.take("shared::cluster") && !d.take("shared::cta"))
    return false;
  bool global = d.take("global");
  if (!global && (bulk.rank != 0 || !d.take("shared::cta")))
    return false;
  bulk.direction = global ? Direction::Load : Direction::Move;
  d.take("tile");
  if (!d.take("mbarrier::complete_tx::bytes"))
    return false;
  bulk.multicast = d.take("multicast::cluster");
  bool hint = d.take("L2::cache_hint");
  size_t plain = bulk.rank != 0 ? 3 : 4;
  size_t count = plain + (bulk.multicast ? 1 : 0) + (hint ? 1 : 0);
  if (!d.expectOperands(count, count))
    return false;
  bulk.shared = takePlace(d, d.operand(0), AddressSpace::Shared);
  if (bulk.rank != 0) {
    if (!takeTensor(d, 1, bulk))
      return false;
  } else {
    bulk.other = takePlace(
        d, d.operand(1), global ? AddressSpace::Global : AddressSpace::Shared);
    bulk.size = d.src(2, Type::U32);
  }
  bulk.barrier = takePlace(d, d.operand(plain - 1), AddressSpace::Shared);
  if (bulk.multicast)
    bulk.blocks = d.src(plain, Type::U16);
  return true;
}

/// From the destination's space on: global memory is written.
bool buildStore(Decoder &d, Bulk &bulk) {
  bulk.direction = Direction::Store;
  if (!d.take("global") || !d.take("shared::cta"))
    return false;
  if (bulk.rank != 0) {
    if (bulk.reduces) {
      std::optional<ReduceOp> reduceOp = takeReduceOp(d);
      if (!reduceOp)
        return false;
      bulk.reduce = *reduceOp;
    }
    d.take("tile");
  }
  if (!d.take("bulk_group"))
    return false;
  bool hint = d.take("L2::cache_hint");
  if (bulk.rank == 0 && bulk.reduces) {
    std::optional<ReduceOp> reduceOp = takeReduceOp(d);
    d.take("noftz");
    std::optional<ReduceType> type = takeReduceType(d);
    if (!reduceOp || !type)
      return false;
    bulk.reduce = *reduceOp;
    bulk.type = *type;
  }
  size_t count = (bulk.rank != 0 ? 2 : 3) + (hint ? 1 : 0);
  if (!d.expectOperands(count, count))
    return false;
  if (bulk.rank != 0) {
    if (!takeTensor(d, 0, bulk))
      return false;
  } else {
    bulk.other = takePlace(d, d.operand(0), AddressSpace::Global);
    bulk.size = d.src(2, Type::U32);
  }
  bulk.shared = takePlace(d, d.operand(1), AddressSpace::Shared);
  return true;
}

Handler finishBulk(Decoder &d, Bulk &bulk) {
  bool store = d.peek() == "global";
  if (!(store ? buildStore(d, bulk) : buildLoad(d, bulk)))
    return nullptr;
  d.op.extra = d.keep(std::make_shared<const Bulk>(bulk));
  return runBulk;
}

Handler buildGroup(Decoder &d) {
  if (d.take("commit_group"))
    return commitBulk;
  if (!d.take("wait_group"))
    return nullptr;
  d.take("read");
  if (!d.expectOperands(1, 1))
    return nullptr;
  std::optional<int64_t> keep = d.immediate(0);
  if (!keep || *keep < 0)
    return d.refuse("expected a number of groups");
  d.op.extra = static_cast<uint32_t>(std::min<int64_t>(*keep, 1 << 20));
  return waitBulk;
}

Handler buildCopy(Decoder &d) {
  if (!d.take("async") || !d.take("bulk"))
    return nullptr;
  d.op.kind = OpClass::AsyncCopy;
  if (d.take("prefetch")) { // touches no memory that a kernel sees
    while (!d.peek().empty())
      d.skip();
    return nothing;
  }
  Bulk bulk;
  if (d.take("tensor") && (bulk.rank = takeRank(d)) == 0)
    return nullptr;
  if (bulk.rank == 0 &&
      (d.peek() == "commit_group" || d.peek() == "wait_group"))
    return buildGroup(d);
  return finishBulk(d, bulk);
}

Handler buildReduce(Decoder &d) {
  if (!d.take("reduce") || !d.take("async") || !d.take("bulk"))
    return nullptr;
  d.op.kind = OpClass::AsyncCopy;
  Bulk bulk;
  bulk.reduces = true;
  if (d.take("tensor") && (bulk.rank = takeRank(d)) == 0)
    return nullptr;
  return finishBulk(d, bulk);
}

constexpr RuleEntry rules[] = {
    {"cp", buildCopy},
    {"cp", buildReduce},
};

} // namespace

std::span<const RuleEntry> emu::bulkRules() { return rules; }
