//===- Device.h - what runs a plan's launches ----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_DEVICE_DEVICE_H
#define TENON_RUNTIME_DEVICE_DEVICE_H

#include "runtime/Model.h"
#include "runtime/Team.h"

#include <memory>
#include <span>
#include <string>

namespace tenon::rt {

class Frame;

/// When a worker (a thread, or a GPU) was busy with a launch, in nanoseconds
/// since the run began.
struct LaunchTime {
  uint32_t launch, thread;
  int64_t begin, end;
};

/// The memory and the workers of one session. Addresses that it gives are good
/// for its units; only on the CPU are they also the host's.
class Device {
public:
  virtual ~Device() = default;

  /// "x86-64-v4, 2 threads", "NVIDIA H200": for people.
  virtual std::string name() const = 0;
  /// Workers that profile() has rows for.
  virtual unsigned workers() const = 0;
  /// Bytes that kernels keep for each worker beside the plan's buffers.
  virtual uint64_t workerBytes() const { return 0; }
  /// What there is to say of the memory after a run; empty: nothing.
  virtual std::string memoryNote() const { return ""; }

  //===--- Memory
  //----------------------------------------------------------===//

  /// Where units find the weights.
  virtual char *weights() = 0;
  /// At least `bytes` for the temporaries of `segment`; 64-byte aligned. What
  /// an earlier call for the segment gave is gone.
  virtual Result<char *> reserveArena(uint32_t segment, uint64_t bytes) = 0;
  /// Where units find input `index`, whose `bytes` lie at `data`; they are read
  /// before the next run() ends.
  virtual Result<char *> placeInput(size_t index, const void *data,
                                    uint64_t bytes) = 0;
  /// Where units write output `index`, which finish() brings to `data`.
  virtual Result<char *> placeOutput(size_t index, void *data,
                                     uint64_t bytes) = 0;

  /// At least `bytes` that keep their contents from run to run; 64-byte
  /// aligned. What an earlier call gave is gone.
  virtual Result<char *> reserveState(uint64_t bytes) = 0;
  /// Copies from the host to memory of the units, before what runs next.
  virtual Status put(char *to, const void *from, uint64_t bytes) = 0;

  //===--- Work
  //------------------------------------------------------------===//

  /// Runs the launches of `segment`, whose sizes and pointers `frame` has; they
  /// may still run when this returns. Data that a kernel cannot work with
  /// (kernels/common/fault.h) are an error, here or in fetch() and finish().
  virtual Status run(const Frame &frame, uint32_t segment) = 0;
  /// Waits, and copies memory of the units to the host.
  virtual Status fetch(void *to, const char *from, uint64_t bytes) = 0;
  /// Waits for everything; the outputs are then in the host's memory.
  virtual Status finish() = 0;

  //===--- Profile
  //---------------------------------------------------------===//

  /// Before the first segment of a run: nothing is noted, no fault is known.
  virtual void beginRun() = 0;
  /// From now on runs note when each worker is busy with each launch.
  virtual void enableProfile() = 0;
  /// Of the latest run.
  virtual std::span<const LaunchTime> profile() const = 0;
};

/// Threads of this process. `threads` 0 takes defaultThreads(). `model` must
/// outlive the device.
Result<std::unique_ptr<Device>> createCpuDevice(const Model &model,
                                                unsigned threads);

} // namespace tenon::rt

#endif // TENON_RUNTIME_DEVICE_DEVICE_H
