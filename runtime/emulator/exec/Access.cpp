//===- Access.cpp - checked accesses to memory ---------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/emulator/exec/Access.h"

#include "runtime/emulator/exec/Lanes.h"
#include "runtime/support/Status.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>

using namespace tenon;
using namespace tenon::emu;

namespace {

const char *verb(Touch touch) {
  return touch == Touch::Read    ? "reads"
         : touch == Touch::Write ? "writes"
                                 : "updates";
}

std::string describe(Touch touch, unsigned bytes, uint64_t address,
                     const char *space) {
  return rt::format("%s %u bytes at %s address 0x%" PRIx64, verb(touch), bytes,
                    space, address);
}

struct Range {
  uint64_t first, last; // lowest and highest address
  uint64_t bits;        // all of them, or-ed
};

Range rangeOf(uint32_t mask, const uint64_t *address) {
  Range range{~0ull, 0, 0};
  if (mask == ~0u) {
    for (unsigned i = 0; i != 32; ++i) {
      range.first = std::min(range.first, address[i]);
      range.last = std::max(range.last, address[i]);
      range.bits |= address[i];
    }
    return range;
  }
  forLanes(mask, [&](unsigned i) {
    range.first = std::min(range.first, address[i]);
    range.last = std::max(range.last, address[i]);
    range.bits |= address[i];
  });
  return range;
}

bool isDense(const uint64_t *address, unsigned bytes) {
  uint64_t wrong = 0;
  for (unsigned i = 0; i != 32; ++i)
    wrong |= address[i] ^ (address[0] + uint64_t(i) * bytes);
  return wrong == 0;
}

bool checkAlignment(Warp &warp, const Op &op, uint32_t mask, unsigned bytes,
                    Touch touch, const uint64_t *address, uint64_t bits,
                    const char *space) {
  if ((bits & (bytes - 1)) == 0)
    return true;
  uint32_t wrong =
      mask & maskOf([=](unsigned i) { return address[i] & (bytes - 1); });
  unsigned lane = __builtin_ctz(wrong);
  warp.fault(op, Fault::Misaligned, lane,
             describe(touch, bytes, address[lane], space) +
                 ", which is not aligned to them");
  return false;
}

// Global memory.

/// Finds the allocation of lanes that are not all in the one of last time.
bool checkBounds(Warp &warp, const Op &op, uint32_t mask, unsigned bytes,
                 Touch touch, const uint64_t *address) {
  const AllocationTable &table = *warp.launch->memory;
  const Allocation *&last = warp.stats[op.id].last;
  for (; mask != 0; mask &= mask - 1) {
    unsigned lane = __builtin_ctz(mask);
    if (last && last->holds(address[lane], bytes))
      continue;
    const Allocation *found = table.find(address[lane]);
    if (found)
      last = found;
    if (!found || !found->holds(address[lane], bytes)) {
      std::string where = table.locate(address[lane]);
      if (found)
        where = "beyond the end of " + found->describe();
      warp.fault(op, Fault::OutOfBounds, lane,
                 describe(touch, bytes, address[lane], "global") + ", " +
                     where);
      return false;
    }
  }
  return true;
}

bool checkWritten(Warp &warp, const Op &op, uint32_t mask, unsigned bytes,
                  Touch touch, const uint64_t *address, Range range) {
  const DeviceMemory &memory = DeviceMemory::get();
  uint64_t end = range.last + bytes;
  // One look at everything between, where that is little more.
  if (end - range.first <= 2048 &&
      memory.firstUnwritten(range.first, end - range.first) == end)
    return true;
  for (; mask != 0; mask &= mask - 1) {
    unsigned lane = __builtin_ctz(mask);
    uint64_t bad = memory.firstUnwritten(address[lane], bytes);
    if (bad == address[lane] + bytes)
      continue;
    warp.fault(op, Fault::Uninitialised, lane,
               describe(touch, bytes, address[lane], "global") +
                   rt::format(", of which byte %" PRIu64 " was never written, ",
                              bad - address[lane]) +
                   warp.launch->memory->locate(address[lane]));
    return false;
  }
  return true;
}

void noteWritten(uint32_t mask, unsigned bytes, const uint64_t *address,
                 bool dense) {
  DeviceMemory &memory = DeviceMemory::get();
  if (dense) {
    uint64_t at = address[0], end = at + bytes * 32;
    while (at != end) {
      uint64_t page = (at >> DeviceMemory::pageBits) + 1;
      uint64_t until = std::min(end, page << DeviceMemory::pageBits);
      if (!memory.pageWritten(at))
        std::memset(memory.shadow(at), 1, until - at);
      at = until;
    }
    return;
  }
  forLanes(mask, [&](unsigned i) {
    if (!memory.pageWritten(address[i]))
      std::memset(memory.shadow(address[i]), 1, bytes);
  });
}

// Local memory: each thread's own bytes.

bool resolveLocal(Warp &warp, const Op &op, uint32_t mask, unsigned bytes,
                  Touch touch, const uint64_t *address, Access &access) {
  Range range = rangeOf(mask, address);
  if (!checkAlignment(warp, op, mask, bytes, touch, address, range.bits,
                      "local"))
    return false;
  uint64_t end = warp.localBase + warp.code->localBytes;
  for (uint32_t left = mask; left != 0; left &= left - 1) {
    unsigned lane = __builtin_ctz(left);
    uint64_t at = address[lane];
    if (at < localStart || at + bytes > end || at + bytes < at) {
      warp.fault(op, Fault::OutOfBounds, lane,
                 describe(touch, bytes, at, "local") +
                     rt::format(", outside the thread's %" PRIu64 " bytes",
                                end - localStart));
      return false;
    }
    uint64_t place = lane * warp.localBytes + at;
    access.at[lane] = &warp.local[place];
    char *shadow = &warp.localShadow[place];
    if (touch == Touch::Write) {
      std::memset(shadow, 1, bytes);
    } else if (warp.launch->checks.initialised &&
               std::memchr(shadow, 0, bytes)) {
      warp.fault(op, Fault::Uninitialised, lane,
                 describe(touch, bytes, at, "local") +
                     ", which was never written");
      return false;
    }
  }
  return true;
}

/// Lanes of a generic operation by the windows that their addresses are in.
bool resolveGeneric(Warp &warp, const Op &op, uint32_t mask, unsigned bytes,
                    Touch touch, uint64_t *address, Access &access) {
  auto inWindow = [&](uint64_t window) {
    return mask &
           maskOf([=](unsigned i) { return address[i] >> 56 == window >> 56; });
  };
  uint32_t shared = inWindow(sharedWindow), local = inWindow(localWindow);
  uint32_t global = mask & ~shared & ~local;
  access.dense = false;
  if (global && !resolveGlobal(warp, op, global, bytes, touch, address, access))
    return false;
  bool dense = access.dense && global == ~0u;
  if (shared || local)
    for (unsigned i = 0; i != 32; ++i)
      address[i] &= ~(sharedWindow | localWindow);
  if (shared && !resolveShared(warp, op, shared, bytes, touch, address, access))
    return false;
  dense |= access.dense && shared == ~0u;
  access.dense = dense;
  return !local || resolveLocal(warp, op, local, bytes, touch, address, access);
}

} // namespace

