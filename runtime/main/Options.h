//===- Options.h - the artifact's command line --------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_MAIN_OPTIONS_H
#define TENON_RUNTIME_MAIN_OPTIONS_H

#include "runtime/Payload.h"
#include "runtime/device/CudaDriver.h"
#include "runtime/support/Status.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tenon::rt {

enum class Command {
  None,
  Info,
  Run,
  Bench,
  SelfTest,
  Generate,
  Interactive,
  ShowSteps,
  Help
};

/// What the artifact was asked to do.
struct Options {
  Command command = Command::None;
  std::string inputs, outputs, profile, cpu;
  /// "cpu", "cuda" or "emulated"; empty: what the artifact was compiled for.
  std::string device;
  CudaOptions cuda;
  unsigned threads = 0;
  double seconds = 2;
  bool json = false;
  WeightPages pages = WeightPages::Map;
  // What the tokenizer's defaults leave open stays unset.
  std::optional<std::string> prompt;
  std::optional<float> temperature, topP, minP, repetitionPenalty;
  std::optional<uint32_t> topK;
  std::optional<uint64_t> seed;
  uint64_t maxTokens = 256;
  std::vector<std::string> stops;
};

/// Reads the arguments after the program's name. Accepts --flag=value and
/// --flag value.
Result<Options> parseOptions(std::span<char *const> arguments);

/// What --help prints.
extern const char *const helpText;

} // namespace tenon::rt

#endif // TENON_RUNTIME_MAIN_OPTIONS_H
