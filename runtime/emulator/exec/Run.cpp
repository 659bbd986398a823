//===- Run.cpp - a launch, from its first block to its last ---------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/emulator/exec/Decoder.h"
#include "runtime/emulator/exec/Lanes.h"
#include "runtime/support/Status.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>

using namespace tenon;
using namespace tenon::emu;

namespace {

/// Operations that a warp runs before another one's turn.
constexpr uint64_t turn = 20000;
/// Operations after which a cluster makes room: it may wait for others.
constexpr uint64_t clusterTurn = 40'000'000;
/// Rounds in which all warps only spin before others run, or none will come.
constexpr uint64_t patience = 2000, hopeless = 50000;
/// For workers that the machine has not let run.
constexpr std::chrono::seconds grace(3);

Buffer allocate(size_t bytes) {
  return Buffer(
      static_cast<char *>(std::aligned_alloc(64, (bytes + 127) & ~size_t(63))));
}

/// What the workers of a launch know of each other.
struct Team {
  std::atomic<int> working{0}; // those that do more than wait
  unsigned workers = 0;
};

/// One thread of the machine with the clusters that it runs.
class Worker {
public:
  Worker(Launch &launch, Team &team)
      : launch(launch), team(team), stats(launch.kernel->numIds) {}

  void run();
  void addStats(std::vector<OpStats> &to) const;

private:
  enum class Outcome { Finished, Waits, Stopped };

  std::unique_ptr<Cluster> next();
  std::unique_ptr<Block> makeBlock();
  void start(Block &block, uint64_t clusterIndex, unsigned rank);
  void startWarp(Warp &warp, Block &block, unsigned index);
  struct Round {
    bool ready = false, done = true, onlySpins = true;
  };
  Round runRound(Cluster &cluster);
  void setWorking(bool now);
  bool isHopeless(Cluster &cluster);
  Outcome advance(Cluster &cluster);
  void reportDeadlock(Cluster &cluster, const char *how);

