//===- Memory.cpp - loads and stores -------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/emulator/exec/Access.h"
#include "runtime/emulator/exec/Lanes.h"
#include "runtime/emulator/exec/MemoryModifiers.h"
#include "runtime/support/Status.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

using namespace tenon;
using namespace tenon::emu;
using ptx::Operand;
using ptx::Type;

namespace {

// A memory type M in registers R: narrow values are widened when loaded and cut
// when stored.

template <typename M, typename R>
void gather(Warp &warp, Ref ref, uint32_t mask, const Access &access,
            unsigned skip) {
  R *d = lanes<R>(warp, ref);
  auto value = [&](unsigned i) {
    M m;
    std::memcpy(&m, access.at[i] + skip, sizeof(M));
    return static_cast<R>(m);
  };
  if (mask == ~0u) {
    for (unsigned i = 0; i != 32; ++i)
      d[i] = value(i);
    return;
  }
  forLanes(mask, [&](unsigned i) { d[i] = value(i); });
}

template <typename M, typename R>
void load(Warp &warp, const Op &op, uint32_t mask) {
  Access access;
  auto count = static_cast<unsigned>(op.extra);
  if (!resolve(warp, op, mask, sizeof(M) * count, Touch::Read, access))
    return;
  if (count == 1) {
    if (access.dense && sizeof(M) == sizeof(R))
      std::memcpy(lanes<R>(warp, op.dst), access.at[0], sizeof(R) * 32);
    else
      gather<M, R>(warp, op.dst, mask, access, 0);
    return;
  }
  for (unsigned p = 0; p != count; ++p)
    gather<M, R>(warp, warp.code->refs[op.more + p], mask, access,
                 p * sizeof(M));
}

template <typename M, typename R>
void store(Warp &warp, const Op &op, uint32_t mask) {
  Access access;
  auto count = static_cast<unsigned>(op.extra);
  if (!resolve(warp, op, mask, sizeof(M) * count, Touch::Write, access))
    return;
  for (unsigned p = 0; p != count; ++p) {
    const R *r = lanes<R>(warp, warp.code->refs[op.more + p]);
    if (access.dense && sizeof(M) == sizeof(R) && count == 1) {
      std::memcpy(access.at[0], r, sizeof(R) * 32);
      return;
    }
    forLanes(mask, [&](unsigned i) {
      M m = static_cast<M>(r[i]);
      std::memcpy(access.at[i] + p * sizeof(M), &m, sizeof(M));
    });
  }
}

template <bool IsLoad, typename M> Handler handlerFor(unsigned registerBytes) {
  constexpr bool wide = sizeof(M) == 16;
  if constexpr (wide)
    return registerBytes == 16 ? (IsLoad ? load<M, M> : store<M, M>) : nullptr;
  if constexpr (!wide) {
    if (registerBytes < sizeof(M))
      return nullptr;
    switch (registerBytes) {
    case 2:
      return IsLoad ? load<M, uint16_t> : store<M, uint16_t>;
    case 4:
      return IsLoad ? load<M, uint32_t> : store<M, uint32_t>;
    case 8:
      return IsLoad ? load<M, uint64_t> : store<M, uint64_t>;
    default:
      break;
    }
  }
  return nullptr;
}

template <bool IsLoad> Handler handlerFor(Type type, unsigned registerBytes) {
  bool isSigned = ptx::isSigned(type);
  switch (sizeOf(type)) {
  case 1:
    return isSigned ? handlerFor<IsLoad, int8_t>(registerBytes)
                    : handlerFor<IsLoad, uint8_t>(registerBytes);
  case 2:
    return isSigned ? handlerFor<IsLoad, int16_t>(registerBytes)
                    : handlerFor<IsLoad, uint16_t>(registerBytes);
  case 4:
    return isSigned ? handlerFor<IsLoad, int32_t>(registerBytes)
                    : handlerFor<IsLoad, uint32_t>(registerBytes);
  case 8:
    return handlerFor<IsLoad, uint64_t>(registerBytes);
  case 16:
    return handlerFor<IsLoad, unsigned __int128>(registerBytes);
  default:
    return nullptr;
  }
}

/// A kernel's parameter: the same for every thread of the launch.
template <typename M, typename R>
void loadParameter(Warp &warp, const Op &op, uint32_t mask) {
  const std::vector<char> &block = warp.launch->parameters;
  for (unsigned p = 0; p != op.extra; ++p) {
    M m;
    std::memcpy(&m, &block[static_cast<size_t>(op.offset) + p * sizeof(M)],
                sizeof(M));
    R value = static_cast<R>(m);
    each(lanes<R>(warp, warp.code->refs[op.more + p]), mask,
         [=](unsigned) { return value; });
  }
}

template <typename M> Handler parameterHandler(unsigned registerBytes) {
  if (registerBytes < sizeof(M))
    return nullptr;
  return registerBytes == 2   ? loadParameter<M, uint16_t>
         : registerBytes == 4 ? loadParameter<M, uint32_t>
         : registerBytes == 8 ? loadParameter<M, uint64_t>
                              : nullptr;
}
Handler parameterHandler(Type type, unsigned registerBytes) {
  bool isSigned = ptx::isSigned(type);
  switch (sizeOf(type)) {
  case 1:
    return isSigned ? parameterHandler<int8_t>(registerBytes)
                    : parameterHandler<uint8_t>(registerBytes);
  case 2:
    return isSigned ? parameterHandler<int16_t>(registerBytes)
                    : parameterHandler<uint16_t>(registerBytes);
  case 4:
    return isSigned ? parameterHandler<int32_t>(registerBytes)
                    : parameterHandler<uint32_t>(registerBytes);
  case 8:
    return parameterHandler<uint64_t>(registerBytes);
  default:
    return nullptr;
  }
}

OpClass classOf(AddressSpace space, bool isLoad) {
  switch (space) {
  case AddressSpace::Shared:
    return isLoad ? OpClass::SharedLoad : OpClass::SharedStore;
  case AddressSpace::Local:
    return OpClass::Local;
  case AddressSpace::Const:
  case AddressSpace::Param:
    return OpClass::Constant;
  default:
    return isLoad ? OpClass::GlobalLoad : OpClass::GlobalStore;
  }
}

/// The registers of a load or store: all of one width, at least the type's.
std::vector<Ref> values(Decoder &d, size_t i, unsigned count, Type type,
                        bool isLoad, unsigned &bytes) {
  const Operand &operand = d.operand(i);
  std::vector<const Operand *> parts;
  if (operand.kind == Operand::Vector)
    for (const Operand &part : operand.parts)
      parts.push_back(&part);
  else
    parts.push_back(&operand);
  if (parts.size() != count)
    d.refuse(
        rt::format("expected %u registers, found %zu", count, parts.size()));
  bytes = 0;
  for (const Operand *part : parts)
    bytes = std::max(bytes, d.width(*part));
  if (bytes == 0)
    bytes = std::max(2u, sizeOf(type));
  Type wide = bytes == 2   ? Type::B16
              : bytes == 4 ? Type::B32
              : bytes == 8 ? Type::B64
                           : Type::B128;
  bool isFloat = type == Type::F32 || type == Type::F64;
  std::vector<Ref> refs;
  for (const Operand *part : parts)
    refs.push_back(isLoad ? d.dst(*part, wide)
                          : d.src(*part, isFloat ? type : wide));
  return refs;
}

/// Whether the address names a parameter of the kernel.
bool namesParameter(const Decoder &d, const Operand &operand) {
  return d.code.entry && operand.kind == Operand::Address &&
         operand.base == Operand::Symbol && operand.variable != Operand::None &&
         operand.variable < d.code.source->params.size();
}

Handler buildParameterLoad(Decoder &d, Type type, unsigned count,
                           unsigned bytes) {
  const Operand &operand = d.operand(1);
  const ptx::Variable &variable = d.code.source->variables[operand.variable];
  uint64_t size = uint64_t(sizeOf(type)) * count;
  auto offset = static_cast<uint64_t>(operand.offset);
  if (operand.offset < 0 || size > variable.bytes ||
      offset > variable.bytes - size)
    return d.refuse("reads beyond the end of the parameter");
  d.op.offset = static_cast<int64_t>(variable.offset + offset);
  d.op.kind = OpClass::Constant;
  return parameterHandler(type, bytes);
}

Handler buildLoad(Decoder &d) {
  MemoryModifiers m = takeMemoryModifiers(d);
  std::optional<Type> type = d.takeType();
  if (!type || !d.expectOperands(2, 3)) // the third: a cache policy
    return nullptr;
  unsigned bytes;
  std::vector<Ref> refs = values(d, 0, m.vector, *type, true, bytes);
  d.op.dst = refs.empty() ? d.sink() : refs[0];
  d.op.more = d.refs(refs);
  d.op.extra = m.vector;
  if (m.space == AddressSpace::Param && namesParameter(d, d.operand(1)))
    return buildParameterLoad(d, *type, m.vector, bytes);
  d.address(1, m.space);
  d.op.synchronizes = m.synchronizes;
  d.op.kind = classOf(d.op.space, true);
  return handlerFor<true>(*type, bytes);
}

Handler buildStore(Decoder &d) {
  MemoryModifiers m = takeMemoryModifiers(d);
  std::optional<Type> type = d.takeType();
  if (!type || !d.expectOperands(2, 3))
    return nullptr;
  unsigned bytes;
  std::vector<Ref> refs = values(d, 1, m.vector, *type, false, bytes);
  d.op.more = d.refs(refs);
  d.op.extra = m.vector;
  d.address(0, m.space);
  d.op.synchronizes = m.synchronizes;
  d.op.kind = classOf(d.op.space, false);
  return handlerFor<false>(*type, bytes);
}

void nothing(Warp &, const Op &, uint32_t) {}

/// Hints: what they say about caches has no effect.
Handler buildHint(Decoder &d) {
  while (!d.peek().empty())
    d.skip();
  return nothing;
}

uint64_t same(uint64_t a) { return a; }

/// A cache policy's value is never looked at.
Handler buildPolicy(Decoder &d) {
  while (!d.peek().empty())
    d.skip();
  d.op.dst = d.dst(0, Type::B64);
  d.op.a = d.constant(0, 8);
  return Lift<same>::run;
}

constexpr RuleEntry rules[] = {
    {"ld", buildLoad},        {"ldu", buildLoad},
    {"st", buildStore},       {"prefetch", buildHint},
    {"prefetchu", buildHint}, {"applypriority", buildHint},
    {"discard", buildHint},   {"createpolicy", buildPolicy},
};

} // namespace

