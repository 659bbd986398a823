//===- SharedShadow.h - who touched which byte of shared memory -----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_EMULATOR_CHECK_SHAREDSHADOW_H
#define TENON_RUNTIME_EMULATOR_CHECK_SHAREDSHADOW_H

/// \file
/// Races in shared memory, found by happens-before as in FastTrack (Flanagan
/// and Freund 2009): each warp has a clock that a barrier advances, and a
/// vector of the clocks of others that it has synchronised with. A byte keeps
/// the last write and the reads after it as (warp, clock); an access is a race
/// if the warp has not synchronised with what the byte keeps.

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace tenon::emu {

class SharedShadow {
public:
  /// Warps of a block, and one more that stands for asynchronous operations:
  /// what bulk copies and wgmma touch is its doing, which no barrier waits for.
  static constexpr unsigned maxWarps = 33;
  static constexpr unsigned asyncWarp = maxWarps - 1;
  /// For each warp, up to when its doings are known; then the same for what
  /// the asynchronous proxy is known to see of them.
  using Clock = std::array<uint16_t, 2 * maxWarps>;
  /// What was known at a moment. Times begin again when they have run out, and
  /// then everything before counts as known.
  struct Stamp {
    Clock clock{};
    unsigned epoch = 0;
  };

  enum class Verdict : uint8_t { Good, Unwritten, Pending, Race, Unfenced };
  struct Problem {
    Verdict verdict = Verdict::Good;
    uint32_t address = 0; // the byte
    unsigned warp = 0;    // the other one, of a race
    bool otherWrote = false;
  };

  /// Forgets everything: `bytes` of memory that nobody has written.
  void reset(uint32_t bytes, unsigned warps);

  /// An access by `warp`; the first byte that it must not touch so, if any.
  Problem read(uint32_t address, uint32_t bytes, unsigned warp, bool races);
  Problem write(uint32_t address, uint32_t bytes, unsigned warp, bool races);
  /// An atomic access: ordered after all others that synchronise.
  Problem atomic(uint32_t address, uint32_t bytes, unsigned warp, bool races);

  /// An asynchronous copy by `warp` begins and has been waited for.
  Problem beginCopy(uint32_t address, uint32_t bytes, unsigned warp,
                    bool races);
  void endCopy(uint32_t address, uint32_t bytes, unsigned warp);

  // Synchronisation. A barrier collects the clocks of those who arrive
  // (release) and hands them to those who leave (acquire).

  void release(unsigned warp, Clock &into);
  /// After a barrier of the whole block: starts the clocks again if they run
  /// out. True if it did; clocks kept elsewhere are worthless then.
  bool restartIfOld();
  void acquire(unsigned warp, const Clock &from);
  /// Warps of a block synchronise through atomics and volatile accesses.
  void synchronize(unsigned warp) {
    acquire(warp, atomics);
    mergeInto(atomics, clocks[warp]);
  }

  // The asynchronous proxy. An operation is judged by what the warp that issues
  // it knows, and is from then on the asynchronous warp's.

  /// What the warp knows is visible to the asynchronous proxy from now on.
  void fenceProxy(unsigned warp);
  Problem asyncRead(uint32_t address, uint32_t bytes, unsigned issuer,
                    bool races);
  Problem asyncWrite(uint32_t address, uint32_t bytes, unsigned issuer,
                     bool races);
  /// What asynchronous operations did so far is known to those who acquire
  /// `into`.
  void releaseAsync(Stamp &into) { releaseTo(asyncWarp, into); }

  // The same as release and acquire, for what is kept over times.

  void releaseTo(unsigned warp, Stamp &into) {
    if (into.epoch != epochs)
      into = {{}, epochs};
    release(warp, into.clock);
  }
  void acquireFrom(unsigned warp, const Stamp &from) {
    if (from.epoch == epochs)
      acquire(warp, from.clock);
  }

private:
  // An entry: 0 nothing, allOnes a copy under way, else clock << 6 | warp with
  // clocks from 1; of readers also manyReaders | index in `sets`.
  using Entry = uint16_t;
  static constexpr Entry pending = 0xffff;
  static constexpr Entry manyReaders = 0x8000;
  static constexpr unsigned maxClock = 510;
  static constexpr Entry ancient = 0; // of readers: none

  Entry own(unsigned warp) const {
    return static_cast<Entry>(clocks[warp][warp] << 6 | warp);
  }
  bool ordered(Entry entry, unsigned warp) const {
    unsigned other = entry & 63;
    return other == warp || clocks[warp][other] >= (entry >> 6);
  }
  bool readersOrdered(Entry entry, unsigned warp, unsigned &other) const;
  Entry addReader(Entry entry, unsigned warp);
  bool visible(Entry entry, unsigned issuer) const {
    unsigned other = entry & 63;
    return other == asyncWarp ||
           clocks[issuer][maxWarps + other] >= (entry >> 6);
  }
  Problem checkAsync(uint32_t address, uint32_t bytes, unsigned issuer,
                     bool isWrite);
  void beginAsync();
  static void mergeInto(Clock &to, const Clock &from);
  void updateFloor(unsigned warp);
  void restart();

  std::vector<Entry> writes, reads;
  std::array<Clock, maxWarps> clocks;
  std::array<Entry, maxWarps> floor; // entries below are ordered before it
  Clock atomics;
  unsigned numWarps = 0;
  unsigned epochs = 0;
  bool asyncUsed = false;
  std::vector<Clock> sets; // of readers: each one's clock, 0: not in it
  std::unordered_map<uint64_t, Entry> grown;
};

} // namespace tenon::emu

#endif // TENON_RUNTIME_EMULATOR_CHECK_SHAREDSHADOW_H
