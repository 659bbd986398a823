//===- ExplainTable.cpp - what kernels cost, as text ----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/tenon/ExplainTable.h"

#include "ir/support/Diag.h"
#include "runtime/support/Sizes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;
using namespace tenon;
using namespace tenon::tools;

namespace {

constexpr GpuPeaks knownGpus[] = {
#define TN_DEVICE(name, text, arch, f32, tf32, half, bandwidth, memory)        \
  {#name, text, arch, f32, tf32, half, bandwidth, memory},
#include "codegen/target/Devices.def"
};

/// "12.3 M".
std::string scaled(double value) {
  static constexpr const char *units[] = {"", " k", " M", " G", " T"};
  unsigned unit = 0;
  for (; value >= 999.5 && unit + 1 < std::size(units); ++unit)
    value /= 1000;
  return unit == 0 ? formatv("{0:F0}", value).str()
                   : formatv("{0:F1}{1}", value, units[unit]).str();
}

/// "12.3 us".
std::string timeText(double seconds) {
  static constexpr const char *units[] = {"ns", "us", "ms"};
  unsigned unit = 0;
  for (seconds *= 1e9; seconds >= 999.95 && unit + 1 < std::size(units); ++unit)
    seconds /= 1000;
  return formatv("{0:F1} {1}", seconds, units[unit]);
}

/// The first of the nodes that a launch stands for, and how many more.
std::string firstNode(StringRef nodes) {
  auto [first, rest] = nodes.split(", ");
  if (rest.empty())
    return first.str();
  return formatv("{0} and {1} more", first, rest.count(", ") + 1);
}

/// Launches of one kernel, added up.
struct Group {
  unsigned unit = 0, launches = 0;
  std::string kernel, node; ///< of its dearest launch
  double flops = 0, bytes = 0, dearest = -1;
  std::vector<double> seconds, computeSeconds;

  void add(const Work &item, ArrayRef<const GpuPeaks *> gpus) {
    seconds.resize(gpus.size());
    computeSeconds.resize(gpus.size());
    ++launches;
    flops += item.flops;
    bytes += item.bytes;
    for (auto [i, gpu] : enumerate(gpus)) {
      seconds[i] += item.seconds(*gpu);
      if (item.computeSeconds(*gpu) > item.memorySeconds(*gpu))
        computeSeconds[i] += item.seconds(*gpu);
    }
    if (double cost = gpus.empty() ? 0 : item.seconds(*gpus[0]);
        cost > dearest) {
      dearest = cost;
      node = firstNode(item.node);
    }
  }
};

/// The dearest first.
std::vector<Group> byKernel(ArrayRef<Work> work,
                            ArrayRef<const GpuPeaks *> gpus, bool eachLaunch) {
  std::vector<Group> groups;
  std::map<unsigned, size_t> known;
  for (const Work &item : work) {
    auto [at, fresh] = known.try_emplace(item.unit, groups.size());
    if (fresh || eachLaunch) {
      at->second = groups.size();
      groups.emplace_back();
      groups.back().unit = item.unit;
      groups.back().kernel = item.kernel;
    }
    groups[at->second].add(item, gpus);
  }
  if (!eachLaunch)
    stable_sort(groups, [](const Group &a, const Group &b) {
      return a.seconds[0] > b.seconds[0];
    });
  return groups;
}

/// A table whose columns are as wide as their cells; the first and the last
/// are at their left.
class Text {
public:
  void row(std::vector<std::string> cells) { rows.push_back(std::move(cells)); }

  void print(raw_ostream &os) const {
    std::vector<size_t> widths;
    for (const auto &cells : rows) {
      widths.resize(std::max(widths.size(), cells.size()));
      for (auto [i, cell] : enumerate(cells))
        widths[i] = std::max(widths[i], cell.size());
    }
    for (const auto &cells : rows) {
      std::string line;
      for (auto [i, cell] : enumerate(cells)) {
        bool left = i == 0 || i + 1 == widths.size();
        line += i == 0 ? "" : "  ";
        std::string gap(widths[i] - cell.size(), ' ');
        line += left ? cell + gap : gap + cell;
      }
      os << StringRef(line).rtrim() << '\n';
    }
  }

private:
  std::vector<std::vector<std::string>> rows;
};

} // namespace

Expected<std::vector<const GpuPeaks *>> tools::parseGpus(StringRef list) {
  SmallVector<StringRef> names;
  list.split(names, ',');
  std::vector<const GpuPeaks *> chosen;
  for (StringRef name : names) {
    const GpuPeaks *found = find_if(knownGpus, [&](const GpuPeaks &gpu) {
      return gpu.name == name.trim();
    });
    if (found == std::end(knownGpus)) {
      std::string known;
      for (const GpuPeaks &gpu : knownGpus)
        known += (known.empty() ? "" : ", ") + gpu.name.str();
      return userError("--device: no device '{0}'; there are {1}", name.trim(),
                       known);
    }
    chosen.push_back(found);
  }
  return chosen;
}

double Work::computeSeconds(const GpuPeaks &gpu) const {
  // Tensor cores multiply bytes twice as fast as halves.
  double rate = units == Units::Byte   ? 2 * gpu.half
                : units == Units::Half ? gpu.half
                : units == Units::Tf32 ? gpu.tf32
                                       : gpu.f32;
  return flops / (rate * 1e12);
}

double Work::memorySeconds(const GpuPeaks &gpu) const {
  return bytes / (gpu.bandwidth * 1e9);
}

double Work::seconds(const GpuPeaks &gpu) const {
  return std::max(computeSeconds(gpu), memorySeconds(gpu));
}

void tools::printLeastCosts(ArrayRef<Work> work,
                            ArrayRef<const GpuPeaks *> gpus, bool eachLaunch,
                            raw_ostream &os) {
  Text text;
  std::vector<std::string> head = {"kernel"};
  if (!eachLaunch)
    head.push_back("launches");
  head.insert(head.end(), {"FLOP", "bytes", "FLOP/byte"});
  for (const GpuPeaks *gpu : gpus)
    head.insert(head.end(), {gpu->name.str() + " at least", "limit"});
  head.push_back(eachLaunch ? "node" : "dearest in");
  text.row(head);
  Group all;
  auto add = [&](const Group &group, StringRef last) {
    std::vector<std::string> cells = {group.kernel};
    if (!eachLaunch)
      cells.push_back(std::to_string(group.launches));
    cells.insert(
        cells.end(),
        {scaled(group.flops), scaled(group.bytes),
         formatv("{0:F1}", group.bytes > 0 ? group.flops / group.bytes : 0.0)});
    for (size_t i = 0; i < group.seconds.size(); ++i)
      cells.insert(cells.end(),
                   {timeText(group.seconds[i]),
                    2 * group.computeSeconds[i] > group.seconds[i] ? "compute"
                                                                   : "memory"});
    cells.push_back(last.str());
    text.row(cells);
  };
  for (const Work &item : work)
    all.add(item, gpus);
  for (const Group &group : byKernel(work, gpus, eachLaunch))
    add(group, group.node);
  all.kernel = "all";
  if (!work.empty())
    add(all, formatv("{0} launches", work.size()).str());
  text.print(os);
}

void tools::printCounts(ArrayRef<Work> work,
                        const std::map<unsigned, Counted> &counted,
                        const std::map<unsigned, Taken> &taken,
                        const GpuPeaks &gpu, raw_ostream &os) {
  Text text;
  text.row({"kernel", "needed", "moved", "moved/needed", "conflicts",
            "registers", "shared", "warps", "stack", "dearest in"});
  double needed = 0, moved = 0;
  auto ratio = [](double moved, double needed) {
    return needed > 0 ? formatv("{0:F2}", moved / needed).str()
                      : std::string("-");
  };
  for (const Group &group : byKernel(work, &gpu, /*eachLaunch=*/false)) {
    std::vector<std::string> cells = {group.kernel, scaled(group.bytes)};
    needed += group.bytes;
    if (auto at = counted.find(group.unit); at != counted.end()) {
      const Counted &c = at->second;
      moved += c.movedBytes;
      cells.insert(cells.end(),
                   {scaled(c.movedBytes), ratio(c.movedBytes, group.bytes),
                    c.wavefronts > 0
                        ? formatv("{0:P0}", c.conflicts / c.wavefronts).str()
                        : std::string("-")});
    } else {
      cells.insert(cells.end(), {"-", "-", "-"});
    }
    if (auto at = taken.find(group.unit); at != taken.end()) {
      const Taken &t = at->second;
      cells.insert(cells.end(),
                   {std::to_string(t.registers),
                    rt::describeBytes(t.sharedBytes),
                    formatv("{0}/{1}", t.occupancy.warps, t.occupancy.most),
                    rt::describeBytes(t.stackBytes)});
    } else {
      cells.insert(cells.end(), {"-", "-", "-", "-"});
    }
    cells.push_back(group.node);
    text.row(cells);
  }
  if (!counted.empty())
    text.row({"all", scaled(needed), scaled(moved), ratio(moved, needed)});
  text.print(os);
}

void tools::printLegend(bool counts, raw_ostream &os) {
  os << "\nat least: the greater of FLOP at the GPU's published peak and bytes "
        "at its\n  bandwidth; bytes, needed: each operand read once, each "
        "result written once\n";
  if (!counts)
    return;
  os << "moved: 32 bytes for each sector of global memory that a load or store "
        "of a warp\n  touched, counted by the emulator; what several blocks "
        "read is counted for each,\n  though a GPU's cache may have it\n"
        "conflicts: of the turns that shared memory took, those that another "
        "layout saves\n"
        "registers, stack: of a thread (spills are on the stack); shared: of a "
        "block;\nwarps: that fit a multiprocessor at once, of those that it "
        "holds at most\n"
        "the number behind a kernel's name is that of its unit: gemm 7 is "
        "tn_unit_7 in\n  reports and sources\n";
}

void tools::printGpu(const GpuPeaks &gpu, std::optional<double> needed,
                     raw_ostream &os) {
  os << gpu.name << ": " << gpu.text
     << format(": %g TFLOP/s of halves, %g of tf32, %g of f32;\n  %g GB/s, so "
               "%.0f FLOP of halves take as long as one byte; %g GB of memory",
               gpu.half, gpu.tf32, gpu.f32, gpu.bandwidth,
               gpu.half * 1e3 / gpu.bandwidth, gpu.memory);
  if (needed)
    os << formatv(", of which {0} are needed{1}", rt::describeBytes(*needed),
                  *needed <= gpu.memory * 1e9 ? "" : ": it does not fit");
  os << '\n';
}