std::span<const RuleEntry> emu::memoryRules() { return rules; }

MemoryModifiers emu::takeMemoryModifiers(Decoder &d) {
  static constexpr std::pair<std::string_view, AddressSpace> spaces[] = {
      {"global", AddressSpace::Global},
      {"shared", AddressSpace::Shared},
      {"shared::cta", AddressSpace::Shared},
      {"shared::cluster", AddressSpace::Shared},
      {"local", AddressSpace::Local},
      {"const", AddressSpace::Const},
      {"param", AddressSpace::Param},
      {"param::entry", AddressSpace::Param},
      {"param::func", AddressSpace::Param}};
  static constexpr std::string_view ordered[] = {
      "volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"};
  static constexpr std::string_view hints[] = {
      "weak", "cta", "cluster", "gpu", "sys", "nc", "ca",
      "cg",   "cs",  "lu",      "cv",  "wb",  "wt", "noftz"};
  static constexpr std::pair<std::string_view, unsigned> vectors[] = {
      {"v2", 2}, {"v4", 4}, {"v8", 8}};
  MemoryModifiers m;
  for (bool more = true; more;) {
    more = false;
    for (auto [name, space] : spaces)
      if (d.take(name)) {
        m.space = space;
        more = true;
      }
    for (std::string_view name : ordered)
      if (d.take(name))
        m.synchronizes = more = true;
    for (std::string_view name : hints)
      more |= d.take(name);
    for (auto [name, count] : vectors)
      if (d.take(name)) {
        m.vector = count;
        more = true;
      }
    if (d.peek().substr(0, 4) == "L1::" || d.peek().substr(0, 4) == "L2::") {
      d.skip();
      more = true;
    }
  }
  return m;
}
