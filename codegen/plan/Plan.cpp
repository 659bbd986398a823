//===- Plan.cpp - places for buffers, and the peak of memory -------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
/// \file
/// Buffers get places at compile time although sizes are symbolic. They are
/// taken from the largest to the smallest (at a sample point); each goes into a
/// *slot*, at an offset where it provably meets no buffer that is alive at the
/// same time and provably ends within the slot. Where nothing is proved, a slot
/// whose buffers are all dead by then grows to the maximum of both sizes. The
/// arena is the slots one after another.

#include "codegen/Codegen.h"
#include "codegen/plan/Overlay.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace tenon::codegen {

using ir::Dim;
using kernel::Buffer;
using kernel::BufferKind;
using kernel::Launch;
using kernel::Program;

namespace {

Dim align64(Dim bytes) {
  if (Dim::divideExactly(bytes, 64))
    return bytes;
  return Dim::ceilDiv(bytes, 64) * Dim(64);
}

/// The value of \p dim where every symbol is 64, or as near as its range goes.
int64_t sample(const Program &program, Dim dim) {
  auto value = dim.evaluate([&](llvm::StringRef name) {
    int64_t at = 64;
    for (const kernel::Symbol &symbol : program.symbols)
      if (symbol.name == name)
        at = std::clamp(at, symbol.range.low,
                        std::max(symbol.range.low, symbol.range.high));
    return std::optional<int64_t>(at);
  });
  return value.value_or(INT64_MAX);
}

struct Item {
  unsigned buffer;
  Dim bytes;          ///< rounded up to 64
  int64_t size;       ///< bytes at the sample point
  unsigned first, last;
  Dim offset; ///< within its slot

  bool meets(const Item &other) const {
    return first <= other.last && other.first <= last;
  }
  Dim end() const { return offset + bytes; }
};

struct Slot {
  Dim bytes, exact; ///< rounded up to 64, and as it is
  int64_t size;
  std::vector<Item> items;

  bool fits(const Item &item) const {
    if (!(bytes - item.end()).isAtLeast(0))
      return false;
    return llvm::all_of(items, [&](const Item &other) {
      return !item.meets(other) ||
             (other.offset - item.end()).isAtLeast(0) ||
             (item.offset - other.end()).isAtLeast(0);
    });
  }
  /// Finds an offset for \p item: the start, or the end of another buffer.
  bool place(Item &item) {
    item.offset = 0;
    if (fits(item))
      return true;
    for (const Item &other : items) {
      if (!item.meets(other))
        continue;
      item.offset = other.end();
      if (fits(item))
        return true;
    }
    return false;
  }
  bool isFreeFor(const Item &item) const {
    return llvm::none_of(items,
                         [&](const Item &other) { return item.meets(other); });
  }
};

/// The slots of one segment's arena.
class Arena {
public:
  void add(Item item, Dim exact) {
    // The tightest slot first, so that room in big ones stays.
    for (Slot &slot : llvm::reverse(slots))
      if (slot.place(item))
        return slot.items.push_back(item);
    item.offset = 0;
    for (Slot &slot : llvm::reverse(slots)) {
      if (!slot.isFreeFor(item))
        continue;
      slot.bytes = Dim::max(slot.bytes, item.bytes);
      slot.exact = Dim::max(slot.exact, exact);
      return slot.items.push_back(item);
    }
    slots.push_back({item.bytes, exact, item.size, {item}});
  }
  std::vector<Slot> slots;
};

class Planner {
public:
  explicit Planner(Program &program) : p(program) {}
  void run();

private:
  void addScratch();
  std::vector<Item> items();
  void placeSegment(unsigned segment, llvm::ArrayRef<Item> items);
  void sumUp();

  Program &p;
  unsigned nextSlot = 0;
  Dim exactArena; ///< without rounding, for people
};

/// Scratch memory is a buffer that lives for one launch.
void Planner::addScratch() {
  for (const auto &[s, segment] : llvm::enumerate(p.segments)) {
    for (unsigned i = 0; i < segment.numLaunches; ++i) {
      Launch &launch = p.launches[segment.firstLaunch + i];
      if (!launch.scratchBytes)
        continue;
      Buffer buffer;
      buffer.bytes = *launch.scratchBytes;
      buffer.segment = s;
      launch.scratchBuffer = p.buffers.size();
      p.buffers.push_back(buffer);
    }
  }
}

std::vector<Item> Planner::items() {
  std::vector<Lifetime> lifetimes = lifetimesOf(p);
  std::vector<Item> items;
  for (const auto &[i, buffer] : llvm::enumerate(p.buffers)) {
    const Lifetime &life = lifetimes[i];
    if (buffer.kind != BufferKind::Arena || life.first > life.last)
      continue;
    Dim bytes = align64(buffer.bytes);
    items.push_back(
        {unsigned(i), bytes, sample(p, bytes), life.first, life.last, 0});
  }
  llvm::stable_sort(items, [](const Item &a, const Item &b) {
    return a.size > b.size;
  });
  return items;
}

void Planner::placeSegment(unsigned segment, llvm::ArrayRef<Item> items) {
  Arena arena;
  for (const Item &item : items)
    if (p.buffers[item.buffer].segment == segment)
      arena.add(item, p.buffers[item.buffer].bytes);
  Dim base = 0;
  for (const Slot &slot : arena.slots) {
    for (const Item &item : slot.items) {
      p.buffers[item.buffer].slot = nextSlot;
      p.buffers[item.buffer].offset = base + item.offset;
    }
    base = base + slot.bytes;
    exactArena = exactArena + slot.exact;
    ++nextSlot;
  }
  p.segments[segment].arenaBytes = base;
  p.arenaBytes = p.arenaBytes + base;
}

std::string humanBytes(uint64_t bytes) {
  if (bytes < 1000)
    return llvm::formatv("{0} B", bytes);
  if (bytes < 1000 * 1000)
    return llvm::formatv("{0:F1} kB", bytes / 1e3);
  return llvm::formatv("{0:F1} MB", bytes / 1e6);
}

void Planner::sumUp() {
  Dim ports = 0;
  for (const Buffer &buffer : p.buffers)
    if (buffer.kind == BufferKind::Input ||
        buffer.kind == BufferKind::Output || buffer.kind == BufferKind::State)
      ports = ports + buffer.bytes;
  p.peakBytes = Dim(int64_t(p.weightBytes())) + ports + p.arenaBytes;
  std::string text = "weights " + humanBytes(p.weightBytes());
  llvm::raw_string_ostream os(text);
  Dim rest = ports + exactArena;
  if (std::optional<int64_t> constant = rest.constant())
    os << " + " << humanBytes(*constant);
  else
    os << " + " << rest << " B";
  p.peakFormula = text;
}

void Planner::run() {
  overlay(p);
  kernel::dropUnused(p);
  addScratch();
  std::vector<Item> all = items();
  for (unsigned segment = 0; segment < p.segments.size(); ++segment)
    placeSegment(segment, all);
  sumUp();
}

} // namespace

void plan(Program &program) { Planner(program).run(); }

} // namespace tenon::codegen