  Launch &launch;
  Team &team;
  std::vector<OpStats> stats;
  std::vector<std::unique_ptr<Cluster>> spare;
  std::deque<std::unique_ptr<Cluster>> waiting;
  bool working = false;
  std::chrono::steady_clock::time_point spinsSince;
};

std::unique_ptr<Block> Worker::makeBlock() {
  auto block = std::make_unique<Block>();
  const Code &kernel = *launch.kernel;
  auto warps = static_cast<unsigned>((launch.block.count() + 31) / 32);
  size_t each = kernel.frameBytes + specialBytes();
  block->launch = &launch;
  block->registers = allocate(each * warps);
  block->shared = allocate(launch.sharedEnd);
  block->warps.resize(warps);
  for (unsigned i = 0; i != warps; ++i) {
    Warp &warp = block->warps[i];
    char *registers = block->registers.get() + each * i;
    warp.base[0] = registers;
    warp.base[1] = const_cast<char *>(launch.image->constants.data());
    warp.base[2] = registers + kernel.frameBytes;
    warp.stats = stats.data();
    warp.launch = &launch;
    uint64_t local = kernel.localBytes;
    warp.localBytes = localStart + ((local + 15) & ~uint64_t(15)) +
                      (launch.image->hasCalls ? callStackBytes : 0);
    if (warp.localBytes > localStart) {
      warp.local.reset(new char[warp.localBytes * 32]);
      warp.localShadow.reset(new char[warp.localBytes * 32]);
    }
  }
  return block;
}

void Worker::startWarp(Warp &warp, Block &block, unsigned index) {
  uint64_t threads = launch.block.count();
  uint64_t left = threads - uint64_t(index) * 32;
  warp.index = index;
  warp.block = &block;
  warp.code = launch.kernel;
  warp.base[0] = block.registers.get() +
                 (launch.kernel->frameBytes + specialBytes()) * index;
  warp.pc = warp.code->ops.data();
  warp.join = nullptr;
  warp.present = left >= 32 ? ~0u : (1u << left) - 1;
  warp.mask = warp.present;
  warp.exited = 0;
  warp.state = WarpState::Ready;
  warp.yielded = false;
  warp.localBase = localStart;
  warp.stack.clear();
  warp.frames.clear();
  warp.copyGroups.clear();
  warp.openCopies.clear();
  warp.wgmmaCommitted = warp.wgmmaWaited = 0;
  warp.bulkGroups.clear();
  warp.waitsAt = nullptr;
  warp.clusterArrived = false;
  if (warp.localShadow)
    for (unsigned lane = 0; lane != 32; ++lane)
      std::memset(&warp.localShadow[lane * warp.localBytes], 0,
                  localStart + launch.kernel->localBytes);
  fillSpecials(warp, *launch.image);
}

void Worker::start(Block &block, uint64_t clusterIndex, unsigned rank) {
  const Extent &grid = launch.grid, &size = launch.cluster;
  uint32_t clustersX = grid.x / size.x, clustersY = grid.y / size.y;
  auto x = static_cast<uint32_t>(clusterIndex % clustersX);
  auto y = static_cast<uint32_t>(clusterIndex / clustersX % clustersY);
  auto z = static_cast<uint32_t>(clusterIndex / clustersX / clustersY);
  block.id[0] = x * size.x + rank % size.x;
  block.id[1] = y * size.y + rank / size.x % size.y;
  block.id[2] = z * size.z + rank / size.x / size.y;
  block.rank = rank;
  block.liveThreads = static_cast<uint32_t>(launch.block.count());
  block.sharedEnd = launch.sharedEnd;
  block.mbarriers.clear();
  block.warpgroups.assign((block.warps.size() + 3) / 4, Warpgroup());
  block.clusterClock.fill(0);
  for (NamedBarrier &barrier : block.barriers)
    barrier = NamedBarrier();
  block.shadow.reset(block.sharedEnd,
                     static_cast<unsigned>(block.warps.size()));
  for (unsigned i = 0; i != block.warps.size(); ++i)
    startWarp(block.warps[i], block, i);
}

std::unique_ptr<Cluster> Worker::next() {
  uint64_t index = launch.nextCluster.fetch_add(1);
  if (index >= launch.clusters())
    return nullptr;
  std::unique_ptr<Cluster> cluster;
  if (!spare.empty()) {
    cluster = std::move(spare.back());
    spare.pop_back();
  } else {
    cluster = std::make_unique<Cluster>();
    for (uint64_t i = 0; i != launch.cluster.count(); ++i) {
      cluster->blocks.push_back(makeBlock());
      cluster->blocks.back()->cluster = cluster.get();
    }
  }
  cluster->barrier = ClusterBarrier();
  cluster->spins = cluster->executed = 0;
  for (unsigned rank = 0; rank != cluster->blocks.size(); ++rank)
    start(*cluster->blocks[rank], index, rank);
  return cluster;
}

void Worker::reportDeadlock(Cluster &cluster, const char *how) {
  for (auto &block : cluster.blocks)
    for (Warp &warp : block->warps)
      if (warp.state != WarpState::Done) {
        const Op *op = warp.waitsAt ? warp.waitsAt : warp.pc;
        unsigned lane = __builtin_ctz(warp.live() ? warp.live() : 1);
        return warp.fault(*op, Fault::Deadlock, lane, how);
      }
}

/// Runs each warp that can for its turn.
Worker::Round Worker::runRound(Cluster &cluster) {
  Round round;
  for (auto &block : cluster.blocks)
    for (Warp &warp : block->warps) {
      if (warp.state == WarpState::Ready) {
        round.ready = true;
        warp.yielded = false;
        uint64_t executed = runWarp(warp, turn);
        cluster.executed += executed;
        round.onlySpins &= warp.yielded && executed < 256;
        if (launch.stop.load(std::memory_order_relaxed))
          return round;
      }
      round.done &= warp.state == WarpState::Done;
    }
  return round;
}

void Worker::setWorking(bool now) {
  if (now != working)
    team.working += now ? 1 : -1;
  working = now;
}

/// Whether a cluster whose warps only spin will never do anything else: no
/// worker has done more for long, and had the time to.
bool Worker::isHopeless(Cluster &cluster) {
  if (team.working.load() != 0) {
    cluster.spins = patience; // counts from here again
    return false;
  }
  auto now = std::chrono::steady_clock::now();
  if (cluster.spins == patience + 1)
    spinsSince = now;
  return cluster.spins > hopeless &&
         (team.workers == 1 || now - spinsSince > grace);
}

Worker::Outcome Worker::advance(Cluster &cluster) {
  uint64_t begun = cluster.executed;
  for (uint64_t spins = 0;;) {
    Round round = runRound(cluster);
    if (launch.stop.load(std::memory_order_relaxed))
      return Outcome::Stopped;
    if (round.done)
      return Outcome::Finished;
    if (!round.ready) {
      reportDeadlock(cluster, "waits for threads that will never come");
      return Outcome::Stopped;
    }
    if (launch.maxInstructions && cluster.executed > launch.maxInstructions) {
      reportDeadlock(cluster, "has not ended within the allowed number of "
                              "instructions");
      return Outcome::Stopped;
    }
    cluster.spins = round.onlySpins ? cluster.spins + 1 : 0;
    spins = round.onlySpins ? spins + 1 : 0;
    setWorking(cluster.spins <= patience);
    if (cluster.spins > patience && isHopeless(cluster)) {
      reportDeadlock(cluster, "waits for something that never happens");
      return Outcome::Stopped;
    }
    if (spins > patience || cluster.executed - begun > clusterTurn)
      return Outcome::Waits;
  }
}

void Worker::run() {
  setWorking(true);
  while (!launch.stop.load(std::memory_order_relaxed)) {
    std::unique_ptr<Cluster> cluster = next();
    if (!cluster) {
      if (waiting.empty())
        break;
      cluster = std::move(waiting.front());
      waiting.pop_front();
      if (!working)
        std::this_thread::yield();
    } else {
      setWorking(true);
    }
    switch (advance(*cluster)) {
    case Outcome::Finished:
      spare.push_back(std::move(cluster));
      break;
    case Outcome::Waits:
      waiting.push_back(std::move(cluster));
      break;
    case Outcome::Stopped:
      launch.stop = true;
      break;
    }
  }
  setWorking(false);
}

void Worker::addStats(std::vector<OpStats> &to) const {
  for (size_t i = 0; i != stats.size(); ++i) {
    to[i].count += stats[i].count;
    to[i].lanes += stats[i].lanes;
    to[i].bytes += stats[i].bytes;
    to[i].pieces += stats[i].pieces;
    to[i].ideal += stats[i].ideal;
  }
}

/// Threads that stay from launch to launch, which are short and many.
class Crew {
public:
  static Crew &get() {
    static Crew *crew = new Crew; // its threads never end
    return *crew;
  }
  /// Calls work(0) here and work(1) to work(count - 1) in other threads, of
  /// those that come while work(0) runs: on a machine that has other things to
  /// do, nobody waits for one that would find nothing left.
  void run(size_t count, const std::function<void(size_t)> &work);

private:
  void serve();

