//===- fuzz_plan.cpp - an artifact's plan from any bytes ----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/Arena.h"
#include "runtime/Frame.h"
#include "runtime/Npz.h"
#include "runtime/Plan.h"
#include "runtime/device/Device.h"
#include "runtime/format/DType.h"

#include <cstring>

using namespace tenon::rt;

namespace {

/// A device that has memory and never runs anything.
class Shelf final : public Device {
public:
  explicit Shelf(size_t segments) : arenas(segments) {}
  std::string name() const override { return ""; }
  unsigned workers() const override { return 0; }
  char *weights() override { return nullptr; }
  Result<char *> reserveArena(uint32_t segment, uint64_t bytes) override {
    if (Status status = arenas[segment].reserve(bytes); !status.ok())
      return status;
    return arenas[segment].data();
  }
  Result<char *> placeInput(size_t, const void *, uint64_t) override {
    return nullptr;
  }
  Result<char *> placeOutput(size_t, void *, uint64_t) override {
    return nullptr;
  }
  Result<char *> reserveState(uint64_t) override { return nullptr; }
  Status put(char *, const void *, uint64_t) override { return {}; }
  Status run(const Frame &, uint32_t) override { return {}; }
  Status fetch(void *, const char *, uint64_t) override { return {}; }
  Status finish() override { return {}; }
  void enableProfile() override {}
  void beginRun() override {}
  std::span<const LaunchTime> profile() const override { return {}; }

private:
  std::vector<Arena> arenas;
};

} // namespace

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
    Shelf shelf(plan->segments().size());
    Frame frame(*plan, shelf);
    frame.setSymbols(symbols, 0);
    for (uint32_t s = 0; small && s < plan->segments().size(); ++s) {
      if (!frame.prepareSizes(s).ok())
        break;
      frame.preparePointers(s);
    }
  }
  return 0;
}
