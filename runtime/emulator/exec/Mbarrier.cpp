//===- Mbarrier.cpp - mbarrier instructions and proxy fences --------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/emulator/tensor/Mbarrier.h"
#include "runtime/emulator/exec/Decoder.h"
#include "runtime/emulator/exec/Lanes.h"
#include "runtime/emulator/exec/SharedObject.h"
#include "runtime/support/Status.h"

#include <cstring>

using namespace tenon;
using namespace tenon::emu;
using ptx::Operand;
using ptx::Type;
using tensor::Mbarrier;
using tensor::MbarrierError;

Place emu::takePlace(Decoder &d, const Operand &operand, AddressSpace space) {
  Op saved = d.op;
  d.address(operand, space);
  Place place = {d.op.a, d.op.offset, d.op.narrowAddress,
                 d.op.space == AddressSpace::Generic};
  d.op = saved;
  return place;
}

uint64_t emu::addressAt(const Warp &warp, const Place &place, unsigned lane) {
  auto offset = static_cast<uint64_t>(place.offset);
  if (place.narrow)
    return static_cast<uint32_t>(lanes<uint32_t>(warp, place.base)[lane] +
                                 offset);
  return lanes<uint64_t>(warp, place.base)[lane] + offset;
}

bool emu::sharedAt(Warp &warp, const Op &op, const Place &place, unsigned lane,
                   uint32_t &address) {
  uint64_t full = addressAt(warp, place, lane);
  address = static_cast<uint32_t>(full);
  if (!place.generic || full >> 56 == sharedWindow >> 56)
    return true;
  warp.fault(op, Fault::OutOfBounds, lane,
             "has an address that is not in shared memory");
  return false;
}

Mbarrier BarrierPlace::load() const {
  uint64_t bits;
  std::memcpy(&bits, block->shared.get() + offset, 8);
  return Mbarrier(bits);
}

void BarrierPlace::store(const Mbarrier &barrier) const {
  uint64_t bits = barrier.bits();
  std::memcpy(block->shared.get() + offset, &bits, 8);
}

bool emu::findBarrier(Warp &warp, const Op &op, unsigned lane, uint32_t address,
                      Touch touch, BarrierPlace &barrier) {
  if (address % 8 != 0) {
    warp.fault(op, Fault::Misaligned, lane,
               rt::format("names an mbarrier at shared address 0x%x, which is "
                          "no multiple of 8",
                          address));
    return false;
  }
  barrier.block = sharedOwner(warp, address, 8);
  if (!barrier.block) {
    warp.fault(op, Fault::OutOfBounds, lane,
               rt::format("names an mbarrier at shared address 0x%x, outside "
                          "the block's [0x%x, 0x%x)",
                          address, sharedStart, warp.block->sharedEnd));
    return false;
  }
  barrier.offset = address & ((1u << clusterShift) - 1);
  const Checks &checks = warp.launch->checks;
  bool own = barrier.block == warp.block;
  if (!own || (!checks.initialised && !checks.races))
    return true;
  // To the checks the operations on an object are reads of it, which may
  // happen at the same time, and init and inval are writes.
  SharedShadow &shadow = barrier.block->shadow;
  SharedShadow::Problem problem =
      touch == Touch::Write
          ? shadow.write(barrier.offset, 8, warp.index, checks.races)
          : shadow.read(barrier.offset, 8, warp.index, checks.races);
  return judge(warp, op, lane, touch, 8, problem);
}

bool emu::accept(Warp &warp, const Op &op, unsigned lane, MbarrierError error) {
  if (error == MbarrierError::None)
    return true;
  warp.fault(op, Fault::BadInstruction, lane,
             rt::format("is refused: %s", tensor::describe(error)));
  return false;
}

void emu::releaseTo(Warp &warp, const BarrierPlace &barrier) {
  if (barrier.block == warp.block && warp.launch->checks.races)
    warp.block->shadow.releaseTo(warp.index,
                                 warp.block->mbarriers[barrier.offset]);
}

AddressSpace emu::takeSharedSpace(Decoder &d) {
  bool shared =
      d.take("shared::cta") || d.take("shared::cluster") || d.take("shared");
  return shared ? AddressSpace::Shared : AddressSpace::Generic;
}