  std::mutex user; // one launch at a time has the crew
  std::mutex mutex;
  std::condition_variable wake, done;
  const std::function<void(size_t)> *job = nullptr;
  size_t threads = 0, places = 0, taken = 0, inside = 0;
};

void Crew::run(size_t count, const std::function<void(size_t)> &work) {
  std::unique_lock<std::mutex> mine(user, std::try_to_lock);
  if (!mine || count < 2)
    return work(0);
  {
    std::lock_guard<std::mutex> lock(mutex);
    for (; threads < count - 1; ++threads)
      std::thread([this] { serve(); }).detach();
    job = &work;
    places = count - 1;
    taken = 0;
  }
  wake.notify_all();
  work(0);
  std::unique_lock<std::mutex> lock(mutex);
  job = nullptr;
  done.wait(lock, [this] { return inside == 0; });
}

void Crew::serve() {
  std::unique_lock<std::mutex> lock(mutex);
  for (;;) {
    wake.wait(lock, [this] { return job && taken < places; });
    const std::function<void(size_t)> &work = *job;
    size_t place = ++taken;
    ++inside;
    lock.unlock();
    work(place);
    lock.lock();
    if (--inside == 0)
      done.notify_one();
  }
}

unsigned threadCount() {
  const char *text = std::getenv("TENON_EMULATOR_THREADS");
  int wanted = text ? std::atoi(text) : 0;
  unsigned most = std::thread::hardware_concurrency();
  return wanted > 0 ? std::min(wanted, 256) : std::max(1u, most);
}

} // namespace

uint64_t emu::runWarp(Warp &warp, uint64_t budget) {
  uint64_t executed = 0;
  do {
    const Op &op = *warp.pc++;
    uint32_t mask = warp.mask & (predicate(warp, op.guard) ^ op.guardFlip);
    OpStats &stats = warp.stats[op.id];
    ++stats.count;
    stats.lanes += static_cast<unsigned>(__builtin_popcount(mask));
    ++executed;
    if (mask != 0)
      op.run(warp, op, mask);
  } while (warp.state == WarpState::Ready && !warp.yielded &&
           executed < budget);
  return executed;
}

void emu::run(Launch &launch) {
  launch.stats.assign(launch.kernel->numIds, OpStats());
  size_t count = std::min<uint64_t>(threadCount(), launch.clusters());
  Team team;
  team.workers = static_cast<unsigned>(count);
  std::vector<std::unique_ptr<Worker>> workers;
  for (size_t i = 0; i != count; ++i)
    workers.push_back(std::make_unique<Worker>(launch, team));
  if (count != 0)
    Crew::get().run(count, [&](size_t i) { workers[i]->run(); });
  for (const auto &worker : workers)
    worker->addStats(launch.stats);
}

void Warp::fault(const Op &op, Fault kind, unsigned lane,
                 const std::string &what) {
  const Where &place = where(op);
  const Extent &extent = launch->block;
  uint32_t thread = index * 32 + lane;
  std::string text = rt::format("%s: kernel %s, PTX line %u '%s'", nameOf(kind),
                                launch->kernel->name.c_str(), place.line,
                                std::string(place.text).c_str());
  for (const auto &[number, name] : code->module->files)
    if (place.sourceLine != 0 && number == place.sourceFile)
      text += rt::format(" (%s:%u)", rt::printable(std::string(name)).c_str(),
                         place.sourceLine);
  text += rt::format(": thread (%u, %u, %u) of block (%u, %u, %u) ",
                     thread % extent.x, thread / extent.x % extent.y,
                     thread / extent.x / extent.y, block->id[0], block->id[1],
                     block->id[2]);
  launch->findings.report(kind, text + what);
  launch->stop = true;
  state = WarpState::Faulted;
}
