//===- Wgmma.cpp - matrix instructions of a warpgroup ---------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
/// \file
/// The product is there at once, but what it reads of shared memory is read by
/// the asynchronous warp (SharedShadow) until its group is waited for. Uses of
/// registers before that are found when the code is loaded (WgmmaCheck.cpp).

#include "runtime/emulator/tensor/Wgmma.h"
#include "runtime/emulator/exec/Decoder.h"
#include "runtime/emulator/exec/Lanes.h"
#include "runtime/emulator/exec/WarpShared.h"
#include "runtime/support/Status.h"

#include <algorithm>
#include <cstdio>

using namespace tenon;
using namespace tenon::emu;
using ptx::Operand;
using ptx::Type;
using tensor::Element;

namespace {

struct Form {
  explicit Form(const tensor::Wgmma &wgmma) : wgmma(wgmma) {}
  tensor::Wgmma wgmma;
  uint32_t scaleFlip = 0;
};

// Op: a is the descriptor of A, unless A is in registers; b that of B; c the
// predicate that keeps D; `more` the registers of D, then of A.
void multiply(Warp &warp, const Op &op, uint32_t mask) {
  if (!needsWholeWarp(warp, op, mask))
    return;
  const Form &form = *static_cast<const Form *>(warp.code->objects[op.extra]);
  const tensor::Wgmma &wgmma = form.wgmma;
  const Ref *refs = &warp.code->refs[op.more];
  uint32_t *registers[128 + 4];
  unsigned d = wgmma.registersD(), all = d + wgmma.registersA();
  for (unsigned i = 0; i != all; ++i)
    registers[i] = lanes<uint32_t>(warp, refs[i]);
  bool inRegisters = wgmma.registersA() != 0;
  uint64_t a = inRegisters ? 0 : lanes<uint64_t>(warp, op.a)[0];
  uint64_t b = lanes<uint64_t>(warp, op.b)[0];
  bool keepsD = (predicate(warp, op.c) ^ form.scaleFlip) & 1;
  warp.stats[op.id].bytes += wgmma.workPerWarp();
  // Descriptors hold addresses relative to the block.
  WarpShared memory(warp, op, *warp.block, 0);
  wgmma.run(warp.index % 4, registers, inRegisters ? registers + d : nullptr, a,
            b, keepsD, memory);
}

Warpgroup &groupOf(Warp &warp) {
  return warp.block->warpgroups[warp.index / 4];
}

void commitGroup(Warp &warp, const Op &op, uint32_t mask) {
  if (!needsWholeWarp(warp, op, mask))
    return;
  Warpgroup &group = groupOf(warp);
  uint64_t at = warp.wgmmaCommitted++ - group.first;
  if (at >= group.groups.size())
    group.groups.resize(at + 1);
  if (warp.launch->checks.races)
    warp.block->shadow.releaseAsync(group.groups[at]);
}

/// Calls see(warp) for those of a warpgroup that still run.
template <typename See> void forWarpgroup(Warp &warp, See &&see) {
  std::vector<Warp> &warps = warp.block->warps;
  unsigned first = warp.index / 4 * 4;
  for (unsigned i = first; i != warps.size() && i != first + 4; ++i)
    if (warps[i].state != WarpState::Done)
      see(warps[i]);
}

/// One warp of the four that has waited may tell others that the operands are
/// free, so it waits until the other three have committed the same groups.
void waitGroup(Warp &warp, const Op &op, uint32_t mask) {
  if (!needsWholeWarp(warp, op, mask))
    return;
  uint64_t committed = warp.wgmmaCommitted;
  uint64_t wanted = committed > op.extra ? committed - op.extra : 0;
  if (wanted <= warp.wgmmaWaited)
    return;
  bool complete = true;
  forWarpgroup(warp, [&](const Warp &other) {
    complete &= other.wgmmaCommitted >= wanted;
  });
  if (!complete) { // again, when the others have had their turn
    warp.pc = &op;
    warp.waitsAt = &op;
    warp.yielded = true;
    return;
  }
  Warpgroup &group = groupOf(warp);
  for (uint64_t i = warp.wgmmaWaited; i != wanted; ++i)
    warp.block->shadow.acquireFrom(warp.index, group.groups[i - group.first]);
  warp.wgmmaWaited = wanted;
  uint64_t least = wanted;
  forWarpgroup(warp, [&](const Warp &other) {
    least = std::min(least, other.wgmmaWaited);
  });
  for (; group.first < least; ++group.first)
    group.groups.pop_front();
}

void fence(Warp &warp, const Op &op, uint32_t mask) {
  needsWholeWarp(warp, op, mask);
}

// Rules.

bool takeShape(Decoder &d, tensor::WgmmaOp &op) {
  std::string text(d.peek());
  unsigned n, k;
  char rest;
  if (std::sscanf(text.c_str(), "m64n%3uk%3u%c", &n, &k, &rest) != 2)
    return false;
  op.n = static_cast<uint16_t>(n);
  op.k = static_cast<uint16_t>(k);
  d.skip();
  return true;
}

std::optional<Element> takeElement(Decoder &d) {
  static constexpr std::pair<std::string_view, Element> names[] = {
      {"f16", Element::F16}, {"bf16", Element::BF16}, {"tf32", Element::TF32},
      {"f32", Element::F32}, {"e4m3", Element::E4M3}, {"e5m2", Element::E5M2},
      {"s8", Element::S8},   {"u8", Element::U8},     {"s32", Element::S32}};
  for (auto [name, element] : names)
    if (d.take(name))
      return element;
  return std::nullopt;
}

/// The immediates after the predicate: scales of A and B, transposes.
bool takeImmediates(Decoder &d, tensor::WgmmaOp &form) {
  if (isInteger(form.a))
    return d.expectOperands(4, 4);
  bool turns = form.a == Element::F16 || form.a == Element::BF16;
  size_t transposes = !turns ? 0 : form.aInRegisters ? 1 : 2;
  size_t count = 6 + transposes;
  if (!d.expectOperands(count, count))
    return false;
  int64_t values[4] = {};
  for (size_t i = 4; i != count; ++i)
    values[i - 4] = d.immediate(i).value_or(0);
  form.negateA = static_cast<int32_t>(values[0]) == -1;
  form.negateB = static_cast<int32_t>(values[1]) == -1;
  form.transposeA = transposes == 2 && values[2] == 1;
  form.transposeB = transposes != 0 && values[1 + transposes] == 1;
  return true;
}

void addRegisters(Decoder &d, size_t i, bool results, std::vector<Ref> &refs) {
  for (const Operand &part : d.operand(i).parts)
    refs.push_back(results ? d.dst(part, Type::B32) : d.src(part, Type::B32));
}

Handler buildMultiply(Decoder &d) {
  tensor::WgmmaOp shape{};
  if (!d.take("sync") || !d.take("aligned") || !takeShape(d, shape))
    return nullptr;
  shape.saturate = d.take("satfinite");
  for (Element *e : {&shape.d, &shape.a, &shape.b}) {
    std::optional<Element> found = takeElement(d);
    if (!found)
      return nullptr;
    *e = *found;
  }
  shape.aInRegisters = d.operand(1).kind == Operand::Vector;
  if (!takeImmediates(d, shape))
    return nullptr;
  std::optional<tensor::Wgmma> wgmma = tensor::Wgmma::find(shape);
  if (!wgmma)
    return nullptr;
  size_t a = shape.aInRegisters ? d.operand(1).parts.size() : 0;
  if (d.operand(0).parts.size() != wgmma->registersD() ||
      a != wgmma->registersA())
    return d.refuse(rt::format("expected %u registers of D and %u of A",
                               wgmma->registersD(), wgmma->registersA()));
  std::vector<Ref> refs;
  addRegisters(d, 0, true, refs);
  if (shape.aInRegisters)
    addRegisters(d, 1, false, refs);
  else
    d.op.a = d.src(1, Type::B64);
  d.op.b = d.src(2, Type::B64);
  auto form = std::make_shared<Form>(*wgmma);
  d.op.c = d.predicateSource(3, form->scaleFlip);
  d.op.more = d.refs(refs);
  d.op.extra = d.keep(std::shared_ptr<const Form>(form));
  return multiply;
}

Handler buildWgmma(Decoder &d) {
  d.op.kind = OpClass::Tensor;
  if (d.take("mma_async"))
    return buildMultiply(d);
  bool commits = d.take("commit_group"), fences = !commits && d.take("fence");
  if (!commits && !fences && !d.take("wait_group"))
    return nullptr;
  if (!d.take("sync") || !d.take("aligned"))
    return nullptr;
  if (commits || fences)
    return commits ? commitGroup : fence;
  std::optional<int64_t> keep = d.immediate(0);
  if (!keep || *keep < 0)
    return d.refuse("expected a number of groups");
  d.op.extra = static_cast<uint32_t>(std::min<int64_t>(*keep, 1 << 20));
  return waitGroup;
}

constexpr RuleEntry rules[] = {{"wgmma", buildWgmma}};

} // namespace

std::span<const RuleEntry> emu::wgmmaRules() { return rules; }
