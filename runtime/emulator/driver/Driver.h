//===- Driver.h - the emulated driver's own objects ----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TENON_RUNTIME_EMULATOR_DRIVER_DRIVER_H
#define TENON_RUNTIME_EMULATOR_DRIVER_DRIVER_H

/// \file
/// One device with one context. Work is done when it is submitted, in the
/// order of submission over all streams, or recorded where a stream captures;
/// or (`late`) when the host or another stream waits for it.

#include "runtime/device/cuda_types.h"
#include "runtime/emulator/check/Findings.h"
#include "runtime/emulator/exec/Decoder.h"
#include "runtime/emulator/exec/State.h"

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#define TN_EXPORT extern "C" __attribute__((visibility("default")))

namespace tenon::emu {

/// Work of a stream or a graph.
using Command = std::function<CUresult()>;

/// What the device is like.
struct DeviceModel {
  unsigned arch = 80; // 80 for sm_80
  char suffix = 0;    // 'a' or 'f': runs such targets too
  unsigned multiprocessors = 108;
  unsigned sharedPerBlock = 163 << 10; // with opt-in
  unsigned sharedPerMultiprocessor = 164 << 10;
  unsigned clockKHz = 1410000;
  unsigned memoryClockKHz = 1215000;
  unsigned memoryBusBits = 5120;
  unsigned l2Bytes = 40 << 20;
};

class Driver {
public:
  static Driver &get();

  CUresult initialise();
  bool ready() const { return initialised; }
  const DeviceModel &device() const { return model; }
  /// Streams put their work off: one that waits too little for another shows.
  bool late() const { return putOff; }

  /// The error that every call returns after a launch has failed.
  CUresult sticky() const { return failure; }
  void fail(CUresult error, const std::string &report);
  void reset();

  const std::string &report() const { return lastReport; }
  Fault lastFault() const { return fault; }
  void setFault(Fault kind) { fault = kind; }
  Checks checks;

  /// Held while the device works.
  std::recursive_mutex mutex;
  uint64_t launches = 0;

private:
  CUresult readEnvironment();

  bool initialised = false, putOff = false;
  DeviceModel model;
  CUresult failure = CUDA_SUCCESS;
  Fault fault = Fault::None;
  std::string lastReport;
};

/// SUCCESS, or why no work can be done now.
CUresult checkDriver();
/// Does the work now, or records it where `stream` captures.
CUresult submit(CUstream stream, Command command);
/// Does what streams have put off: of all of them.
CUresult finishAll();

/// A stream's work where it is put off until somebody must have it.
struct Queue {
  std::deque<Command> commands;
  uint64_t added = 0, done = 0;

  /// Does the work until `count` commands in all are done.
  CUresult finish(uint64_t count);
};

/// What kernel arguments and attributes launch.
struct LaunchRequest {
  CUfunction function = nullptr;
  Extent grid, block, cluster;
  unsigned sharedBytes = 0;
  std::vector<char> parameters;
};
CUresult launchKernel(CUstream stream, LaunchRequest request, void **parameters,
                      void **extra);
/// Prints what the driver's own interface has no place for.
void say(const std::string &text);

} // namespace tenon::emu

struct CUmod_st {
  std::unique_ptr<tenon::emu::Image> image;
  std::vector<std::unique_ptr<struct CUfunc_st>> functions;
};

struct CUfunc_st {
  CUmodule module = nullptr;
  const tenon::emu::Code *code = nullptr;
  int maxDynamicShared = 48 << 10;
};

struct CUgraph_st {
  std::vector<tenon::emu::Command> commands;
};

struct CUgraphExec_st {
  std::shared_ptr<const std::vector<tenon::emu::Command>> commands;
};

struct CUstream_st {
  std::shared_ptr<CUgraph_st> capture; // null: works
  bool captureOrigin = false;
  /// What it is still to do, where work is put off.
  std::shared_ptr<tenon::emu::Queue> queue =
      std::make_shared<tenon::emu::Queue>();
};

#endif // TENON_RUNTIME_EMULATOR_DRIVER_DRIVER_H
