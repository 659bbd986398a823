//===- Counters.cpp - what kernels did, added up -------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/emulator/check/Counters.h"

#include "runtime/support/Status.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

using namespace tenon;
using namespace tenon::emu;

const char *emu::nameOf(OpClass kind) {
  static constexpr const char *names[] = {
      "integer",      "float",       "half",         "double",
      "convert",      "move",        "branch",       "global_load",
      "global_store", "shared_load", "shared_store", "local",
      "constant",     "atomic",      "warp",         "barrier",
      "async_copy",   "tensor",      "other"};
  return names[static_cast<size_t>(kind)];
}

namespace {

void addTo(OpStats &to, const OpStats &from) {
  to.count += from.count;
  to.lanes += from.lanes;
  to.bytes += from.bytes;
  to.pieces += from.pieces;
  to.ideal += from.ideal;
}

bool isShared(OpClass kind, AddressSpace space) {
  return kind == OpClass::SharedLoad || kind == OpClass::SharedStore ||
         (kind == OpClass::Atomic && space == AddressSpace::Shared);
}
bool isGlobal(OpClass kind, AddressSpace space) {
  return kind == OpClass::GlobalLoad || kind == OpClass::GlobalStore ||
         kind == OpClass::AsyncCopy ||
         (kind == OpClass::Atomic && space != AddressSpace::Shared);
}

void field(std::string &out, const char *name, uint64_t value,
           bool last = false) {
  out += rt::format("\"%s\": %" PRIu64 "%s", name, value, last ? "" : ", ");
}

/// A string of JSON; names come from the PTX text.
std::string quoted(const std::string &text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
  }
  return out + "\"";
}

} // namespace

Counters &Counters::get() {
  static Counters *counters = new Counters;
  return *counters;
}

void Counters::clear() {
  std::lock_guard<std::mutex> lock(mutex);
  kernels.clear();
  finding.clear();
}

void Counters::note(const Findings &findings) {
  std::lock_guard<std::mutex> lock(mutex);
  finding =
      rt::format("{\"kind\": \"%s\", \"text\": ", nameOf(findings.fault())) +
      quoted(findings.text()) + "}";
}

void Counters::addOp(Kernel &kernel, const Op &op, const Where &where,
                     const OpStats &stats) {
  if (op.kind == OpClass::Count || stats.count == 0)
    return;
  kernel.byClass[static_cast<size_t>(op.kind)] += stats.count;
  if (op.kind == OpClass::Tensor) {
    addTo(kernel.tensor, stats);
    return;
  }
  bool shared = isShared(op.kind, op.space),
       global = isGlobal(op.kind, op.space);
  if (!shared && !global)
    return;
  addTo(shared                            ? kernel.shared
        : op.kind == OpClass::GlobalStore ? kernel.globalStores
                                          : kernel.global,
        stats);
  Line &line = kernel.lines[{where.line, std::string(where.text)}];
  line.text = where.text;
  line.line = where.line;
  line.sourceLine = where.sourceLine;
  line.kind = op.kind;
  addTo(line.stats, stats);
}

void Counters::add(const Launch &launch) {
  std::lock_guard<std::mutex> lock(mutex);
  Kernel &kernel = kernels[launch.kernel->name];
  ++kernel.launches;
  kernel.blocks += launch.grid.count();
  kernel.threads += launch.grid.count() * launch.block.count();
  kernel.registerBytes = launch.kernel->registerBytes;
  kernel.localBytes = launch.kernel->localBytes;
  kernel.sharedBytes = launch.sharedEnd - sharedStart;
  auto addCode = [&](const Code &code) {
    for (size_t i = 0; i != code.ops.size(); ++i)
      addOp(kernel, code.ops[i], code.where[i], launch.stats[code.ops[i].id]);
  };
  if (!launch.image->hasCalls)
    return addCode(*launch.kernel);
  for (const auto &code : launch.image->codes)
    addCode(*code);
}

void Counters::print(std::string &out, const std::string &name,
                     const Kernel &kernel) {
  out += "    {\"name\": " + quoted(name) + ", ";
  field(out, "launches", kernel.launches);
  field(out, "blocks", kernel.blocks);
  field(out, "threads", kernel.threads);
  field(out, "shared_bytes_per_block", kernel.sharedBytes);
  field(out, "local_bytes_per_thread", kernel.localBytes);
  out += "\n     \"instructions\": {";
  bool first = true;
  for (size_t i = 0; i != std::size(kernel.byClass); ++i) {
    if (kernel.byClass[i] == 0)
      continue;
    out += rt::format("%s\"%s\": %" PRIu64, first ? "" : ", ",
                      nameOf(static_cast<OpClass>(i)), kernel.byClass[i]);
    first = false;
  }
  out += "},\n     \"global\": {";
  field(out, "load_bytes", kernel.global.bytes);
  field(out, "load_sectors", kernel.global.pieces);
  field(out, "load_sectors_ideal", kernel.global.ideal);
  field(out, "store_bytes", kernel.globalStores.bytes);
  field(out, "store_sectors", kernel.globalStores.pieces);
  field(out, "store_sectors_ideal", kernel.globalStores.ideal, true);
  out += "},\n     \"shared\": {";
  field(out, "bytes", kernel.shared.bytes);
  field(out, "wavefronts", kernel.shared.pieces);
  field(out, "wavefronts_ideal", kernel.shared.ideal);
  field(out, "bank_conflicts", kernel.shared.pieces - kernel.shared.ideal,
        true);
  out += "},\n     \"tensor\": {";
  field(out, "instructions", kernel.tensor.count);
  field(out, "multiply_adds", kernel.tensor.bytes, true);
  out += "},\n     \"accesses\": [";
  first = true;
  for (const auto &[key, line] : kernel.lines) {
    out += first ? "\n      {" : ",\n      {";
    first = false;
    field(out, "line", line.line);
    field(out, "source_line", line.sourceLine);
    out += "\"text\": " + quoted(line.text) + ", ";
    field(out, "count", line.stats.count);
    field(out, "bytes", line.stats.bytes);
    bool shared =
        line.kind == OpClass::SharedLoad || line.kind == OpClass::SharedStore;
    field(out, shared ? "wavefronts" : "sectors", line.stats.pieces);
    field(out, "ideal", line.stats.ideal, true);
    out += "}";
  }
  out += "]}";
}

std::string Counters::json() const {
  std::lock_guard<std::mutex> lock(mutex);
  std::string out = "{\"finding\": " + (finding.empty() ? "null" : finding) +
                    ",\n\"kernels\": [\n";
  bool first = true;
  for (const auto &[name, kernel] : kernels) {
    if (!first)
      out += ",\n";
    first = false;
    print(out, name, kernel);
  }
  return out + "\n]}\n";
}

bool Counters::writeReport() const {
  const char *path = std::getenv("TENON_EMULATOR_REPORT");
  if (!path || !*path)
    return true;
  std::FILE *file = std::fopen(path, "w");
  if (!file)
    return false;
  std::string text = json();
  bool good = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  return std::fclose(file) == 0 && good;
}