void emu::addressesOf(const Warp &warp, const Op &op, uint64_t *address) {
  auto offset = static_cast<uint64_t>(op.offset);
  if (op.narrowAddress) {
    const uint32_t *base = lanes<uint32_t>(warp, op.a);
    for (unsigned i = 0; i != 32; ++i)
      address[i] = static_cast<uint32_t>(base[i] + offset);
    return;
  }
  const uint64_t *base = lanes<uint64_t>(warp, op.a);
  for (unsigned i = 0; i != 32; ++i)
    address[i] = base[i] + offset;
}

void emu::countSectors(Warp &warp, const Op &op, uint32_t mask, unsigned bytes,
                       const uint64_t *address) {
  OpStats &stats = warp.stats[op.id];
  uint64_t asked = uint64_t(__builtin_popcount(mask)) * bytes;
  stats.bytes += asked;
  stats.ideal += (asked + 31) / 32;
  uint64_t sectors[64];
  unsigned count = 0;
  bool sorted = true;
  forLanes(mask, [&](unsigned i) {
    for (uint64_t s = address[i] / 32; s <= (address[i] + bytes - 1) / 32;
         ++s) {
      if (count != 0 && sectors[count - 1] == s)
        continue;
      sorted &= count == 0 || sectors[count - 1] < s;
      sectors[count++] = s;
    }
  });
  if (!sorted) {
    std::sort(sectors, sectors + count);
    count =
        static_cast<unsigned>(std::unique(sectors, sectors + count) - sectors);
  }
  stats.pieces += count;
}

