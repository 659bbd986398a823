//===- Move.cpp - moves, addresses, special registers --------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/emulator/exec/Decoder.h"
#include "runtime/emulator/exec/Lanes.h"

#include <chrono>

using namespace tenon;
using namespace tenon::emu;
using ptx::Operand;
using ptx::Type;

namespace {

template <typename T> T same(T a) { return a; }

void movePredicate(Warp &warp, const Op &op, uint32_t mask) {
  setPredicate(warp, op.dst, mask, predicate(warp, op.a) ^ op.extra);
}

/// base + offset, of a symbol.
template <typename D> void moveSymbol(Warp &warp, const Op &op, uint32_t mask) {
  const uint64_t *a = lanes<uint64_t>(warp, op.a);
  auto offset = static_cast<uint64_t>(op.offset);
  each(lanes<D>(warp, op.dst), mask,
       [=](unsigned i) { return static_cast<D>(a[i] + offset); });
}

/// {a, b, ...} as one register: the first element is the lowest.
template <typename D, typename E>
void pack(Warp &warp, const Op &op, uint32_t mask) {
  constexpr unsigned count = sizeof(D) / sizeof(E);
  const E *parts[count];
  for (unsigned p = 0; p != count; ++p)
    parts[p] = lanes<E>(warp, warp.code->refs[op.more + p]);
  each(lanes<D>(warp, op.dst), mask, [&](unsigned i) {
    D value = 0;
    for (unsigned p = 0; p != count; ++p)
      value |= static_cast<D>(parts[p][i]) << (p * sizeof(E) * 8);
    return value;
  });
}
template <typename S, typename E>
void unpack(Warp &warp, const Op &op, uint32_t mask) {
  const S *source = lanes<S>(warp, op.a);
  S values[32];
  for (unsigned i = 0; i != 32; ++i)
    values[i] = source[i]; // the source may be among the results
  for (unsigned p = 0; p != sizeof(S) / sizeof(E); ++p)
    each(lanes<E>(warp, warp.code->refs[op.more + p]), mask, [&](unsigned i) {
      return static_cast<E>(values[i] >> (p * sizeof(E) * 8));
    });
}

template <bool Pack> Handler vectorHandler(unsigned whole, unsigned part) {
  if (whole == 4 && part == 2)
    return Pack ? pack<uint32_t, uint16_t> : unpack<uint32_t, uint16_t>;
  if (whole == 8 && part == 4)
    return Pack ? pack<uint64_t, uint32_t> : unpack<uint64_t, uint32_t>;
  if (whole == 8 && part == 2)
    return Pack ? pack<uint64_t, uint16_t> : unpack<uint64_t, uint16_t>;
  if (whole == 16 && part == 8)
    return Pack ? pack<unsigned __int128, uint64_t>
                : unpack<unsigned __int128, uint64_t>;
  if (whole == 16 && part == 4)
    return Pack ? pack<unsigned __int128, uint32_t>
                : unpack<unsigned __int128, uint32_t>;
  return nullptr;
}

Type untyped(unsigned bytes) {
  return bytes == 2   ? Type::B16
         : bytes == 4 ? Type::B32
         : bytes == 8 ? Type::B64
                      : Type::B128;
}

Handler buildVectorMove(Decoder &d, Type type, bool packing) {
  const Operand &vector = d.operand(packing ? 1 : 0);
  size_t count = vector.parts.size();
  unsigned whole = sizeOf(type);
  if (count == 0 || whole % count != 0)
    return nullptr;
  auto part = static_cast<unsigned>(whole / count);
  std::vector<Ref> refs;
  for (const Operand &operand : vector.parts)
    refs.push_back(packing ? d.src(operand, untyped(part))
                           : d.dst(operand, untyped(part)));
  d.op.more = d.refs(refs);
  if (packing)
    d.op.dst = d.dst(0, type);
  else
    d.op.a = d.src(1, type);
  return packing ? vectorHandler<true>(whole, part)
                 : vectorHandler<false>(whole, part);
}

// Clocks move on with every read, whatever the time: their values are not
// those of a GPU.

template <typename D, unsigned Shift>
void readClock(Warp &warp, const Op &op, uint32_t mask) {
  static const auto begin = std::chrono::steady_clock::now();
  auto now = std::chrono::steady_clock::now() - begin;
  auto ticks = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
  each(lanes<D>(warp, op.dst), mask,
       [=](unsigned) { return static_cast<D>(ticks >> Shift); });
}

Handler clockHandler(std::string_view name, Type type) {
  unsigned bytes = sizeOf(type);
  if (name == "%clock64" || name == "%globaltimer")
    return bytes == 8 ? readClock<uint64_t, 0> : nullptr;
  if (name == "%clock" || name == "%globaltimer_lo")
    return bytes == 4 ? readClock<uint32_t, 0> : nullptr;
  if (name == "%clock_hi" || name == "%globaltimer_hi")
    return bytes == 4 ? readClock<uint32_t, 32> : nullptr;
  return nullptr;
}

Handler copy(unsigned bytes) {
  return bytes == 2    ? Lift<same<uint16_t>>::run
         : bytes == 4  ? Lift<same<uint32_t>>::run
         : bytes == 8  ? Lift<same<uint64_t>>::run
         : bytes == 16 ? Lift<same<unsigned __int128>>::run
                       : nullptr;
}

Handler buildMov(Decoder &d) {
  std::optional<Type> type = d.takeType();
  if (!type || !d.expectOperands(2, 2))
    return nullptr;
  d.op.kind = OpClass::Move;
  const Operand &source = d.operand(1);
  if (*type == Type::Pred) {
    d.op.dst = d.dst(0, *type);
    d.op.a = d.predicateSource(1, d.op.extra);
    return movePredicate;
  }
  if (source.kind == Operand::Vector)
    return buildVectorMove(d, *type, true);
  if (d.operand(0).kind == Operand::Vector)
    return buildVectorMove(d, *type, false);
  if (source.kind == Operand::Special)
    if (Handler clock = clockHandler(source.name, *type)) {
      d.op.dst = d.dst(0, *type);
      return clock;
    }
  if (source.kind == Operand::Symbol) {
    AddressSpace space;
    d.op.dst = d.dst(0, *type);
    if (!d.symbol(source, d.op.a, d.op.offset, space))
      return nullptr;
    return sizeOf(*type) == 4   ? moveSymbol<uint32_t>
           : sizeOf(*type) == 8 ? moveSymbol<uint64_t>
                                : nullptr;
  }
  return d.form(copy(sizeOf(*type)), *type, {*type});
}

// cvta: addresses of global, constant and parameter memory are generic ones;
// shared and local memory have windows.

template <typename D, typename S>
void addWindow(Warp &warp, const Op &op, uint32_t mask) {
  const S *a = lanes<S>(warp, op.a);
  auto window = static_cast<uint64_t>(op.offset);
  each(lanes<D>(warp, op.dst), mask,
       [=](unsigned i) { return static_cast<D>(uint64_t(a[i]) + window); });
}

std::optional<uint64_t> takeWindow(Decoder &d) {
  if (d.take("shared") || d.take("shared::cta") || d.take("shared::cluster"))
    return sharedWindow;
  if (d.take("local"))
    return localWindow;
  if (d.take("global") || d.take("const") || d.take("param") ||
      d.take("param::entry"))
    return 0;
  return std::nullopt;
}

Handler buildCvta(Decoder &d) {
  bool to = d.take("to");
  std::optional<uint64_t> window = takeWindow(d);
  std::optional<Type> type = d.takeType();
  if (!window || (type != Type::U64 && type != Type::U32) ||
      !d.expectOperands(2, 2))
    return nullptr;
  d.op.kind = OpClass::Move;
  d.op.dst = d.dst(0, *type);
  if (d.operand(1).kind == Operand::Symbol) {
    AddressSpace space;
    if (!d.symbol(d.operand(1), d.op.a, d.op.offset, space))
      return nullptr;
    if (space != AddressSpace::Shared && space != AddressSpace::Local)
      window = 0;
    d.op.offset += static_cast<int64_t>(to ? ~*window + 1 : *window);
    return sizeOf(*type) == 8 ? moveSymbol<uint64_t> : nullptr;
  }
  d.op.a = d.src(1, *type);
  d.op.offset = static_cast<int64_t>(to ? ~*window + 1 : *window);
  return sizeOf(*type) == 8 ? addWindow<uint64_t, uint64_t>
                            : addWindow<uint32_t, uint32_t>;
}

enum : uint32_t { IsGlobal, IsShared, IsLocal, IsConstant, IsParam };
void isSpace(Warp &warp, const Op &op, uint32_t mask) {
  const uint64_t *a = lanes<uint64_t>(warp, op.a);
  uint32_t bits = maskOf([&](unsigned i) {
    uint64_t window = a[i] >> 56;
    if (op.extra == IsShared)
      return window == sharedWindow >> 56;
    if (op.extra == IsLocal)
      return window == localWindow >> 56;
    if (window != 0)
      return false;
    const Allocation *in = warp.launch->memory->find(a[i]);
    bool constant = in && in->kind == Allocation::Constant;
    bool param = in && in->kind == Allocation::Parameters;
    return op.extra == IsConstant ? constant
           : op.extra == IsParam  ? param
                                  : !constant && !param;
  });
  setPredicate(warp, op.dst, mask, bits);
}

Handler buildIsSpace(Decoder &d) {
  if (!d.expectOperands(2, 2))
    return nullptr;
  static constexpr std::pair<std::string_view, uint32_t> names[] = {
      {"global", IsGlobal},      {"shared", IsShared},
      {"shared::cta", IsShared}, {"shared::cluster", IsShared},
      {"local", IsLocal},        {"const", IsConstant},
      {"param", IsParam},        {"param::entry", IsParam}};
  for (auto [name, kind] : names)
    if (d.take(name)) {
      d.op.kind = OpClass::Move;
      d.op.extra = kind;
      d.op.dst = d.dst(0, Type::Pred);
      d.op.a = d.src(1, Type::U64);
      return isSpace;
    }
  return nullptr;
}

constexpr RuleEntry rules[] = {
    {"mov", buildMov}, {"cvta", buildCvta}, {"isspacep", buildIsSpace}};

} // namespace

std::span<const RuleEntry> emu::moveRules() { return rules; }
