//===- Barriers.cpp - barriers and fences --------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/emulator/exec/Decoder.h"
#include "runtime/emulator/exec/Lanes.h"
#include "runtime/support/Status.h"

using namespace tenon;
using namespace tenon::emu;
using ptx::Type;

namespace {

enum class Reduce : uint32_t { None, And, Or, Popc };

/// Operands of a block's barrier besides the registers in `op`.
struct BarrierForm {
  bool arriveOnly = false;
  Reduce reduce = Reduce::None;
  bool hasCount = false;
  uint32_t flip = 0; // of the reduction's predicate
};

const BarrierForm &formOf(const Warp &warp, const Op &op) {
  return *static_cast<const BarrierForm *>(warp.code->objects[op.extra]);
}

/// Threads that a barrier without a count waits for: whole warps, as the
/// hardware counts, but those that have ended.
uint32_t everyone(const Block &block) {
  uint32_t warps = 0;
  for (const Warp &warp : block.warps)
    warps += warp.state != WarpState::Done;
  return warps * 32;
}

void deliver(Warp &warp, const NamedBarrier &barrier) {
  const Op &op = *warp.waitsAt;
  switch (formOf(warp, op).reduce) {
  case Reduce::None:
    break;
  case Reduce::And:
    setPredicate(warp, op.dst, warp.mask, barrier.reduceAnd ? ~0u : 0);
    break;
  case Reduce::Or:
    setPredicate(warp, op.dst, warp.mask, barrier.reduceOr ? ~0u : 0);
    break;
  case Reduce::Popc:
    each(lanes<uint32_t>(warp, op.dst), warp.mask,
         [&](unsigned) { return barrier.reduceCount; });
    break;
  }
}

void completeIfAllCame(Block &block, NamedBarrier &barrier, bool wholeBlock) {
  uint32_t expected = wholeBlock ? everyone(block) : barrier.expected;
  if (barrier.arrived < expected)
    return;
  for (Warp &warp : block.warps)
    if (barrier.waiting >> warp.index & 1) {
      deliver(warp, barrier);
      block.shadow.acquire(warp.index, barrier.clock);
      warp.state = WarpState::Ready;
      warp.waitsAt = nullptr;
    }
  barrier = NamedBarrier();
  if (wholeBlock && block.shadow.restartIfOld()) {
    for (NamedBarrier &other : block.barriers)
      other.clock.fill(0);
    block.mbarriers.clear();
    block.clusterClock.fill(0);
  }
}

void addReduction(Warp &warp, const Op &op, const BarrierForm &form,
                  uint32_t mask, NamedBarrier &barrier) {
  if (form.reduce == Reduce::None)
    return;
  uint32_t bits = (predicate(warp, op.c) ^ form.flip) & mask;
  barrier.reduceAnd &= bits == mask;
  barrier.reduceOr |= bits != 0;
  barrier.reduceCount += static_cast<uint32_t>(__builtin_popcount(bits));
}

constexpr uint32_t wholeBlock = ~0u; // as a barrier's expected count

void arrive(Warp &warp, const Op &op, uint32_t mask) {
  const BarrierForm &form = formOf(warp, op);
  unsigned first = __builtin_ctz(mask);
  if (mask != warp.live())
    return warp.fault(op, Fault::DivergentBarrier, first,
                      rt::format("is at a barrier without lane %d of its warp "
                                 "(lanes here: 0x%08x)",
                                 __builtin_ctz(warp.live() & ~mask), mask));
  uint32_t id = lanes<uint32_t>(warp, op.a)[first];
  uint32_t count = form.hasCount ? lanes<uint32_t>(warp, op.b)[first] : 0;
  if (id > 15 || count % 32 != 0 || (form.hasCount && count == 0))
    return warp.fault(op, Fault::BadInstruction, first,
                      rt::format("uses barrier %u with %u threads; there are "
                                 "16, of whole warps",
                                 id, count));
  Block &block = *warp.block;
  NamedBarrier &barrier = block.barriers[id];
  uint32_t expected = form.hasCount ? count : wholeBlock;
  if (barrier.expected != 0 && barrier.expected != expected)
    return warp.fault(
        op, Fault::DivergentBarrier, first,
        rt::format("comes to barrier %u with another number of threads than "
                   "those before it",
                   id));
  barrier.expected = expected;
  barrier.arrived += 32;
  if (form.hasCount && barrier.arrived > count)
    return warp.fault(op, Fault::DivergentBarrier, first,
                      rt::format("is one thread too many at barrier %u, which "
                                 "is for %u",
                                 id, count));
  addReduction(warp, op, form, mask, barrier);
  block.shadow.release(warp.index, barrier.clock);
  if (!form.arriveOnly) {
    barrier.waiting |= 1u << warp.index;
    warp.state = WarpState::AtBarrier;
    warp.waitsAt = &op;
  }
  completeIfAllCame(block, barrier, !form.hasCount);
}

/// bar.sync a{, b}; bar.arrive a, b; bar.red.op d, a{, b}, p.
Handler buildBlockBarrier(Decoder &d) {
  BarrierForm form;
  bool reduce = d.take("red");
  form.arriveOnly = !reduce && d.take("arrive");
  if (!reduce && !form.arriveOnly && !d.take("sync"))
    return nullptr;
  if (reduce)
    form.reduce = d.take("and")    ? Reduce::And
                  : d.take("or")   ? Reduce::Or
                  : d.take("popc") ? Reduce::Popc
                                   : Reduce::None;
  d.take("aligned");
  d.op.kind = OpClass::Barrier;
  size_t first = 0, extra = 0;
  if (reduce) {
    bool count = form.reduce == Reduce::Popc;
    if (form.reduce == Reduce::None || !d.take(count ? "u32" : "pred") ||
        !d.expectOperands(3, 4))
      return nullptr;
    d.op.dst = d.dst(0, count ? Type::U32 : Type::Pred);
    d.op.c = d.predicateSource(d.operands() - 1, form.flip);
    first = extra = 1;
  } else if (!d.expectOperands(1, 2)) {
    return nullptr;
  }
  form.hasCount = d.operands() - first - extra == 2;
  d.op.a = d.src(first, Type::U32);
  if (form.hasCount)
    d.op.b = d.src(first + 1, Type::U32);
  d.op.extra = d.keep(std::make_shared<const BarrierForm>(form));
  return arrive;
}

// Warps.

void syncWarp(Warp &warp, const Op &op, uint32_t mask) {
  const uint32_t *members = lanes<uint32_t>(warp, op.a);
  unsigned first = __builtin_ctz(mask);
  uint32_t missing = members[first] & warp.live() & ~mask;
  if (missing)
    warp.fault(op, Fault::BadMask, first,
               rt::format("waits with mask 0x%08x for lane %d, which is not "
                          "here (lanes here: 0x%08x)",
                          members[first], __builtin_ctz(missing), mask));
}

// Clusters.

void completeCluster(Cluster &cluster) {
  uint32_t live = 0;
  for (auto &block : cluster.blocks)
    live += block->liveThreads;
  if (cluster.barrier.arrived < live || cluster.barrier.arrived == 0)
    return;
  cluster.barrier.arrived = 0;
  ++cluster.barrier.phase;
  for (auto &block : cluster.blocks)
    for (Warp &warp : block->warps)
      if (warp.state == WarpState::AtCluster) {
        block->shadow.acquire(warp.index, block->clusterClock);
        warp.state = WarpState::Ready;
        warp.waitsAt = nullptr;
        warp.clusterArrived = false;
      }
}

void arriveCluster(Warp &warp, const Op &op, uint32_t mask) {
  if (mask != warp.live() || warp.clusterArrived)
    return warp.fault(op, Fault::DivergentBarrier, __builtin_ctz(mask),
                      warp.clusterArrived
                          ? "arrives twice at the cluster's barrier"
                          : "arrives without other lanes of its warp");
  Cluster &cluster = *warp.block->cluster;
  warp.clusterArrived = true;
  warp.clusterPhase = cluster.barrier.phase;
  warp.block->shadow.release(warp.index, warp.block->clusterClock);
  cluster.barrier.arrived += static_cast<uint32_t>(__builtin_popcount(mask));
  completeCluster(cluster);
}

void waitCluster(Warp &warp, const Op &op, uint32_t mask) {
  if (!warp.clusterArrived || mask != warp.live())
    return warp.fault(op, Fault::DivergentBarrier, __builtin_ctz(mask),
                      warp.clusterArrived
                          ? "waits without other lanes of its warp"
                          : "waits for the cluster without having arrived");
  if (warp.block->cluster->barrier.phase != warp.clusterPhase) {
    warp.block->shadow.acquire(warp.index, warp.block->clusterClock);
    warp.clusterArrived = false;
    return;
  }
  warp.state = WarpState::AtCluster;
  warp.waitsAt = &op;
}

Handler buildClusterBarrier(Decoder &d) {
  bool arriving = d.take("arrive");
  if (!arriving && !d.take("wait"))
    return nullptr;
  while (d.take("release") || d.take("relaxed") || d.take("acquire"))
    ;
  d.take("aligned");
  d.op.kind = OpClass::Barrier;
  return arriving ? arriveCluster : waitCluster;
}

Handler buildBar(Decoder &d) {
  if (d.take("warp")) {
    if (!d.take("sync") || !d.expectOperands(1, 1))
      return nullptr;
    d.op.kind = OpClass::Barrier;
    d.op.a = d.src(0, Type::U32);
    return syncWarp;
  }
  if (d.take("cluster"))
    return buildClusterBarrier(d);
  d.take("cta");
  return buildBlockBarrier(d);
}

void nothing(Warp &, const Op &, uint32_t) {}

/// Memory is in one order for all warps: fences have nothing to do.
Handler buildFence(Decoder &d) {
  if (d.peek() == "proxy")
    return nullptr; // has rules of its own
  while (!d.peek().empty())
    d.skip();
  d.op.kind = OpClass::Barrier;
  return nothing;
}

constexpr RuleEntry rules[] = {
    {"bar", buildBar},
    {"barrier", buildBar},
    {"membar", buildFence},
    {"fence", buildFence},
};

} // namespace

std::span<const RuleEntry> emu::barrierRules() { return rules; }

void emu::leaveBarriers(Warp &warp) {
  Block &block = *warp.block;
  for (NamedBarrier &barrier : block.barriers)
    if (barrier.expected == wholeBlock)
      completeIfAllCame(block, barrier, true);
  completeCluster(*block.cluster);
}
