//===- Cpu.cpp - runs launches on a team of threads ----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/Cpu.h"
#include "runtime/Arena.h"
#include "runtime/Fault.h"
#include "runtime/Frame.h"
#include "runtime/device/Device.h"

#include <cstring>
#include <ctime>
#include <link.h>

namespace tenon::rt {
namespace {

constexpr unsigned maxThreads = 1024;

int64_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t(time.tv_sec) * 1000000000 + time.tv_nsec;
}

/// What each thread has of the thread-local memory of the executable or library
/// that `form` is in: the ELF segment PT_TLS.
uint64_t threadLocalBytes(const void *form) {
  struct Search {
    uintptr_t place;
    uint64_t bytes;
  } search = {reinterpret_cast<uintptr_t>(form), 0};
  dl_iterate_phdr(
      [](dl_phdr_info *info, size_t, void *context) {
        auto *search = static_cast<Search *>(context);
        bool here = false;
        uint64_t bytes = 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr) &segment = info->dlpi_phdr[i];
          if (segment.p_type == PT_TLS)
            bytes = segment.p_memsz;
          if (segment.p_type == PT_LOAD &&
              search->place - (info->dlpi_addr + segment.p_vaddr) <
                  segment.p_memsz)
            here = true;
        }
        if (here)
          search->bytes = bytes;
        return int(here);
      },
      &search);
  return search.bytes;
}

void teamBarrier(const tn_args *args) {
  static_cast<Team *>(args->team)->barrier();
}

class CpuDevice final : public Device {
public:
  CpuDevice(const Model &model, std::unique_ptr<Team> team)
      : model(model), plan(model.plan()), team(std::move(team)),
        arenas(plan.segments().size()), faults(this->team->size()) {}

  std::string name() const override {
    return format("%s, %u threads", model.form()->name, team->size());
  }
  unsigned workers() const override { return team->size(); }
  uint64_t workerBytes() const override {
    return threadLocalBytes(model.form());
  }

  char *weights() override {
    return const_cast<char *>(
        reinterpret_cast<const char *>(model.weights().data()));
  }
  Result<char *> reserveArena(uint32_t segment, uint64_t bytes) override {
    if (Status status = arenas[segment].reserve(bytes); !status.ok())
      return status;
    return arenas[segment].data();
  }
  // Units do not write to inputs; the ABI has one kind of view.
  Result<char *> placeInput(size_t, const void *data, uint64_t) override {
    return const_cast<char *>(static_cast<const char *>(data));
  }
  Result<char *> placeOutput(size_t, void *data, uint64_t) override {
    return static_cast<char *>(data);
  }

  Result<char *> reserveState(uint64_t bytes) override {
    if (Status status = states.reserve(bytes); !status.ok())
      return status;
    return states.data();
  }
  Status put(char *to, const void *from, uint64_t bytes) override {
    std::memcpy(to, from, bytes);
    return {};
  }

  Status run(const Frame &itsFrame, uint32_t segment) override {
    frame = &itsFrame;
    current = &plan.segments()[segment];
    if (profiling)
      times.resize(times.size() + size_t(current->numLaunches) * workers());
    team->run(walk, this);
    return faults.status(plan, *frame);
  }
  Status fetch(void *to, const char *from, uint64_t bytes) override {
    if (bytes != 0)
      std::memcpy(to, from, bytes);
    return {};
  }
  Status finish() override { return {}; }

  void enableProfile() override { profiling = true; }
  void beginRun() override {
    times.clear();
    faults.clear();
    began = now();
  }
  std::span<const LaunchTime> profile() const override { return times; }

private:
  static void walk(void *context, unsigned thread);
  void launch(size_t index, unsigned thread);

  const Model &model;
  const Plan &plan;
  std::unique_ptr<Team> team;
  std::vector<Arena> arenas;
  Arena states;
  const Frame *frame = nullptr;
  const Segment *current = nullptr; ///< what the team walks
  bool profiling = false;
  int64_t began = 0;
  std::vector<LaunchTime> times; ///< launch-major
  Faults faults;
};

void CpuDevice::walk(void *context, unsigned thread) {
  CpuDevice &device = *static_cast<CpuDevice *>(context);
  const Segment &run = *device.current;
  for (uint32_t l = 0; l < run.numLaunches; ++l) {
    size_t index = run.firstLaunch + l;
    if (device.profiling) {
      int64_t begin = now();
      device.launch(index, thread);
      device.times[index * device.workers() + thread] = {
          uint32_t(index), thread, begin - device.began, now() - device.began};
    } else {
      device.launch(index, thread);
    }
    if (l + 1 == run.numLaunches)
      return; // after the last, Team::run has a barrier
    device.team->barrier();
    if (device.faults.endRun(index))
      return;
  }
}

void CpuDevice::launch(size_t index, unsigned thread) {
  const Launch &launch = plan.launches()[index];
  const tn_view *views = frame->viewsOf(index);
  if (launch.kind == LaunchKind::Kernel) {
    tn_args args = {views,
                    frame->paramsOf(index),
                    frame->scratchOf(index),
                    teamBarrier,
                    team.get(),
                    int32_t(thread),
                    int32_t(workers()),
                    faults.of(thread)};
    model.form()->units[launch.unit](&args);
    faults.note(thread, index);
  } else if (launch.kind == LaunchKind::WriteExprs && thread == 0) {
    const View &view = plan.views()[plan.run(launch.views, 1)[0]];
    int64_t room = 1;
    for (size_t d = 0; d < view.rank; ++d)
      room *= views[0].shape[d];
    size_t count = std::min(size_t(room), size_t(launch.numParams));
    if (count != 0)
      std::memcpy(views[0].data, frame->paramsOf(index),
                  count * sizeof(int64_t));
  }
}

} // namespace

Result<std::unique_ptr<Device>> createCpuDevice(const Model &model,
                                                unsigned threads) {
  if (threads == 0)
    threads = defaultThreads();
  if (threads > maxThreads)
    return TN_ERROR("%u threads asked for, at most %u are possible", threads,
                    maxThreads);
  if (!model.form())
    return TN_ERROR("this artifact has no code for CPUs; it is compiled for %s",
                    "GPUs (--device=cuda or --device=emulated)");
  auto team = Team::create(threads);
  if (!team.ok())
    return team.status();
  return std::unique_ptr<Device>(
      std::make_unique<CpuDevice>(model, std::move(*team)));
}

} // namespace tenon::rt
