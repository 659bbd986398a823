//===- Profile.cpp - where the time of a run went ------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/main/Profile.h"

#include "runtime/main/Bandwidth.h"
#include "runtime/main/Peaks.h"
#include "runtime/main/Report.h"

#include <algorithm>
#include <map>

namespace tenon::rt {
namespace {

/// The rates that a profile is held against; 0: not known.
struct Limits {
  Peaks peaks;
  double bandwidth = 0;
};

/// What one kernel's launches did.
struct KernelRow {
  std::string name;
  LaunchCost cost;
};

std::vector<KernelRow> kernelRows(const Session &session) {
  const Plan &plan = session.model().plan();
  std::map<std::string, LaunchCost> costs;
  for (size_t i = 0; i < plan.launches().size(); ++i)
    costs[plan.string(plan.launches()[i].kernel)].add(costOf(session, i));
  std::vector<KernelRow> rows;
  for (const auto &[name, cost] : costs)
    rows.push_back({name, cost});
  std::stable_sort(rows.begin(), rows.end(),
                   [](const KernelRow &a, const KernelRow &b) {
                     return a.cost.milliseconds > b.cost.milliseconds;
                   });
  return rows;
}

/// "726.1" and, where the limit is known, "406 %".
std::string rate(double work, double milliseconds, double limit) {
  double perSecond = milliseconds > 0 ? work / milliseconds * 1e3 : 0;
  std::string share =
      limit > 0 ? format("%.0f %%", 100 * perSecond / limit) : "";
  return format("%9.1f %7s", perSecond * 1e-9, share.c_str());
}

std::string row(const KernelRow &row, double all, const Limits &limits) {
  const LaunchCost &cost = row.cost;
  return format(
      "%-22s %8zu %9.3f ms %5.1f %% %s %s\n", row.name.c_str(), cost.launches,
      cost.milliseconds, all > 0 ? 100 * cost.milliseconds / all : 0,
      rate(double(cost.flops), cost.milliseconds, limits.peaks.fma).c_str(),
      rate(double(cost.bytes), cost.milliseconds, limits.bandwidth).c_str());
}

std::string limitsText(const Limits &limits, unsigned threads) {
  if (limits.peaks.fma == 0)
    return "";
  std::string out =
      format("this machine, %u threads: %.0f GFLOP/s of f32 multiply-adds",
             threads, limits.peaks.fma * 1e-9);
  if (limits.peaks.bf16 > 0)
    out += format(", on tiles %.0f of bf16 and %.0f of int8",
                  limits.peaks.bf16 * 1e-9, limits.peaks.bytes * 1e-9);
  return out +
         format("; reads the weights at %.1f GB/s\n", limits.bandwidth * 1e-9);
}

/// The launches that took longest.
std::string slowest(const Session &session) {
  constexpr size_t most = 5;
  const Plan &plan = session.model().plan();
  std::vector<std::pair<double, size_t>> times;
  for (size_t i = 0; i < plan.launches().size(); ++i)
    times.push_back({-costOf(session, i).milliseconds, i});
  std::sort(times.begin(), times.end());
  times.resize(std::min(times.size(), most));
  std::string out = "the slowest launches:\n";
  for (auto [time, i] : times)
    out += format("%10.3f ms  %-22s %s\n", -time,
                  plan.string(plan.launches()[i].kernel),
                  printable(plan.string(plan.launches()[i].location)).c_str());
  return out;
}

} // namespace

void LaunchCost::add(const LaunchCost &other) {
  launches += other.launches;
  flops += other.flops;
  bytes += other.bytes;
  milliseconds += other.milliseconds;
}

LaunchCost costOf(const Session &session, size_t launch) {
  const Launch &one = session.model().plan().launches()[launch];
  auto value = [&](ExprId id) { return id == none ? 0 : session.values()[id]; };
  LaunchCost cost = {1, value(one.flops), value(one.bytes), 0};
  size_t threads = session.threads();
  auto times = session.profile();
  if (times.size() < (launch + 1) * threads)
    return cost;
  int64_t begin = INT64_MAX, end = 0;
  for (const LaunchTime &time : times.subspan(launch * threads, threads)) {
    begin = std::min(begin, time.begin);
    end = std::max(end, time.end);
  }
  cost.milliseconds = double(end - begin) / 1e6;
  return cost;
}

std::string profileText(const Session &session, Bytes weights) {
  Limits limits;
  if (session.model().form())
    limits = {measurePeaks(session.threads()),
              readBandwidth(weights, session.threads())};
  std::vector<KernelRow> rows = kernelRows(session);
  KernelRow all = {"all", {}};
  for (const KernelRow &kernel : rows)
    all.cost.add(kernel.cost);
  std::string out =
      format("%-22s %8s %12s %7s %9s %7s %9s %7s\n", "kernel", "launches",
             "time", "", "GFLOP/s", "of FMA", "GB/s", "of read");
  for (const KernelRow &kernel : rows)
    out += row(kernel, all.cost.milliseconds, limits);
  out += row(all, all.cost.milliseconds, limits);
  return out + limitsText(limits, session.threads()) + slowest(session);
}

std::string traceJson(const Session &session) {
  const Plan &plan = session.model().plan();
  std::string out = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n";
  for (unsigned t = 0; t < session.threads(); ++t)
    out += format("{\"name\": \"thread_name\", \"ph\": \"M\", \"pid\": 1, "
                  "\"tid\": %u, \"args\": {\"name\": \"thread %u\"}},\n",
                  t + 1, t);
  for (const LaunchTime &time : session.profile()) {
    const Launch &launch = plan.launches()[time.launch];
    LaunchCost cost = costOf(session, time.launch);
    out +=
        format("{\"name\": %s, \"cat\": %s, \"ph\": \"X\", \"ts\": %.3f, "
               "\"dur\": %.3f, \"pid\": 1, \"tid\": %u, \"args\": "
               "{\"kernel\": %s, \"launch\": %u, \"flops\": %lld, "
               "\"bytes\": %lld}},\n",
               jsonString(plan.string(launch.location)).c_str(),
               jsonString(plan.string(launch.kernel)).c_str(),
               double(time.begin) / 1e3, double(time.end - time.begin) / 1e3,
               time.thread + 1, jsonString(plan.string(launch.kernel)).c_str(),
               time.launch, static_cast<long long>(cost.flops),
               static_cast<long long>(cost.bytes));
  }
  // JSON has no comma before the end; this event closes the list.
  return out + "{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 1, "
               "\"args\": {\"name\": \"tenon\"}}\n]}\n";
}

} // namespace tenon::rt
