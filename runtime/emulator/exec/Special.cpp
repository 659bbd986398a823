//===- Special.cpp - special registers ------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/emulator/exec/Decoder.h"
#include "runtime/emulator/exec/Lanes.h"

#include <algorithm>

using namespace tenon::emu;

namespace {

struct Entry {
  std::string_view name;
  unsigned bytes;
  uint64_t (*value)(const Warp &warp, unsigned lane);
};

uint32_t thread(const Warp &warp, unsigned lane) {
  return warp.index * 32 + lane;
}
const Launch &launchOf(const Warp &warp) { return *warp.launch; }

/// One of three extents, chosen when compiling.
template <int D> uint32_t part(const Extent &extent) {
  return D == 0 ? extent.x : D == 1 ? extent.y : extent.z;
}

template <int D> uint64_t tid(const Warp &warp, unsigned lane) {
  const Extent &block = launchOf(warp).block;
  uint32_t t = thread(warp, lane);
  return D == 0   ? t % block.x
         : D == 1 ? t / block.x % block.y
                  : t / block.x / block.y;
}
template <int D> uint64_t ntid(const Warp &warp, unsigned) {
  return part<D>(launchOf(warp).block);
}
template <int D> uint64_t ctaid(const Warp &warp, unsigned) {
  return warp.block->id[D];
}
template <int D> uint64_t nctaid(const Warp &warp, unsigned) {
  return part<D>(launchOf(warp).grid);
}
template <int D> uint64_t clusterid(const Warp &warp, unsigned) {
  return warp.block->id[D] / part<D>(launchOf(warp).cluster);
}
template <int D> uint64_t nclusterid(const Warp &warp, unsigned) {
  return part<D>(launchOf(warp).grid) / part<D>(launchOf(warp).cluster);
}
template <int D> uint64_t clusterCtaid(const Warp &warp, unsigned) {
  return warp.block->id[D] % part<D>(launchOf(warp).cluster);
}
template <int D> uint64_t clusterNctaid(const Warp &warp, unsigned) {
  return part<D>(launchOf(warp).cluster);
}

uint64_t laneBit(unsigned lane) { return uint64_t(1) << lane; }

constexpr Entry table[] = {
    {"%tid.x", 4, tid<0>},
    {"%tid.y", 4, tid<1>},
    {"%tid.z", 4, tid<2>},
    {"%ntid.x", 4, ntid<0>},
    {"%ntid.y", 4, ntid<1>},
    {"%ntid.z", 4, ntid<2>},
    {"%ctaid.x", 4, ctaid<0>},
    {"%ctaid.y", 4, ctaid<1>},
    {"%ctaid.z", 4, ctaid<2>},
    {"%nctaid.x", 4, nctaid<0>},
    {"%nctaid.y", 4, nctaid<1>},
    {"%nctaid.z", 4, nctaid<2>},
    {"%clusterid.x", 4, clusterid<0>},
    {"%clusterid.y", 4, clusterid<1>},
    {"%clusterid.z", 4, clusterid<2>},
    {"%nclusterid.x", 4, nclusterid<0>},
    {"%nclusterid.y", 4, nclusterid<1>},
    {"%nclusterid.z", 4, nclusterid<2>},
    {"%cluster_ctaid.x", 4, clusterCtaid<0>},
    {"%cluster_ctaid.y", 4, clusterCtaid<1>},
    {"%cluster_ctaid.z", 4, clusterCtaid<2>},
    {"%cluster_nctaid.x", 4, clusterNctaid<0>},
    {"%cluster_nctaid.y", 4, clusterNctaid<1>},
    {"%cluster_nctaid.z", 4, clusterNctaid<2>},
    {"%cluster_ctarank", 4,
     [](const Warp &w, unsigned) -> uint64_t { return w.block->rank; }},
    {"%cluster_nctarank", 4,
     [](const Warp &w, unsigned) { return launchOf(w).cluster.count(); }},
    {"%laneid", 4, [](const Warp &, unsigned l) -> uint64_t { return l; }},
    {"%warpid", 4, [](const Warp &w, unsigned) -> uint64_t { return w.index; }},
    {"%nwarpid", 4, [](const Warp &, unsigned) -> uint64_t { return 64; }},
    {"%smid", 4, [](const Warp &, unsigned) -> uint64_t { return 0; }},
    {"%nsmid", 4, [](const Warp &, unsigned) -> uint64_t { return 1; }},
    {"%gridid", 8, [](const Warp &w, unsigned) { return launchOf(w).number; }},
    {"%lanemask_eq", 4, [](const Warp &, unsigned l) { return laneBit(l); }},
    {"%lanemask_lt", 4,
     [](const Warp &, unsigned l) { return laneBit(l) - 1; }},
    {"%lanemask_le", 4,
     [](const Warp &, unsigned l) { return laneBit(l + 1) - 1; }},
    {"%lanemask_gt", 4,
     [](const Warp &, unsigned l) { return ~(laneBit(l + 1) - 1); }},
    {"%lanemask_ge", 4,
     [](const Warp &, unsigned l) { return ~(laneBit(l) - 1); }},
    {"%dynamic_smem_size", 4,
     [](const Warp &w, unsigned) -> uint64_t {
       return launchOf(w).dynamicShared;
     }},
    {"%total_smem_size", 4,
     [](const Warp &w, unsigned) -> uint64_t {
       return launchOf(w).sharedEnd - sharedStart;
     }},
    {"%aggr_smem_size", 4,
     [](const Warp &w, unsigned) -> uint64_t { return launchOf(w).sharedEnd; }},
    {sharedBaseName, 8,
     [](const Warp &w, unsigned) -> uint64_t { return w.block->window(); }},
    {localBaseName, 8,
     [](const Warp &w, unsigned) -> uint64_t { return w.localBase; }},
    {paramBaseName, 8,
     [](const Warp &w, unsigned) { return launchOf(w).parameterAddress; }},
};

} // namespace

size_t tenon::emu::specialBytes() { return std::size(table) * 256; }

int tenon::emu::specialPlace(std::string_view name, unsigned &bytes) {
  for (size_t i = 0; i != std::size(table); ++i)
    if (table[i].name == name) {
      bytes = table[i].bytes;
      return static_cast<int>(i);
    }
  return -1;
}

void tenon::emu::fillSpecials(Warp &warp, const Image &image) {
  for (size_t i = 0; i != std::size(table); ++i) {
    if (!image.usedSpecials[i])
      continue;
    Ref place = SpecialRef | static_cast<Ref>(i * 256);
    for (unsigned lane = 0; lane != 32; ++lane) {
      uint64_t value = table[i].value(warp, lane);
      if (table[i].bytes == 8)
        lanes<uint64_t>(warp, place)[lane] = value;
      else
        lanes<uint32_t>(warp, place)[lane] = static_cast<uint32_t>(value);
    }
  }
}