void emu::countBanks(Warp &warp, const Op &op, uint32_t mask, unsigned bytes,
                     const uint64_t *address) {
  OpStats &stats = warp.stats[op.id];
  stats.bytes += uint64_t(__builtin_popcount(mask)) * bytes;
  // 128 bytes are served at once: wide accesses come in parts of the warp.
  unsigned group = bytes <= 4 ? 32 : 128 / bytes;
  unsigned words = bytes <= 4 ? 1 : bytes / 4;
  for (unsigned first = 0; first != 32; first += group) {
    uint32_t part = mask & ((group == 32 ? ~0u : ((1u << group) - 1)) << first);
    if (part == 0)
      continue;
    uint32_t seen[32][32];
    unsigned depth[32] = {}, deepest = 1;
    forLanes(part, [&](unsigned i) {
      for (unsigned w = 0; w != words; ++w) {
        auto word = static_cast<uint32_t>(address[i] / 4 + w);
        unsigned bank = word % 32, at = 0;
        while (at != depth[bank] && seen[bank][at] != word)
          ++at;
        if (at == depth[bank]) {
          seen[bank][depth[bank]++] = word;
          deepest = std::max(deepest, depth[bank]);
        }
      }
    });
    stats.pieces += deepest;
    ++stats.ideal;
  }
}

bool emu::resolveGlobal(Warp &warp, const Op &op, uint32_t mask, unsigned bytes,
                        Touch touch, const uint64_t *address, Access &access) {
  Range range = rangeOf(mask, address);
  if (!checkAlignment(warp, op, mask, bytes, touch, address, range.bits,
                      "global"))
    return false;
  const Allocation *&last = warp.stats[op.id].last;
  uint64_t span = range.last - range.first + bytes;
  bool oneAllocation = last && last->holds(range.first, span);
  if (!oneAllocation && !checkBounds(warp, op, mask, bytes, touch, address))
    return false;
  oneAllocation = last->holds(range.first, span);
  access.dense = mask == ~0u && isDense(address, bytes);
  if (touch != Touch::Read && last->kind >= Allocation::Constant) {
    warp.fault(op, Fault::WriteToConstant, __builtin_ctz(mask),
               describe(touch, bytes, address[__builtin_ctz(mask)], "global") +
                   ", in " + last->describe());
    return false;
  }
  if (warp.launch->checks.initialised) {
    uint32_t tracked = mask;
    if (!oneAllocation)
      forLanes(mask, [&](unsigned i) {
        if (!warp.launch->memory->find(address[i])->tracked)
          tracked &= ~(1u << i);
      });
    else if (!last->tracked)
      tracked = 0;
    if (tracked && touch != Touch::Write &&
        !checkWritten(warp, op, tracked, bytes, touch, address,
                      oneAllocation ? range : rangeOf(tracked, address)))
      return false;
    if (tracked && touch != Touch::Read)
      noteWritten(tracked, bytes, address, access.dense && tracked == ~0u);
  }
  countSectors(warp, op, mask, bytes, address);
  for (unsigned i = 0; i != 32; ++i)
    access.at[i] = reinterpret_cast<char *>(address[i]);
  return true;
}

Block *emu::sharedOwner(const Warp &warp, uint64_t address, uint64_t bytes) {
  uint64_t rank = address >> clusterShift;
  uint64_t offset = address & ((1u << clusterShift) - 1);
  auto &blocks = warp.block->cluster->blocks;
  if (rank >= blocks.size() || offset < sharedStart ||
      offset + bytes > blocks[rank]->sharedEnd)
    return nullptr;
  return blocks[rank].get();
}

