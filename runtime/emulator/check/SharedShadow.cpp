//===- SharedShadow.cpp - who touched which byte of shared memory ---------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/emulator/check/SharedShadow.h"

#include <algorithm>

using namespace tenon::emu;

void SharedShadow::reset(uint32_t bytes, unsigned warps) {
  writes.assign(bytes, 0);
  reads.assign(bytes, 0);
  numWarps = warps;
  asyncUsed = false;
  ++epochs;
  atomics.fill(0);
  for (unsigned warp = 0; warp != maxWarps; ++warp) {
    clocks[warp].fill(0);
    clocks[warp][warp] = 1;
    updateFloor(warp);
  }
  sets.clear();
  grown.clear();
}

/// Clocks have run out: everything so far counts as ordered.
void SharedShadow::restart() {
  for (Entry &entry : writes)
    if (entry != 0 && entry != pending)
      entry = 1 << 6;
  std::fill(reads.begin(), reads.end(), 0);
  sets.clear();
  grown.clear();
  ++epochs;
  atomics.fill(0);
  for (unsigned warp = 0; warp != maxWarps; ++warp) {
    clocks[warp].fill(1);
    clocks[warp][warp] = 2;
    updateFloor(warp);
  }
}

void SharedShadow::updateFloor(unsigned warp) {
  uint16_t least = 0xffff;
  for (unsigned other = 0; other != numWarps; ++other)
    if (other != warp)
      least = std::min(least, clocks[warp][other]);
  if (asyncUsed && warp != asyncWarp)
    least = std::min(least, clocks[warp][asyncWarp]);
  if (numWarps < 2 && !asyncUsed)
    least = clocks[warp][warp];
  floor[warp] = static_cast<Entry>((least + 1) << 6);
}

void SharedShadow::mergeInto(Clock &to, const Clock &from) {
  for (unsigned i = 0; i != to.size(); ++i)
    to[i] = std::max(to[i], from[i]);
}

void SharedShadow::release(unsigned warp, Clock &into) {
  mergeInto(into, clocks[warp]);
  // Clocks that have run out stand still, and races go unseen, until a barrier
  // of the whole block.
  if (clocks[warp][warp] < maxClock)
    ++clocks[warp][warp];
}

bool SharedShadow::restartIfOld() {
  for (unsigned warp = 0; warp != numWarps; ++warp)
    if (clocks[warp][warp] > maxClock - 64) {
      restart();
      return true;
    }
  return false;
}

void SharedShadow::acquire(unsigned warp, const Clock &from) {
  uint16_t mine = clocks[warp][warp];
  mergeInto(clocks[warp], from);
  clocks[warp][warp] = mine;
  updateFloor(warp);
}

bool SharedShadow::readersOrdered(Entry entry, unsigned warp,
                                  unsigned &other) const {
  if (!(entry & manyReaders)) {
    other = entry & 63;
    return ordered(entry, warp);
  }
  const Clock &set = sets[entry & ~manyReaders];
  for (unsigned i = 0; i != maxWarps; ++i) {
    other = i;
    if (i != warp && set[i] > clocks[warp][i])
      return false;
  }
  return true;
}

SharedShadow::Entry SharedShadow::addReader(Entry entry, unsigned warp) {
  Entry mine = own(warp);
  if (entry == 0 || (!(entry & manyReaders) &&
                     ((entry & 63) == warp || ordered(entry, warp))))
    return mine;
  uint64_t key = uint64_t(entry) << 16 | mine;
  auto known = grown.find(key);
  if (known != grown.end())
    return known->second;
  if (sets.size() == manyReaders - 2)
    return mine; // forgets readers rather than time
  Clock set{};
  if (entry & manyReaders)
    set = sets[entry & ~manyReaders];
  else
    set[entry & 63] = entry >> 6;
  set[warp] = clocks[warp][warp];
  auto made = static_cast<Entry>(manyReaders | sets.size());
  sets.push_back(set);
  grown.emplace(key, made);
  grown.emplace(uint64_t(made) << 16 | mine, made);
  return made;
}

SharedShadow::Problem SharedShadow::read(uint32_t address, uint32_t bytes,
                                         unsigned warp, bool races) {
  const Entry *written = &writes[address];
  Entry *readers = &reads[address];
  // Most bytes were written before the last barrier.
  Entry least = 0xffff, most = 0;
  for (uint32_t i = 0; i != bytes; ++i) {
    least = std::min(least, written[i]);
    most = std::max(most, written[i]);
  }
  if (least == 0 || most >= floor[warp]) {
    for (uint32_t i = 0; i != bytes; ++i) {
      if (written[i] == 0)
        return {Verdict::Unwritten, address + i, 0, false};
      if (written[i] == pending)
        return {Verdict::Pending, address + i, 0, false};
      if (races && !ordered(written[i], warp))
        return {Verdict::Race, address + i, written[i] & 63u, true};
    }
  }
  if (!races)
    return {};
  Entry last = readers[0], next = addReader(last, warp);
  for (uint32_t i = 0; i != bytes; ++i) {
    if (readers[i] != last) {
      last = readers[i];
      next = addReader(last, warp);
    }
    readers[i] = next;
  }
  return {};
}

