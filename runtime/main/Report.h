//===- Report.h - what the artifact's commands print --------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_MAIN_REPORT_H
#define TENON_RUNTIME_MAIN_REPORT_H

#include "runtime/Session.h"
#include "runtime/support/Sizes.h"

#include <string>

namespace tenon::rt {

/// What --info shows beyond the plan.
struct ArtifactFacts {
  uint64_t fileBytes;
  std::span<const tn_form> forms;
  const tn_form *chosen;  ///< null when none runs here
  std::string gpus;       ///< "sm_80, sm_90a": those there is code for
  uint64_t textBytes = 0; ///< of the tokenizer's table, if there is one
};

/// For people, and as one JSON object.
std::string infoText(const Plan &plan, const ArtifactFacts &facts);
std::string infoJson(const Plan &plan, const ArtifactFacts &facts);

/// Times of repeated runs, in milliseconds.
struct BenchResult {
  std::vector<double> times;
  int64_t flops = 0, bytes = 0, peakBytes = 0;
  unsigned threads = 1;
  std::string form;   ///< of the CPU; empty on a GPU
  std::string device; ///< for people
};
std::string benchText(BenchResult result);
std::string benchJson(BenchResult result);

/// `text` as a JSON string, with its quotes.
std::string jsonString(const std::string &text);
} // namespace tenon::rt

#endif // TENON_RUNTIME_MAIN_REPORT_H
