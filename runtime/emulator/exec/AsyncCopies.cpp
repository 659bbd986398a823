//===- AsyncCopies.cpp - cp.async and its groups -------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

/// \file
/// The copy itself happens at once, but the bytes stay marked as under way
/// until the warp waits for the group: whoever touches them before has made the
/// mistake that a GPU punishes only sometimes.

#include "runtime/emulator/exec/Access.h"
#include "runtime/emulator/exec/Decoder.h"
#include "runtime/emulator/exec/Lanes.h"

#include <algorithm>
#include <cstring>

using namespace tenon;
using namespace tenon::emu;
using ptx::Type;

namespace {

/// cp.async [shared a], [global b], size, source size c: Op::extra bytes.
void copy(Warp &warp, const Op &op, uint32_t mask) {
  unsigned bytes = op.extra;
  uint64_t shared[32], global[32];
  addressesOf(warp, op, shared);
  Op source = op; // the second address, as an operation of its own
  source.a = op.b;
  source.narrowAddress = false;
  source.offset = static_cast<int32_t>(warp.code->refs[op.more]);
  addressesOf(warp, source, global);
  const uint32_t *size = lanes<uint32_t>(warp, op.c);
  uint32_t reading = 0;
  forLanes(mask, [&](unsigned i) { reading |= uint32_t(size[i] != 0) << i; });
  // Where only a part is read, the rest is zero.
  Access from;
  OpStats before = warp.stats[op.id];
  for (uint32_t left = reading; left != 0;) {
    uint32_t length = size[__builtin_ctz(left)];
    uint32_t same =
        left & maskOf([=](unsigned i) { return size[i] == length; });
    left &= ~same;
    // The address must be aligned to the whole size even so.
    unsigned touched = length >= bytes ? bytes : 1;
    for (unsigned at = 0; at < std::min(length, bytes); at += touched) {
      uint64_t address[32];
      for (unsigned i = 0; i != 32; ++i)
        address[i] = global[i] + at;
      Access part;
      if (!resolveGlobal(warp, op, same, touched, Touch::Read, address, part))
        return;
    }
    forLanes(same, [&](unsigned i) {
      from.at[i] = reinterpret_cast<char *>(global[i]);
    });
  }
  OpStats &stats = warp.stats[op.id];
  uint64_t sectors = stats.pieces - before.pieces;
  uint64_t ideal = stats.ideal - before.ideal,
           asked = stats.bytes - before.bytes;
  SharedShadow &shadow = warp.block->shadow;
  const Checks &checks = warp.launch->checks;
  for (uint32_t left = mask; left != 0; left &= left - 1) {
    unsigned lane = __builtin_ctz(left);
    Block *owner = sharedOwner(warp, shared[lane], bytes);
    if (owner != warp.block || shared[lane] % bytes != 0) {
      // Lets the usual check find the words.
      Access unused;
      resolveShared(warp, op, 1u << lane, bytes, Touch::Write, shared, unused);
      return;
    }
    auto offset = static_cast<uint32_t>(shared[lane] - owner->window());
    char *to = owner->shared.get() + offset;
    unsigned read = std::min<uint32_t>(size[lane], bytes);
    if (read != 0)
      std::memcpy(to, from.at[lane], read);
    std::memset(to + read, 0, bytes - read);
    if (!judge(warp, op, lane, Touch::Write, bytes,
               shadow.beginCopy(offset, bytes, warp.index, checks.races)))
      return;
    warp.openCopies.push_back({offset, bytes, lane});
  }
  // The counters of this operation are those of global memory.
  stats.pieces = before.pieces + sectors;
  stats.ideal = before.ideal + ideal;
  stats.bytes = before.bytes + asked;
}

void finish(Warp &warp, std::vector<CopyPiece> &pieces) {
  for (const CopyPiece &piece : pieces)
    warp.block->shadow.endCopy(piece.address, piece.bytes, warp.index);
  pieces.clear();
}

void commitGroup(Warp &warp, const Op &, uint32_t) {
  warp.copyGroups.push_back(std::move(warp.openCopies));
  warp.openCopies.clear();
}

void waitGroup(Warp &warp, const Op &op, uint32_t) {
  size_t keep = op.extra, have = warp.copyGroups.size();
  size_t done = have > keep ? have - keep : 0;
  for (size_t i = 0; i != done; ++i)
    finish(warp, warp.copyGroups[i]);
  warp.copyGroups.erase(warp.copyGroups.begin(),
                        warp.copyGroups.begin() + static_cast<long>(done));
}

void waitAll(Warp &warp, const Op &, uint32_t) {
  for (std::vector<CopyPiece> &group : warp.copyGroups)
    finish(warp, group);
  warp.copyGroups.clear();
  finish(warp, warp.openCopies);
}

Handler buildCopy(Decoder &d) {
  bool shared = d.take("shared") || d.take("shared::cta");
  if (!shared || !d.take("global") || !d.expectOperands(3, 5))
    return nullptr;
  while (d.peek().substr(0, 4) == "L2::")
    d.skip();
  std::optional<int64_t> size = d.immediate(2);
  if (!size || (*size != 4 && *size != 8 && *size != 16))
    return d.refuse("a copy has 4, 8 or 16 bytes");
  auto bytes = static_cast<unsigned>(*size);
  d.address(1, AddressSpace::Global);
  Ref global = d.op.a;
  if (d.op.narrowAddress || d.op.offset != static_cast<int32_t>(d.op.offset))
    return d.refuse("the source's address must have 64 bits");
  d.op.more = d.refs({static_cast<Ref>(static_cast<int32_t>(d.op.offset))});
  d.address(0, AddressSpace::Shared);
  d.op.b = global;
  // The fourth: bytes to read, or a predicate that ignores the source.
  d.op.c = d.constant(bytes, 4);
  if (d.operands() >= 4 && d.width(3) != 8)
    d.op.c = d.src(3, Type::U32);
  d.op.extra = bytes;
  d.op.kind = OpClass::AsyncCopy;
  return copy;
}

Handler buildAsync(Decoder &d) {
  if (!d.take("async"))
    return nullptr;
  bool aligned16 = d.take("cg");
  if (aligned16 || d.take("ca"))
    return buildCopy(d);
  d.op.kind = OpClass::AsyncCopy;
  if (d.take("commit_group"))
    return commitGroup;
  if (d.take("wait_all"))
    return waitAll;
  if (!d.take("wait_group") || !d.expectOperands(1, 1))
    return nullptr;
  std::optional<int64_t> keep = d.immediate(0);
  if (!keep || *keep < 0)
    return d.refuse("expected a number of groups");
  d.op.extra = static_cast<uint32_t>(std::min<int64_t>(*keep, 1 << 20));
  return waitGroup;
}

constexpr RuleEntry rules[] = {{"cp", buildAsync}};

} // namespace

std::span<const RuleEntry> emu::asyncRules() { return rules; }