SharedShadow::Problem SharedShadow::write(uint32_t address, uint32_t bytes,
                                          unsigned warp, bool races) {
  Entry *written = &writes[address];
  Entry *readers = &reads[address];
  Entry mine = own(warp);
  if (races) {
    Entry most = 0;
    for (uint32_t i = 0; i != bytes; ++i)
      most = std::max(most, std::max(written[i], readers[i]));
    if (most >= floor[warp]) {
      for (uint32_t i = 0; i != bytes; ++i) {
        if (i != 0 && written[i] == written[i - 1] &&
            readers[i] == readers[i - 1])
          continue;
        if (written[i] == pending)
          return {Verdict::Pending, address + i, 0, true};
        if (written[i] != 0 && !ordered(written[i], warp))
          return {Verdict::Race, address + i, written[i] & 63u, true};
        unsigned other;
        if (readers[i] != 0 && !readersOrdered(readers[i], warp, other))
          return {Verdict::Race, address + i, other, false};
      }
    }
    std::fill_n(readers, bytes, Entry(0));
  }
  std::fill_n(written, bytes, mine);
  return {};
}

SharedShadow::Problem SharedShadow::atomic(uint32_t address, uint32_t bytes,
                                           unsigned warp, bool races) {
  synchronize(warp);
  for (uint32_t i = 0; i != bytes; ++i)
    if (writes[address + i] == 0)
      return {Verdict::Unwritten, address + i, 0, false};
  Problem problem = write(address, bytes, warp, races);
  mergeInto(atomics, clocks[warp]);
  return problem;
}

SharedShadow::Problem SharedShadow::beginCopy(uint32_t address, uint32_t bytes,
                                              unsigned warp, bool races) {
  Problem problem = write(address, bytes, warp, races);
  if (problem.verdict == Verdict::Good)
    std::fill_n(&writes[address], bytes, pending);
  return problem;
}

void SharedShadow::endCopy(uint32_t address, uint32_t bytes, unsigned warp) {
  std::fill_n(&writes[address], bytes, own(warp));
}

void SharedShadow::fenceProxy(unsigned warp) {
  Clock &clock = clocks[warp];
  for (unsigned i = 0; i != maxWarps; ++i)
    clock[maxWarps + i] = std::max(clock[maxWarps + i], clock[i]);
  if (++clock[warp] > maxClock) // what follows is not yet visible
    restart();
}

void SharedShadow::beginAsync() {
  if (asyncUsed)
    return;
  asyncUsed = true;
  for (unsigned warp = 0; warp != maxWarps; ++warp)
    updateFloor(warp);
}

namespace {

/// How many of the `count` entries from the first on are the same as it.
uint32_t runLength(const uint16_t *entries, uint32_t count) {
  uint32_t length = 0;
  for (; length + 16 <= count; length += 16) {
    uint16_t different = 0;
    for (uint32_t i = 0; i != 16; ++i)
      different |= entries[length + i] ^ entries[0];
    if (different != 0)
      break;
  }
  while (length != count && entries[length] == entries[0])
    ++length;
  return length;
}

} // namespace

SharedShadow::Problem SharedShadow::checkAsync(uint32_t address, uint32_t bytes,
                                               unsigned issuer, bool isWrite) {
  // Neighbours mostly have the same history.
  for (uint32_t i = address, end = address + bytes; i != end;) {
    Entry write = writes[i], read = reads[i];
    uint32_t length = runLength(&writes[i], end - i);
    if (isWrite)
      length = runLength(&reads[i], length);
    if (write == pending)
      return {Verdict::Pending, i, 0, true};
    if (write != 0 && !ordered(write, issuer))
      return {Verdict::Race, i, write & 63u, true};
    if (write != 0 && !visible(write, issuer))
      return {Verdict::Unfenced, i, write & 63u, true};
    unsigned other;
    if (isWrite && read != 0 && !readersOrdered(read, issuer, other))
      return {Verdict::Race, i, other, false};
    i += length;
  }
  return {};
}

SharedShadow::Problem SharedShadow::asyncRead(uint32_t address, uint32_t bytes,
                                              unsigned issuer, bool races) {
  beginAsync();
  uint32_t end = address + bytes;
  for (uint32_t i = address; i != end; i += runLength(&writes[i], end - i))
    if (writes[i] == 0)
      return {Verdict::Unwritten, i, 0, false};
  if (!races)
    return {};
  Problem problem = checkAsync(address, bytes, issuer, false);
  if (problem.verdict != Verdict::Good)
    return problem;
  for (uint32_t i = address; i != end;) {
    uint32_t length = runLength(&reads[i], end - i);
    std::fill_n(reads.begin() + i, length, addReader(reads[i], asyncWarp));
    i += length;
  }
  return {};
}

SharedShadow::Problem SharedShadow::asyncWrite(uint32_t address, uint32_t bytes,
                                               unsigned issuer, bool races) {
  beginAsync();
  if (races) {
    Problem problem = checkAsync(address, bytes, issuer, true);
    if (problem.verdict != Verdict::Good)
      return problem;
    std::fill_n(reads.begin() + address, bytes, Entry(0));
  }
  std::fill_n(writes.begin() + address, bytes, own(asyncWarp));
  return {};
}
