//===- Async.h - groups of asynchronous work, memory in flight ------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_EMULATOR_TENSOR_ASYNC_H
#define TENON_RUNTIME_EMULATOR_TENSOR_ASYNC_H

#include "runtime/emulator/tensor/Memory.h"

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

namespace tenon::emu::tensor {

/// Asynchronous work of one thread (cp.async, cp.async.bulk) or one warp
/// (wgmma), gathered into groups by `commit` and finished by `wait`. Work is
/// finished in the order in which it was added.
template <typename Work> class AsyncGroups {
public:
  void add(Work work) { open_.push_back(std::move(work)); }

  /// Closes the open group, an empty one too: waits count groups.
  void commit() {
    closed_.push_back(std::move(open_));
    open_.clear();
  }

  /// Finishes all but the `allowed` youngest committed groups, calling
  /// `finish(work)` for each piece. Work not committed is never waited for.
  template <typename Finish> void wait(size_t allowed, Finish &&finish) {
    while (closed_.size() > allowed) {
      for (Work &work : closed_.front())
        finish(work);
      closed_.pop_front();
    }
  }

  /// Finishes everything, the open group too (wait_all of cp.async).
  template <typename Finish> void waitAll(Finish &&finish) {
    commit();
    wait(0, finish);
  }

  bool idle() const {
    if (!open_.empty())
      return false;
    for (const auto &group : closed_)
      if (!group.empty())
        return false;
    return true;
  }
  size_t groups() const { return closed_.size(); }

  /// Calls `see(work)` for everything unfinished.
  template <typename See> void forEach(See &&see) const {
    for (const auto &group : closed_)
      for (const Work &work : group)
        see(work);
    for (const Work &work : open_)
      see(work);
  }

private:
  std::vector<Work> open_;
  std::deque<std::vector<Work>> closed_;
};

/// Which shared memory asynchronous operations in flight still read or write,
/// counted for each 16-byte piece. Touching what is in flight before the wait
/// is the fault that this finds: any access where a write is in flight, a
/// write where a read is.
class InFlight {
public:
  /// For addresses below `bytes`; greater ones are ignored by all functions.
  explicit InFlight(uint32_t bytes = 0)
      : reads_((bytes + 15) / 16), writes_((bytes + 15) / 16) {}

  bool empty() const { return total_ == 0; }

  void begin(AccessKind kind, uint32_t address, uint32_t bytes) {
    change(kind, address, bytes, 1);
  }
  void end(AccessKind kind, uint32_t address, uint32_t bytes) {
    change(kind, address, bytes, -1);
  }

  /// Whether an access of `kind` meets one in flight that it must not.
  bool conflicts(AccessKind kind, uint32_t address, uint32_t bytes) const {
    if (empty() || bytes == 0)
      return false;
    size_t last = (size_t(address) + bytes - 1) / 16;
    for (size_t i = address / 16; i <= last && i < writes_.size(); ++i)
      if (writes_[i] != 0 || (kind == AccessKind::Write && reads_[i] != 0))
        return true;
    return false;
  }

private:
  void change(AccessKind kind, uint32_t address, uint32_t bytes, int by) {
    if (bytes == 0)
      return;
    std::vector<uint32_t> &counts = kind == AccessKind::Read ? reads_ : writes_;
    size_t last = (size_t(address) + bytes - 1) / 16;
    for (size_t i = address / 16; i <= last && i < counts.size(); ++i) {
      counts[i] += uint32_t(by);
      total_ += by;
    }
  }

  std::vector<uint32_t> reads_, writes_;
  int64_t total_ = 0;
};

/// Which shared memory was written through the generic proxy and not yet made
/// visible to the asynchronous one. A write of thread t is visible once t, or
/// the thread that issues the asynchronous operation, has run
/// fence.proxy.async after it. Times are those of the caller's own clock,
/// which grows with every instruction of the block.
class ProxyFences {
public:
  ProxyFences(uint32_t bytes, uint32_t threads)
      : written_((bytes + 15) / 16), fenced_(threads) {}

  void write(uint32_t thread, uint32_t address, uint32_t bytes, uint64_t time) {
    if (bytes == 0)
      return;
    size_t last = (size_t(address) + bytes - 1) / 16;
    for (size_t i = address / 16; i <= last && i < written_.size(); ++i)
      written_[i] = {time, thread};
  }

  void fence(uint32_t thread, uint64_t time) { fenced_[thread] = time; }

  /// Whether `issuer` may touch the range through the asynchronous proxy.
  bool visible(uint32_t issuer, uint32_t address, uint32_t bytes) const {
    if (bytes == 0)
      return true;
    size_t last = (size_t(address) + bytes - 1) / 16;
    for (size_t i = address / 16; i <= last && i < written_.size(); ++i) {
      const Write &w = written_[i];
      if (w.time != 0 && fenced_[w.thread] < w.time && fenced_[issuer] < w.time)
        return false;
    }
    return true;
  }

private:
  struct Write {
    uint64_t time = 0; ///< 0: never written
    uint32_t thread = 0;
  };
  std::vector<Write> written_;
  std::vector<uint64_t> fenced_;
};

} // namespace tenon::emu::tensor

#endif // TENON_RUNTIME_EMULATOR_TENSOR_ASYNC_H