bool emu::judge(Warp &warp, const Op &op, unsigned lane, Touch touch,
                unsigned bytes, const SharedShadow::Problem &problem) {
  using Verdict = SharedShadow::Verdict;
  if (problem.verdict == Verdict::Good)
    return true;
  std::string text = describe(touch, bytes, problem.address, "shared");
  if (problem.verdict == Verdict::Unwritten) {
    if (!warp.launch->checks.initialised)
      return true;
    warp.fault(op, Fault::Uninitialised, lane,
               text + ", which was never written, or not before a barrier");
  } else if (problem.verdict == Verdict::Unfenced) {
    warp.fault(op, Fault::MissingFence, lane,
               text + rt::format(", which warp %u wrote without a "
                                 "fence.proxy.async between",
                                 problem.warp));
  } else if (problem.verdict == Verdict::Race &&
             problem.warp == SharedShadow::asyncWarp) {
    warp.fault(op, Fault::PendingCopy, lane,
               text + rt::format(", which an asynchronous operation %s that "
                                 "this warp has not waited for",
                                 problem.otherWrote ? "wrote" : "reads"));
  } else if (problem.verdict == Verdict::Pending) {
    warp.fault(op, Fault::PendingCopy, lane,
               text + ", where an asynchronous copy is under way that nobody "
                      "has waited for");
  } else {
    warp.fault(op, Fault::SharedRace, lane,
               text + rt::format(", which warp %u %s with no barrier between",
                                 problem.warp,
                                 problem.otherWrote ? "wrote" : "read"));
  }
  return false;
}

bool emu::resolveShared(Warp &warp, const Op &op, uint32_t mask, unsigned bytes,
                        Touch touch, const uint64_t *address, Access &access) {
  Range range = rangeOf(mask, address);
  if (!checkAlignment(warp, op, mask, bytes, touch, address, range.bits,
                      "shared"))
    return false;
  const Checks &checks = warp.launch->checks;
  Block *own = warp.block;
  bool simple = range.first >= own->window() + sharedStart &&
                range.last + bytes <= own->window() + own->sharedEnd;
  access.dense = mask == ~0u && isDense(address, bytes);
  uint64_t offsetMask = (uint64_t(1) << clusterShift) - 1;
  for (uint32_t left = mask; left != 0;) {
    unsigned lane = __builtin_ctz(left);
    left &= left - 1;
    Block *owner = simple ? own : sharedOwner(warp, address[lane], bytes);
    if (!owner) {
      warp.fault(op, Fault::OutOfBounds, lane,
                 describe(touch, bytes, address[lane], "shared") +
                     rt::format(", outside the block's [0x%x, 0x%x)",
                                sharedStart, own->sharedEnd));
      return false;
    }
    auto offset = static_cast<uint32_t>(address[lane] & offsetMask);
    access.at[lane] = owner->shared.get() + offset;
    if (!checks.initialised && !checks.races)
      continue;
    // Neighbours are judged together, and who reads the same once.
    uint32_t length = bytes;
    bool reads = touch == Touch::Read && !op.synchronizes;
    while (simple && left != 0) {
      unsigned next = __builtin_ctz(left);
      uint64_t further = address[next] - address[lane];
      if (further == length)
        length += bytes;
      else if (!reads || further != length - bytes)
        break;
      access.at[next] = owner->shared.get() + offset + further;
      left &= left - 1;
    }
    SharedShadow &shadow = owner->shadow;
    // Warps of another block have no clock here.
    bool races = checks.races && owner == own;
    bool synchronizes = op.synchronizes && races;
    if (synchronizes)
      shadow.synchronize(warp.index);
    SharedShadow::Problem problem =
        touch == Touch::Read ? shadow.read(offset, length, warp.index, races)
        : touch == Touch::Write
            ? shadow.write(offset, length, warp.index, races)
            : shadow.atomic(offset, length, warp.index, races);
    if (synchronizes)
      shadow.synchronize(warp.index);
    if (problem.verdict != SharedShadow::Verdict::Good) {
      uint64_t at = address[lane] + (problem.address - offset);
      uint32_t here = mask & maskOf([=](unsigned i) {
                        return address[i] <= at && at < address[i] + bytes;
                      });
      unsigned culprit = __builtin_ctz(here);
      if (!judge(warp, op, culprit, touch, bytes, problem))
        return false;
    }
  }
  countBanks(warp, op, mask, bytes, address);
  return true;
}

bool emu::resolve(Warp &warp, const Op &op, uint32_t mask, unsigned bytes,
                  Touch touch, Access &access) {
  uint64_t address[32];
  addressesOf(warp, op, address);
  switch (op.space) {
  case AddressSpace::Shared:
    return resolveShared(warp, op, mask, bytes, touch, address, access);
  case AddressSpace::Local:
    return resolveLocal(warp, op, mask, bytes, touch, address, access);
  case AddressSpace::Generic:
    return resolveGeneric(warp, op, mask, bytes, touch, address, access);
  default:
    return resolveGlobal(warp, op, mask, bytes, touch, address, access);
  }
}
