//===- State.h - warps, blocks and launches -------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_EMULATOR_EXEC_STATE_H
#define TENON_RUNTIME_EMULATOR_EXEC_STATE_H

#include "runtime/emulator/check/DeviceMemory.h"
#include "runtime/emulator/check/Findings.h"
#include "runtime/emulator/check/SharedShadow.h"
#include "runtime/emulator/exec/Program.h"

#include <atomic>
#include <cstdlib>
#include <deque>
#include <memory>
#include <span>

namespace tenon::emu {

struct Block;
struct Cluster;
struct Launch;

/// What an operation of a kernel did, in one worker or in all.
struct OpStats {
  uint64_t count = 0; // by warp
  uint64_t lanes = 0;
  /// Memory operations: bytes asked for, and what that took: 32-byte sectors of
  /// global memory, or wavefronts of shared memory.
  uint64_t bytes = 0;
  uint64_t pieces = 0;
  uint64_t ideal = 0; // the least number of pieces for those bytes
  const Allocation *last = nullptr; // that it touched, most likely again
};

/// Lanes that wait for others of their warp, or have yet to run.
struct Pending {
  const Op *pc;
  const Op *join;
  uint32_t mask;
};

/// A function that is being called.
struct Frame {
  const Code *code; // of the caller
  const CallSite *site;
  const Op *pc, *join;
  uint32_t mask;
  size_t stackBase;
  uint64_t localBase;
  char *registers;
};

enum class WarpState : uint8_t { Ready, AtBarrier, AtCluster, Done, Faulted };

/// Pieces of cp.async that one warp has issued.
struct CopyPiece {
  uint32_t address, bytes, lane;
};

/// Groups of asynchronous operations that a warp has committed and not waited
/// for, the oldest first: what waiting for each makes known.
using AsyncGroups = std::deque<SharedShadow::Stamp>;

/// 32 threads that run together.
struct Warp {
  char *base[4] = {}; // frame, constants, special registers
  const Op *pc = nullptr;
  const Op *join = nullptr; // where the running lanes meet those that wait
  uint32_t mask = 0;        // lanes that run
  OpStats *stats = nullptr;
  WarpState state = WarpState::Ready;
  bool yielded = false; // gives way: spins, or has used its share
  unsigned index = 0;   // in the block
  uint32_t present = 0; // lanes that are threads
  uint32_t exited = 0;
  uint32_t carry = 0; // the condition code's carry flag, by lane
  Block *block = nullptr;
  Launch *launch = nullptr;
  const Code *code = nullptr;
  uint64_t localBase = localStart;
  uint64_t localBytes = 0; // of one thread, all frames together
  std::unique_ptr<char[]> local, localShadow;
  std::vector<Pending> stack;
  std::vector<Frame> frames;
  std::vector<std::unique_ptr<char[]>> callFrames; // by depth
  std::vector<std::vector<CopyPiece>> copyGroups;  // committed, oldest first
  std::vector<CopyPiece> openCopies;
  AsyncGroups bulkGroups;
  uint64_t wgmmaCommitted = 0, wgmmaWaited = 0; // groups so far
  const Op *waitsAt = nullptr;                  // for reports
  uint64_t clusterPhase = 0; // that it arrived in, and waits to be over
  bool clusterArrived = false;

  uint32_t live() const { return present & ~exited; }

  /// Reports a finding of lane `lane` at `op` and stops the launch. `what` ends
  /// the sentence "thread (x, y, z) of block (...) ...".
  void fault(const Op &op, Fault kind, unsigned lane, const std::string &what);
  const Where &where(const Op &op) const {
    return code->where[&op - code->ops.data()];
  }
};

/// A named barrier of a block.
struct NamedBarrier {
  uint32_t arrived = 0;  // threads
  uint32_t expected = 0; // 0: nobody has come yet
  uint32_t waiting = 0;  // warps, by bit
  uint32_t reduceOr = 0, reduceAnd = 1, reduceCount = 0;
  SharedShadow::Clock clock{};
};

struct FreeDeleter {
  void operator()(char *p) const { std::free(p); }
};
using Buffer = std::unique_ptr<char, FreeDeleter>;

/// The wgmma groups of four warps, from number `first` on. A group's end is one
/// for all four: what it stamps is the work of all of them.
struct Warpgroup {
  uint64_t first = 0;
  AsyncGroups groups;
};

/// A thread block.
struct Block {
  Cluster *cluster = nullptr;
  Launch *launch = nullptr;
  uint32_t id[3] = {};
  unsigned rank = 0; // in the cluster
  uint32_t liveThreads = 0;
  uint32_t sharedEnd = 0; // shared memory is [sharedStart, sharedEnd)
  Buffer shared;          // addressed from 0
  SharedShadow shadow;
  NamedBarrier barriers[16];
  SharedShadow::Clock clusterClock{};
  std::vector<Warp> warps;
  std::vector<Warpgroup> warpgroups;
  Buffer registers;
  /// What waiters of an mbarrier learn, by its offset.
  std::unordered_map<uint32_t, SharedShadow::Stamp> mbarriers;

  uint32_t window() const { return rank << clusterShift; }
};

/// The barrier of a cluster: arrival and waiting are apart.
struct ClusterBarrier {
  uint32_t arrived = 0; // threads, in this phase
  uint64_t phase = 0;
};

/// The blocks that run at the same time and see each other's shared memory;
/// usually one.
struct Cluster {
  std::vector<std::unique_ptr<Block>> blocks;
  ClusterBarrier barrier;
  uint64_t spins = 0; // rounds in which every warp only waited
  uint64_t executed = 0;
};

struct Extent {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t(x) * y * z; }
};

/// A kernel with its arguments.
struct Launch {
  const Image *image = nullptr;
  const Code *kernel = nullptr;
  Extent grid, block, cluster;
  uint32_t dynamicShared = 0;
  uint32_t sharedEnd = 0;
  std::vector<char> parameters;
  uint64_t parameterAddress = 0; // where kernels see them
  std::shared_ptr<const AllocationTable> memory;
  Checks checks;
  Findings findings;
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> nextCluster{0};
  std::vector<OpStats> stats;   // of all workers, by Op::id
  uint64_t maxInstructions = 0; // by warp; 0: no bound
  uint64_t number = 0;

  uint64_t clusters() const { return grid.count() / cluster.count(); }
};

/// Runs the launch to its end on the machine's processors; findings tell how
/// it went.
void run(Launch &launch);

/// Runs the warp until it waits, ends, gives way or has executed `budget`
/// operations; returns how many.
uint64_t runWarp(Warp &warp, uint64_t budget);

/// Control flow (Control.cpp), for those who end threads.
void exitLanes(Warp &warp, uint32_t lanes);
void reconverge(Warp &warp);
/// The last lanes of a warp have ended: barriers may be complete now.
void leaveBarriers(Warp &warp);

} // namespace tenon::emu

#endif // TENON_RUNTIME_EMULATOR_EXEC_STATE_H
