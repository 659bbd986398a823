//===- fuzz_plan.cpp - an artifact's plan from any bytes ----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/Frame.h"
#include "runtime/Npz.h"
#include "runtime/Plan.h"
#include "runtime/format/DType.h"

#include <cstring>

using namespace tenon::rt;

/// Loads the bytes as a plan, its checksum made right so that what is behind it
/// is reached, and works out its sizes for a small value of each symbol.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  AlignedBytes copy = allocateAligned(size);
  if (size == 0)
    return 0;
  std::memcpy(copy.get(), data, size);
  if (size >= sizeof(PlanHeader)) {
    auto *header = reinterpret_cast<PlanHeader *>(copy.get());
    std::memcpy(header->magic, planMagic, sizeof(planMagic));
    header->version = planVersion;
    header->headerBytes = sizeof(PlanHeader);
    header->totalBytes = size;
    header->planChecksum = planChecksum({copy.get(), size});
  }
  auto plan = Plan::load({copy.get(), size});
  if (!plan.ok() || plan->exprs().size() > 10000)
    return 0;
  for (const auto &ports : {plan->inputs(), plan->outputs()})
    for (const Port &port : ports)
      (void)plan->text(port);
  // Arenas are only reserved, but let them be small anyway.
  for (int64_t value : {0, 1, 7}) {
    std::vector<int64_t> symbols(plan->symbols().size(), value);
    auto values = evaluateAll(*plan, symbols);
    if (!values.ok())
      continue;
    bool small = true;
    for (const Segment &segment : plan->segments())
      small &= (*values)[segment.arenaBytes] < (1 << 20);
    Frame frame(*plan);
    frame.setSymbols(symbols, 0);
    for (uint32_t s = 0; small && s < plan->segments().size(); ++s) {
      if (!frame.prepareSizes(s).ok())
        break;
      frame.preparePointers(s);
    }
  }
  return 0;
}
