//===- Report.cpp - what the artifact's commands print ------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/main/Report.h"

#include "runtime/Cpu.h"
#include "runtime/format/DType.h"

#include <algorithm>

namespace tenon::rt {
namespace {

/// "batch: 1..", "seq: 1..512".
std::string describeSymbol(const Plan &plan, const Symbol &symbol) {
  std::string out = printable(std::string(plan.string(symbol.name)));
  out += format(": %lld..", static_cast<long long>(symbol.low));
  return symbol.high == INT64_MAX ? out : out + std::to_string(symbol.high);
}

template <typename Range, typename Print>
std::string join(const Range &range, const char *separator, Print print) {
  std::string out;
  for (const auto &element : range)
    out += (out.empty() ? "" : separator) + print(element);
  return out;
}

std::string portsText(const Plan &plan, const char *title,
                      std::span<const Port> ports) {
  std::string out;
  for (const Port &port : ports)
    out += format("%-10s %s: %s\n", title,
                  printable(std::string(plan.string(port.name))).c_str(),
                  plan.text(port).c_str());
  return out;
}

std::string portsJson(const Plan &plan, std::span<const Port> ports) {
  return "[" +
         join(ports, ", ",
              [&](const Port &port) {
                auto dims = plan.run(port.shape, port.rank);
                return "{\"name\": " + jsonString(plan.string(port.name)) +
                       ", \"dtype\": \"" + dtypeInfo(port.dtype).name +
                       "\", \"shape\": [" +
                       join(dims, ", ",
                            [&](ExprId id) {
                              return jsonString(plan.text(id));
                            }) +
                       "]}";
              }) +
         "]";
}

double percentile(const std::vector<double> &sorted, double share) {
  if (sorted.empty())
    return 0;
  // Nearest rank.
  size_t rank = size_t(share * double(sorted.size()) + 0.999999);
  return sorted[std::clamp(rank, size_t(1), sorted.size()) - 1];
}

double median(const std::vector<double> &sorted) {
  size_t n = sorted.size();
  if (n == 0)
    return 0;
  return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

/// Work per second at `ms` a run, in units of 10^9.
double giga(int64_t work, double ms) {
  return ms > 0 ? double(work) / ms / 1e6 : 0;
}

} // namespace

std::string jsonString(const std::string &text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      out += '\\';
    if (static_cast<unsigned char>(c) < 0x20)
      out += format("\\u%04x", unsigned(c));
    else
      out += c;
  }
  return out + "\"";
}

std::string infoText(const Plan &plan, const ArtifactFacts &facts) {
  const PlanHeader &head = plan.header();
  std::string out = portsText(plan, "input", plan.inputs()) +
                    portsText(plan, "output", plan.outputs());
  for (const Symbol &symbol : plan.symbols())
    out +=
        format("%-10s %s\n", "dimension", describeSymbol(plan, symbol).c_str());
  out += format("%-10s %s in %zu tensors\n", "weights",
                describeBytes(double(head.weightBytes)).c_str(),
                plan.weights().size());
  out +=
      format("%-10s %s, %s over its weights\n", "artifact",
             describeBytes(double(facts.fileBytes)).c_str(),
             describeBytes(double(facts.fileBytes - head.weightBytes)).c_str());
  if (facts.textBytes != 0)
    out += format("%-10s %s\n", "tokenizer",
                  describeBytes(double(facts.textBytes)).c_str());
  out += format("%-10s %s\n", "memory", plan.string(head.peakFormula));
  out += format("%-10s %zu launches of %u kernels\n", "plan",
                plan.launches().size(), head.numUnits);
  if (!facts.gpus.empty())
    out += format("%-10s %s\n", "gpu code", facts.gpus.c_str());
  for (const tn_form &form : facts.forms)
    out += format("%-10s %s: needs %s%s\n", "cpu form", form.name,
                  featureNames(form.features).c_str(),
                  &form == facts.chosen ? " (used here)" : "");
  out += format("%-10s %s\n", "manifest", plan.string(head.manifest));
  return out;
}

std::string infoJson(const Plan &plan, const ArtifactFacts &facts) {
  const PlanHeader &head = plan.header();
  std::string symbols = join(plan.symbols(), ", ", [&](const Symbol &symbol) {
    std::string high = symbol.high == INT64_MAX ? std::string("null")
                                                : std::to_string(symbol.high);
    return "{\"name\": " + jsonString(plan.string(symbol.name)) +
           ", \"low\": " + std::to_string(symbol.low) + ", \"high\": " + high +
           "}";
  });
  std::string forms = join(facts.forms, ", ", [&](const tn_form &form) {
    return "{\"name\": " + jsonString(form.name) +
           ", \"used\": " + (&form == facts.chosen ? "true" : "false") + "}";
  });
  std::string manifest = plan.string(head.manifest);
  return "{\"inputs\": " + portsJson(plan, plan.inputs()) +
         ", \"outputs\": " + portsJson(plan, plan.outputs()) +
         ", \"dimensions\": [" + symbols +
         "], \"weight_bytes\": " + std::to_string(head.weightBytes) +
         ", \"artifact_bytes\": " + std::to_string(facts.fileBytes) +
         ", \"overhead_bytes\": " +
         std::to_string(facts.fileBytes - head.weightBytes) +
         ", \"tokenizer_bytes\": " + std::to_string(facts.textBytes) +
         ", \"peak_memory\": " + jsonString(plan.string(head.peakFormula)) +
         ", \"launches\": " + std::to_string(plan.launches().size()) +
         ", \"kernels\": " + std::to_string(head.numUnits) +
         ", \"cpu_forms\": [" + forms +
         "], \"gpus\": " + jsonString(facts.gpus) +
         ", \"manifest\": " + (manifest.empty() ? "null" : manifest) + "}\n";
}

std::string benchText(BenchResult result) {
  std::sort(result.times.begin(), result.times.end());
  double mid = median(result.times);
  return format("median %.3f ms, min %.3f ms, p90 %.3f ms, p99 %.3f ms over "
                "%zu runs\n%s, %.1f GFLOP/s, %.1f GB/s\n",
                mid, percentile(result.times, 0), percentile(result.times, 0.9),
                percentile(result.times, 0.99), result.times.size(),
                result.device.c_str(), giga(result.flops, mid),
                giga(result.bytes, mid));
}

std::string benchJson(BenchResult result) {
  std::sort(result.times.begin(), result.times.end());
  double mid = median(result.times), sum = 0;
  for (double time : result.times)
    sum += time;
  return format("{\"median_ms\": %.6f, \"min_ms\": %.6f, \"mean_ms\": %.6f, "
                "\"p90_ms\": %.6f, \"p99_ms\": %.6f, \"max_ms\": %.6f, "
                "\"runs\": %zu, \"threads\": %u, \"cpu\": %s, \"device\": %s, "
                "\"gflops\": "
                "%.3f, \"gbps\": %.3f, \"flops\": %lld, \"bytes\": %lld, "
                "\"peak_bytes\": %lld}\n",
                mid, percentile(result.times, 0),
                result.times.empty() ? 0 : sum / double(result.times.size()),
                percentile(result.times, 0.9), percentile(result.times, 0.99),
                percentile(result.times, 1), result.times.size(),
                result.threads, jsonString(result.form).c_str(),
                jsonString(result.device).c_str(), giga(result.flops, mid),
                giga(result.bytes, mid), static_cast<long long>(result.flops),
                static_cast<long long>(result.bytes),
                static_cast<long long>(result.peakBytes));
}

} // namespace tenon::rt
