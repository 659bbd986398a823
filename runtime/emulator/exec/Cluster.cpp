//===- Cluster.cpp - addresses of other blocks, hints to the hardware -----===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/emulator/exec/Decoder.h"
#include "runtime/emulator/exec/Lanes.h"

using namespace tenon;
using namespace tenon::emu;
using ptx::Type;

namespace {

constexpr uint64_t rankMask = uint64_t(0xff) << clusterShift;

/// The same place in the shared memory of block `rank`. A generic address keeps
/// its window.
template <typename T> T mapTo(T address, uint32_t rank) {
  return static_cast<T>((address & ~rankMask) | uint64_t(rank) << clusterShift);
}
template <typename T> uint32_t rankOf(T address) {
  return static_cast<uint32_t>((address & rankMask) >> clusterShift);
}

void nothing(Warp &, const Op &, uint32_t) {}

Handler buildMap(Decoder &d) {
  d.take("shared::cluster");
  d.op.kind = OpClass::Integer;
  if (d.take("u32"))
    return d.form(Lift<mapTo<uint32_t>>::run, Type::U32,
                  {Type::U32, Type::U32});
  return d.take("u64") ? d.form(Lift<mapTo<uint64_t>>::run, Type::U64,
                                {Type::U64, Type::U32})
                       : nullptr;
}

Handler buildRank(Decoder &d) {
  d.take("shared::cluster");
  d.op.kind = OpClass::Integer;
  if (d.take("u32"))
    return d.form(Lift<rankOf<uint32_t>>::run, Type::U32, {Type::U32});
  return d.take("u64")
             ? d.form(Lift<rankOf<uint64_t>>::run, Type::U32, {Type::U64})
             : nullptr;
}

/// Registers are never short here.
Handler buildRegisters(Decoder &d) {
  bool known = (d.take("inc") || d.take("dec")) && d.take("sync") &&
               d.take("aligned") && d.take("u32");
  return known ? nothing : nullptr;
}

/// Launches follow each other: a kernel begins when the one before has ended.
Handler buildDependency(Decoder &d) {
  return d.take("wait") || d.take("launch_dependents") ? nothing : nullptr;
}

constexpr RuleEntry rules[] = {
    {"mapa", buildMap},
    {"getctarank", buildRank},
    {"setmaxnreg", buildRegisters},
    {"griddepcontrol", buildDependency},
};

} // namespace

std::span<const RuleEntry> emu::clusterRules() { return rules; }
