//===- WarpOps.cpp - what the lanes of a warp do together ----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/emulator/exec/Decoder.h"
#include "runtime/emulator/exec/Lanes.h"
#include "runtime/support/Status.h"

#include <algorithm>
#include <cstring>

using namespace tenon;
using namespace tenon::emu;
using ptx::Operand;
using ptx::Type;

namespace {

/// Every lane that executes a .sync operation must name itself, and all that
/// it names must execute it (or have exited) with the same names.
bool checkMembers(Warp &warp, const Op &op, uint32_t mask,
                  const uint32_t *members) {
  // All lanes name all lanes, mostly.
  uint32_t common = ~0u;
  for (unsigned i = 0; i != 32; ++i)
    common &= members[i];
  if (mask == ~0u && common == ~0u)
    return true;
  for (uint32_t left = mask; left != 0; left &= left - 1) {
    unsigned lane = __builtin_ctz(left);
    uint32_t wanted = members[lane];
    uint32_t missing = wanted & warp.live() & ~mask;
    if (!(wanted >> lane & 1)) {
      warp.fault(op, Fault::BadMask, lane,
                 rt::format("is not in the mask 0x%08x that it names", wanted));
      return false;
    }
    if (missing) {
      warp.fault(op, Fault::BadMask, lane,
                 rt::format("waits with mask 0x%08x for lane %d, which is not "
                            "here (lanes here: 0x%08x)",
                            wanted, __builtin_ctz(missing), mask));
      return false;
    }
    if (members[__builtin_ctz(wanted)] != wanted &&
        (mask >> __builtin_ctz(wanted) & 1)) {
      warp.fault(op, Fault::BadMask, lane,
                 rt::format("names mask 0x%08x, lane %d names 0x%08x", wanted,
                            __builtin_ctz(wanted),
                            members[__builtin_ctz(wanted)]));
      return false;
    }
  }
  return true;
}

// shfl: c holds the clamp and the segment mask.

enum class Shuffle { Up, Down, Butterfly, Index };

/// The lane that lane i reads, given its operand b and its clamp and segment
/// mask; itself where that lies outside its segment.
template <Shuffle Mode>
[[gnu::always_inline]] inline uint32_t sourceOf(int i, uint32_t b, uint32_t c,
                                                bool &in) {
  int by = b & 31, clamp = c & 31, segment = c >> 8 & 31;
  int most = (i & segment) | (clamp & ~segment);
  int at = Mode == Shuffle::Up          ? i - by
           : Mode == Shuffle::Down      ? i + by
           : Mode == Shuffle::Butterfly ? i ^ by
                                        : (i & segment) | (by & ~segment);
  in = Mode == Shuffle::Up ? at >= most : at <= most;
  return static_cast<uint32_t>(in ? at : i) & 31;
}

template <Shuffle Mode> void shuffle(Warp &warp, const Op &op, uint32_t mask) {
  const Ref *refs = &warp.code->refs[op.more];
  if (!checkMembers(warp, op, mask, lanes<uint32_t>(warp, refs[1])))
    return;
  uint32_t a[32], at[32];
  bool in[32];
  std::memcpy(a, lanes<uint32_t>(warp, op.a), sizeof(a));
  const uint32_t *b = lanes<uint32_t>(warp, op.b);
  const uint32_t *c = lanes<uint32_t>(warp, op.c);
  for (unsigned i = 0; i != 32; ++i)
    at[i] = sourceOf<Mode>(static_cast<int>(i), b[i], c[i], in[i]);
  uint32_t valid = maskOf([&](unsigned i) { return in[i]; });
  if (mask != ~0u) {
    uint32_t outside =
        mask & maskOf([&](unsigned i) { return !(mask >> at[i] & 1); });
    if (outside != 0) {
      unsigned culprit = static_cast<unsigned>(__builtin_ctz(outside));
      return warp.fault(op, Fault::BadMask, culprit,
                        rt::format("reads the register of lane %u, which does "
                                   "not take part (lanes here: 0x%08x)",
                                   at[culprit], mask));
    }
  }
  each(lanes<uint32_t>(warp, op.dst), mask,
       [&](unsigned i) { return a[at[i]]; });
  setPredicate(warp, refs[0], mask, valid);
}

Handler buildShuffle(Decoder &d) {
  if (!d.take("sync"))
    return nullptr; // the old form has no mask
  Handler handler = d.take("up")     ? shuffle<Shuffle::Up>
                    : d.take("down") ? shuffle<Shuffle::Down>
                    : d.take("bfly") ? shuffle<Shuffle::Butterfly>
                    : d.take("idx")  ? shuffle<Shuffle::Index>
                                     : nullptr;
  if (!handler || !d.take("b32") || !d.expectOperands(5, 5))
    return nullptr;
  d.op.kind = OpClass::WarpWide;
  d.op.dst = d.dst(0, Type::B32);
  d.op.a = d.src(1, Type::B32);
  d.op.b = d.src(2, Type::B32);
  d.op.c = d.src(3, Type::B32);
  d.op.more =
      d.refs({d.predicateResult(d.operand(0).second), d.src(4, Type::B32)});
  return handler;
}

// vote.

enum class Vote { All, Any, Uniform };

/// Lanes that name different masks vote apart.
template <Vote Mode> void vote(Warp &warp, const Op &op, uint32_t mask) {
  const uint32_t *members = lanes<uint32_t>(warp, op.b);
  if (!checkMembers(warp, op, mask, members))
    return;
  uint32_t yes = predicate(warp, op.a) ^ op.extra, results = 0;
  forLanes(mask, [&](unsigned i) {
    uint32_t all = members[i] & mask, bits = yes & all;
    bool result = Mode == Vote::All   ? bits == all
                  : Mode == Vote::Any ? bits != 0
                                      : bits == 0 || bits == all;
    results |= uint32_t(result) << i;
  });
  setPredicate(warp, op.dst, mask, results);
}
void ballot(Warp &warp, const Op &op, uint32_t mask) {
  if (!checkMembers(warp, op, mask, lanes<uint32_t>(warp, op.b)))
    return;
  uint32_t bits = (predicate(warp, op.a) ^ op.extra) & mask;
  const uint32_t *members = lanes<uint32_t>(warp, op.b);
  each(lanes<uint32_t>(warp, op.dst), mask,
       [=](unsigned i) { return bits & members[i]; });
}

Handler buildVote(Decoder &d) {
  if (!d.take("sync"))
    return nullptr;
  bool isBallot = d.take("ballot");
  Handler handler = isBallot        ? ballot
                    : d.take("all") ? vote<Vote::All>
                    : d.take("any") ? vote<Vote::Any>
                    : d.take("uni") ? vote<Vote::Uniform>
                                    : nullptr;
  if (!handler || !d.expectOperands(3, 3) || !d.take(isBallot ? "b32" : "pred"))
    return nullptr;
  d.op.kind = OpClass::WarpWide;
  d.op.dst = d.dst(0, isBallot ? Type::B32 : Type::Pred);
  d.op.a = d.predicateSource(1, d.op.extra);
  d.op.b = d.src(2, Type::B32);
  return handler;
}

// match.

template <typename T> void matchAny(Warp &warp, const Op &op, uint32_t mask) {
  if (!checkMembers(warp, op, mask, lanes<uint32_t>(warp, op.b)))
    return;
  const T *a = lanes<T>(warp, op.a);
  const uint32_t *members = lanes<uint32_t>(warp, op.b);
  uint32_t d[32];
  for (unsigned i = 0; i != 32; ++i)
    d[i] = maskOf([=](unsigned j) { return a[j] == a[i]; }) & mask & members[i];
  each(lanes<uint32_t>(warp, op.dst), mask, [&](unsigned i) { return d[i]; });
}
template <typename T> void matchAll(Warp &warp, const Op &op, uint32_t mask) {
  const uint32_t *members = lanes<uint32_t>(warp, op.b);
  if (!checkMembers(warp, op, mask, members))
    return;
  const T *a = lanes<T>(warp, op.a);
  uint32_t d[32], results = 0;
  forLanes(mask, [&](unsigned i) {
    uint32_t group = members[i] & mask;
    bool all = (maskOf([=](unsigned j) { return a[j] != a[i]; }) & group) == 0;
    d[i] = all ? group : 0;
    results |= uint32_t(all) << i;
  });
  uint32_t *out = lanes<uint32_t>(warp, op.dst);
  forLanes(mask, [&](unsigned i) { out[i] = d[i]; });
  setPredicate(warp, op.c, mask, results);
}

Handler buildMatch(Decoder &d) {
  bool all = d.take("all");
  if ((!all && !d.take("any")) || !d.take("sync") || !d.expectOperands(3, 3))
    return nullptr;
  std::optional<Type> type = d.takeType();
  if (!type || sizeOf(*type) < 4)
    return nullptr;
  d.op.kind = OpClass::WarpWide;
  d.op.dst = d.dst(0, Type::B32);
  d.op.a = d.src(1, *type);
  d.op.b = d.src(2, Type::B32);
  d.op.c = d.predicateResult(d.operand(0).second);
  bool wide = sizeOf(*type) == 8;
  return all ? (wide ? matchAll<uint64_t> : matchAll<uint32_t>)
             : (wide ? matchAny<uint64_t> : matchAny<uint32_t>);
}

// redux: groups of lanes that name the same mask.

template <typename T, T (*F)(T, T)>
void reduce(Warp &warp, const Op &op, uint32_t mask) {
  if (!checkMembers(warp, op, mask, lanes<uint32_t>(warp, op.b)))
    return;
  const T *a = lanes<T>(warp, op.a);
  const uint32_t *members = lanes<uint32_t>(warp, op.b);
  T d[32];
  forLanes(mask, [&](unsigned i) {
    uint32_t group = members[i] & mask;
    T value = a[__builtin_ctz(group)];
    forLanes(group & (group - 1), [&](unsigned j) { value = F(value, a[j]); });
    d[i] = value;
  });
  each(lanes<T>(warp, op.dst), mask, [&](unsigned i) { return d[i]; });
}
uint32_t add(uint32_t a, uint32_t b) { return a + b; }
uint32_t bitAnd(uint32_t a, uint32_t b) { return a & b; }
uint32_t bitOr(uint32_t a, uint32_t b) { return a | b; }
uint32_t bitXor(uint32_t a, uint32_t b) { return a ^ b; }
template <typename T> T least(T a, T b) { return b < a ? b : a; }
template <typename T> T most(T a, T b) { return b > a ? b : a; }

Handler buildRedux(Decoder &d) {
  if (!d.take("sync"))
    return nullptr;
  std::string_view name = d.peek();
  d.skip();
  bool isMin = name == "min", isMax = name == "max";
  std::optional<Type> type = d.takeType();
  if (!type || sizeOf(*type) != 4)
    return nullptr;
  Handler handler = nullptr;
  if (isMin || isMax)
    handler = type == Type::S32   ? (isMin ? reduce<int32_t, least<int32_t>>
                                           : reduce<int32_t, most<int32_t>>)
              : type == Type::U32 ? (isMin ? reduce<uint32_t, least<uint32_t>>
                                           : reduce<uint32_t, most<uint32_t>>)
                                  : nullptr;
  else if (type != Type::F32)
    handler = name == "add"   ? reduce<uint32_t, add>
              : name == "and" ? reduce<uint32_t, bitAnd>
              : name == "or"  ? reduce<uint32_t, bitOr>
              : name == "xor" ? reduce<uint32_t, bitXor>
                              : nullptr;
  d.op.kind = OpClass::WarpWide;
  return d.form(handler, *type, {*type, Type::B32});
}

void activeMask(Warp &warp, const Op &op, uint32_t mask) {
  each(lanes<uint32_t>(warp, op.dst), mask, [=](unsigned) { return mask; });
}
Handler buildActiveMask(Decoder &d) {
  d.op.kind = OpClass::WarpWide;
  return d.take("b32") ? d.form(activeMask, Type::B32, {}) : nullptr;
}

/// elect.sync d|p, members: the lowest lane.
void elect(Warp &warp, const Op &op, uint32_t mask) {
  uint32_t members[32], leaders = 0;
  std::memcpy(members, lanes<uint32_t>(warp, op.a), sizeof(members));
  if (!checkMembers(warp, op, mask, members))
    return;
  uint32_t *d = lanes<uint32_t>(warp, op.dst);
  forLanes(mask, [&](unsigned i) {
    d[i] = static_cast<uint32_t>(__builtin_ctz(members[i] & mask));
    leaders |= 1u << d[i];
  });
  setPredicate(warp, op.c, mask, leaders);
}
Handler buildElect(Decoder &d) {
  if (!d.take("sync") || !d.expectOperands(2, 2))
    return nullptr;
  d.op.kind = OpClass::WarpWide;
  d.op.dst = d.dst(0, Type::B32);
  d.op.c = d.predicateResult(d.operand(0).second);
  d.op.a = d.src(1, Type::B32);
  return elect;
}

constexpr RuleEntry rules[] = {
    {"shfl", buildShuffle}, {"vote", buildVote},
    {"match", buildMatch},  {"redux", buildRedux},
    {"elect", buildElect},  {"activemask", buildActiveMask},
};

} // namespace

std::span<const RuleEntry> emu::warpRules() { return rules; }
