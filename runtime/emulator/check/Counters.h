//===- Counters.h - what kernels did, added up ---------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TENON_RUNTIME_EMULATOR_CHECK_COUNTERS_H
#define TENON_RUNTIME_EMULATOR_CHECK_COUNTERS_H

#include "runtime/emulator/exec/State.h"

#include <map>
#include <string>

namespace tenon::emu {

/// The counters of all launches of a process, by kernel.
class Counters {
public:
  static Counters &get();

  /// Adds a launch that has ended.
  void add(const Launch &launch);
  /// Keeps a finding for the report.
  void note(const Findings &findings);
  void clear();

  /// Everything as JSON: an object with a list "kernels" and the last
  /// "finding". README.md of this folder's parent describes the fields.
  std::string json() const;
  /// Writes json() to the file that TENON_EMULATOR_REPORT names, if it does.
  /// False if the file cannot be written.
  bool writeReport() const;

private:
  /// A memory operation of a kernel.
  struct Line {
    std::string text;
    unsigned line = 0, sourceLine = 0;
    OpClass kind = OpClass::Other;
    OpStats stats;
  };
  struct Kernel {
    uint64_t launches = 0, blocks = 0, threads = 0;
    uint64_t byClass[static_cast<size_t>(OpClass::Count)] = {};
    OpStats global, globalStores, shared, tensor;
    uint64_t registerBytes = 0, localBytes = 0, sharedBytes = 0;
    std::map<std::pair<unsigned, std::string>, Line> lines;
  };
  static void addOp(Kernel &kernel, const Op &op, const Where &where,
                    const OpStats &stats);
  static void print(std::string &out, const std::string &name,
                    const Kernel &kernel);

  mutable std::mutex mutex;
  std::map<std::string, Kernel> kernels;
  std::string finding; // as JSON
};

} // namespace tenon::emu

#endif // TENON_RUNTIME_EMULATOR_CHECK_COUNTERS_H