namespace {

/// Calls f(lane, barrier) for each lane's object; checks each object once if
/// neighbouring lanes share it. False after a finding.
template <typename F>
bool forBarriers(Warp &warp, const Op &op, uint32_t mask, Touch touch, F &&f) {
  const auto &place = *static_cast<const Place *>(warp.code->objects[op.extra]);
  BarrierPlace barrier;
  uint32_t last = ~0u;
  for (; mask != 0; mask &= mask - 1) {
    auto lane = static_cast<unsigned>(__builtin_ctz(mask));
    uint32_t address;
    if (!sharedAt(warp, op, place, lane, address))
      return false;
    bool isNew = address != last;
    if (isNew && !findBarrier(warp, op, lane, address, touch, barrier))
      return false;
    last = address;
    if (!f(lane, barrier, isNew))
      return false;
  }
  return true;
}

void acquireFrom(Warp &warp, const BarrierPlace &barrier) {
  if (barrier.block == warp.block && warp.launch->checks.races)
    warp.block->shadow.acquireFrom(warp.index,
                                   warp.block->mbarriers[barrier.offset]);
}

void runInit(Warp &warp, const Op &op, uint32_t mask) {
  const uint32_t *count = lanes<uint32_t>(warp, op.b);
  forBarriers(warp, op, mask, Touch::Write,
              [&](unsigned lane, const BarrierPlace &barrier, bool) {
                Mbarrier object(0);
                if (!accept(warp, op, lane, object.init(count[lane])))
                  return false;
                barrier.store(object);
                return true;
              });
}

void runInvalidate(Warp &warp, const Op &op, uint32_t mask) {
  forBarriers(warp, op, mask, Touch::Write,
              [&](unsigned lane, const BarrierPlace &barrier, bool) {
                Mbarrier object = barrier.load();
                if (!accept(warp, op, lane, object.invalidate()))
                  return false;
                barrier.store(object);
                return true;
              });
}

enum class Arrival : uint8_t { Plain, Drop, Expect };

template <Arrival kind>
void runArrive(Warp &warp, const Op &op, uint32_t mask) {
  const uint32_t *operand = lanes<uint32_t>(warp, op.b);
  uint64_t *states = lanes<uint64_t>(warp, op.dst);
  forBarriers(warp, op, mask, Touch::Read,
              [&](unsigned lane, const BarrierPlace &barrier, bool isNew) {
                if (isNew)
                  releaseTo(warp, barrier);
                Mbarrier object = barrier.load();
                uint64_t state = 0;
                MbarrierError error = MbarrierError::None;
                if (kind == Arrival::Expect)
                  error = object.expectTx(operand[lane]);
                uint32_t count = kind == Arrival::Expect ? 1 : operand[lane];
                if (error == MbarrierError::None)
                  error = kind == Arrival::Drop
                              ? object.arriveDrop(count, state)
                              : object.arrive(count, state);
                if (!accept(warp, op, lane, error))
                  return false;
                barrier.store(object);
                states[lane] = state;
                return true;
              });
}

template <bool expect>
void runTransaction(Warp &warp, const Op &op, uint32_t mask) {
  const uint32_t *bytes = lanes<uint32_t>(warp, op.b);
  forBarriers(warp, op, mask, Touch::Read,
              [&](unsigned lane, const BarrierPlace &barrier, bool) {
                Mbarrier object = barrier.load();
                MbarrierError error = expect ? object.expectTx(bytes[lane])
                                             : object.completeTx(bytes[lane]);
                if (!accept(warp, op, lane, error))
                  return false;
                barrier.store(object);
                return true;
              });
}

template <bool parity> void runWait(Warp &warp, const Op &op, uint32_t mask) {
  uint32_t done = 0;
  bool whole = forBarriers(
      warp, op, mask, Touch::Read,
      [&](unsigned lane, const BarrierPlace &barrier, bool) {
        Mbarrier object = barrier.load();
        bool completed = false;
        MbarrierError error =
            parity
                ? object.testWaitParity(lanes<uint32_t>(warp, op.b)[lane],
                                        completed)
                : object.testWait(lanes<uint64_t>(warp, op.b)[lane], completed);
        if (!accept(warp, op, lane, error))
          return false;
        if (completed && done == 0)
          acquireFrom(warp, barrier);
        done |= uint32_t(completed) << lane;
        return true;
      });
  if (!whole)
    return;
  setPredicate(warp, op.dst, mask, done);
  if (done == mask)
    return;
  warp.waitsAt = &op;
  warp.yielded = true;
}

void runPendingCount(Warp &warp, const Op &op, uint32_t mask) {
  const uint64_t *state = lanes<uint64_t>(warp, op.a);
  each(lanes<uint32_t>(warp, op.dst), mask,
       [=](unsigned i) { return Mbarrier::pendingCount(state[i]); });
}

void runProxyFence(Warp &warp, const Op &, uint32_t) {
  if (warp.launch->checks.races)
    warp.block->shadow.fenceProxy(warp.index);
}

void nothing(Warp &, const Op &, uint32_t) {}

/// cp.async.mbarrier.arrive: the copies of these lanes end here, and the
/// waiters know of them.
void runCopyArrive(Warp &warp, const Op &op, uint32_t mask) {
  auto finish = [&](std::vector<CopyPiece> &pieces) {
    std::erase_if(pieces, [&](const CopyPiece &piece) {
      if (!(mask >> piece.lane & 1))
        return false;
      warp.block->shadow.endCopy(piece.address, piece.bytes, warp.index);
      return true;
    });
  };
  for (std::vector<CopyPiece> &group : warp.copyGroups)
    finish(group);
  finish(warp.openCopies);
  bool counts = op.b != 0; // .noinc: one of the expected arrivals
  forBarriers(warp, op, mask, Touch::Read,
              [&](unsigned lane, const BarrierPlace &barrier, bool isNew) {
                if (isNew)
                  releaseTo(warp, barrier);
                Mbarrier object = barrier.load();
                uint64_t state;
                MbarrierError error = !object.valid()
                                          ? MbarrierError::NotInitialised
                                      : counts ? object.arrive(1, state)
                                               : MbarrierError::None;
                if (!accept(warp, op, lane, error))
                  return false;
                barrier.store(object);
                return true;
              });
}

// Rules.

void takeOrder(Decoder &d) {
  for (std::string_view order : {"release", "acquire", "relaxed"})
    if (d.take(order))
      break;
  if (!d.take("cta"))
    d.take("cluster");
}

void placeAt(Decoder &d, size_t operand, AddressSpace space) {
  d.op.extra = d.keep(
      std::make_shared<const Place>(takePlace(d, d.operand(operand), space)));
}

Handler buildArrive(Decoder &d, bool drop) {
  bool expect = d.take("expect_tx");
  d.take("noComplete");
  takeOrder(d);
  AddressSpace space = takeSharedSpace(d);
  if (!d.take("b64") || !d.expectOperands(2, 3))
    return nullptr;
  d.op.dst = d.dst(d.operand(0), Type::B64);
  placeAt(d, 1, space);
  d.op.b = d.operands() == 3 ? d.src(2, Type::U32) : d.constant(1, 4);
  if (expect && drop)
    return nullptr;
  return expect ? runArrive<Arrival::Expect>
         : drop ? runArrive<Arrival::Drop>
                : runArrive<Arrival::Plain>;
}

Handler buildTransaction(Decoder &d, bool expect) {
  takeOrder(d);
  AddressSpace space = takeSharedSpace(d);
  if (!d.take("b64") || !d.expectOperands(2, 2))
    return nullptr;
  placeAt(d, 0, space);
  d.op.b = d.src(1, Type::U32);
  return expect ? runTransaction<true> : runTransaction<false>;
}

Handler buildWait(Decoder &d) {
  bool parity = d.take("parity");
  takeOrder(d);
  AddressSpace space = takeSharedSpace(d);
  if (!d.take("b64") || !d.expectOperands(3, 4)) // a hint of time may follow
    return nullptr;
  d.op.dst = d.dst(d.operand(0), Type::Pred);
  placeAt(d, 1, space);
  d.op.b = d.src(2, parity ? Type::U32 : Type::U64);
  return parity ? runWait<true> : runWait<false>;
}

Handler buildMbarrier(Decoder &d) {
  d.op.kind = OpClass::Barrier;
  if (d.take("init")) {
    AddressSpace space = takeSharedSpace(d);
    if (!d.take("b64") || !d.expectOperands(2, 2))
      return nullptr;
    placeAt(d, 0, space);
    d.op.b = d.src(1, Type::U32);
    return runInit;
  }
  if (d.take("inval")) {
    AddressSpace space = takeSharedSpace(d);
    if (!d.take("b64") || !d.expectOperands(1, 1))
      return nullptr;
    placeAt(d, 0, space);
    return runInvalidate;
  }
  if (d.take("arrive"))
    return buildArrive(d, false);
  if (d.take("arrive_drop"))
    return buildArrive(d, true);
  if (d.take("expect_tx"))
    return buildTransaction(d, true);
  if (d.take("complete_tx"))
    return buildTransaction(d, false);
  if (d.take("test_wait") || d.take("try_wait"))
    return buildWait(d);
  if (d.take("pending_count") && d.take("b64"))
    return d.form(runPendingCount, Type::U32, {Type::B64});
  return nullptr;
}

/// fence.proxy.*; the others are elsewhere.
Handler buildFence(Decoder &d) {
  d.op.kind = OpClass::Barrier;
  if (!d.take("proxy"))
    return nullptr;
  if (d.take("async")) {
    if (!d.take("global"))
      takeSharedSpace(d);
    return runProxyFence;
  }
  return d.take("alias") ? nothing : nullptr;
}

Handler buildCopyArrive(Decoder &d) {
  if (!d.take("async") || !d.take("mbarrier") || !d.take("arrive"))
    return nullptr;
  bool noIncrement = d.take("noinc");
  AddressSpace space = takeSharedSpace(d);
  if (!d.take("b64") || !d.expectOperands(1, 1))
    return nullptr;
  d.op.kind = OpClass::AsyncCopy;
  d.op.b = noIncrement ? 1 : 0;
  placeAt(d, 0, space);
  return runCopyArrive;
}

constexpr RuleEntry rules[] = {
    {"mbarrier", buildMbarrier},
    {"fence", buildFence},
    {"cp", buildCopyArrive},
};

} // namespace

std::span<const RuleEntry> emu::mbarrierRules() { return rules; }
