//===- Atomics.cpp - atom and red ----------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/emulator/exec/Access.h"
#include "runtime/emulator/exec/HalfMath.h"
#include "runtime/emulator/exec/Lanes.h"
#include "runtime/emulator/exec/MemoryModifiers.h"

#include <atomic>
#include <type_traits>

using namespace tenon;
using namespace tenon::emu;
using ptx::Operand;
using ptx::Type;

namespace {

// What becomes of the old value, on bits of type U that mean a T.

template <typename T, typename U> T as(U bits) {
  return std::bit_cast<T>(bits);
}
template <typename U, typename T> U bitsOf(T value) {
  return std::bit_cast<U>(value);
}

template <typename U> U exchange(U, U b) { return b; }
template <typename U> U addInteger(U a, U b) { return static_cast<U>(a + b); }
template <typename U> U bitAnd(U a, U b) { return a & b; }
template <typename U> U bitOr(U a, U b) { return a | b; }
template <typename U> U bitXor(U a, U b) { return a ^ b; }
template <typename T, typename U> U least(U a, U b) {
  return as<T>(a) < as<T>(b) ? a : b;
}
template <typename T, typename U> U most(U a, U b) {
  return as<T>(a) > as<T>(b) ? a : b;
}
uint32_t increment(uint32_t a, uint32_t b) { return a >= b ? 0 : a + 1; }
uint32_t decrement(uint32_t a, uint32_t b) {
  return a == 0 || a > b ? b : a - 1;
}
// Atomic f32 addition flushes in global memory only; without -ftz compilers
// expect what the hardware does, which the test against one would show at
// subnormal results alone. Here they stay.
uint32_t addFloat(uint32_t a, uint32_t b) {
  return floatToBits(bitsToFloat(a) + bitsToFloat(b));
}
uint64_t addDouble(uint64_t a, uint64_t b) {
  return bitsOf<uint64_t>(as<double>(a) + as<double>(b));
}
template <typename H> uint16_t addHalf(uint16_t a, uint16_t b) {
  return H::round(float(H{a}) + float(H{b})).bits;
}
template <typename H> uint16_t minHalf(uint16_t a, uint16_t b) {
  float x = H{a}, y = H{b};
  return x != x ? b : y != y ? a : x < y ? a : b;
}
template <typename H> uint16_t maxHalf(uint16_t a, uint16_t b) {
  float x = H{a}, y = H{b};
  return x != x ? b : y != y ? a : x > y ? a : b;
}
template <uint16_t (*F)(uint16_t, uint16_t)>
uint32_t both(uint32_t a, uint32_t b) {
  return F(uint16_t(a), uint16_t(b)) |
         uint32_t(F(uint16_t(a >> 16), uint16_t(b >> 16))) << 16;
}

/// Op::extra values at a time; refs: first the operands, then the results.
template <typename U, U (*F)(U, U)>
void atomic(Warp &warp, const Op &op, uint32_t mask) {
  Access access;
  unsigned count = op.extra;
  if (!resolve(warp, op, mask, sizeof(U) * count, Touch::Atomic, access))
    return;
  const Ref *refs = &warp.code->refs[op.more];
  for (unsigned p = 0; p != count; ++p) {
    const U *b = lanes<U>(warp, refs[p]);
    U *d = lanes<U>(warp, refs[count + p]);
    forLanes(mask, [&](unsigned i) {
      std::atomic_ref<U> memory(
          *reinterpret_cast<U *>(access.at[i] + p * sizeof(U)));
      U operand = b[i], old = memory.load(std::memory_order_relaxed);
      while (!memory.compare_exchange_weak(old, F(old, operand)))
        ;
      d[i] = old;
    });
  }
}

template <typename U>
void compareAndSwap(Warp &warp, const Op &op, uint32_t mask) {
  Access access;
  if (!resolve(warp, op, mask, sizeof(U), Touch::Atomic, access))
    return;
  const Ref *refs = &warp.code->refs[op.more];
  const U *b = lanes<U>(warp, refs[0]);
  U *d = lanes<U>(warp, refs[1]);
  const U *c = lanes<U>(warp, op.c);
  forLanes(mask, [&](unsigned i) {
    std::atomic_ref<U> memory(*reinterpret_cast<U *>(access.at[i]));
    U expected = b[i];
    memory.compare_exchange_strong(expected, c[i]);
    d[i] = expected;
  });
}

Handler addHandler(Type type) {
  switch (type) {
  case Type::U32:
  case Type::S32:
    return atomic<uint32_t, addInteger<uint32_t>>;
  case Type::U64:
  case Type::S64:
    return atomic<uint64_t, addInteger<uint64_t>>;
  case Type::F32:
    return atomic<uint32_t, addFloat>;
  case Type::F64:
    return atomic<uint64_t, addDouble>;
  case Type::F16:
    return atomic<uint16_t, addHalf<F16>>;
  case Type::BF16:
    return atomic<uint16_t, addHalf<BF16>>;
  case Type::F16x2:
    return atomic<uint32_t, both<addHalf<F16>>>;
  case Type::BF16x2:
    return atomic<uint32_t, both<addHalf<BF16>>>;
  default:
    return nullptr;
  }
}

Handler minHandler(Type type) {
  switch (type) {
  case Type::U32:
    return atomic<uint32_t, least<uint32_t>>;
  case Type::S32:
    return atomic<uint32_t, least<int32_t>>;
  case Type::U64:
    return atomic<uint64_t, least<uint64_t>>;
  case Type::S64:
    return atomic<uint64_t, least<int64_t>>;
  case Type::F16:
    return atomic<uint16_t, minHalf<F16>>;
  case Type::BF16:
    return atomic<uint16_t, minHalf<BF16>>;
  case Type::F16x2:
    return atomic<uint32_t, both<minHalf<F16>>>;
  case Type::BF16x2:
    return atomic<uint32_t, both<minHalf<BF16>>>;
  default:
    return nullptr;
  }
}

Handler maxHandler(Type type) {
  switch (type) {
  case Type::U32:
    return atomic<uint32_t, most<uint32_t>>;
  case Type::S32:
    return atomic<uint32_t, most<int32_t>>;
  case Type::U64:
    return atomic<uint64_t, most<uint64_t>>;
  case Type::S64:
    return atomic<uint64_t, most<int64_t>>;
  case Type::F16:
    return atomic<uint16_t, maxHalf<F16>>;
  case Type::BF16:
    return atomic<uint16_t, maxHalf<BF16>>;
  case Type::F16x2:
    return atomic<uint32_t, both<maxHalf<F16>>>;
  case Type::BF16x2:
    return atomic<uint32_t, both<maxHalf<BF16>>>;
  default:
    return nullptr;
  }
}

Handler bitHandler(std::string_view name, Type type) {
  bool wide = sizeOf(type) == 8;
  if (sizeOf(type) < 4)
    return nullptr;
  if (name == "and")
    return wide ? atomic<uint64_t, bitAnd<uint64_t>>
                : atomic<uint32_t, bitAnd<uint32_t>>;
  if (name == "or")
    return wide ? atomic<uint64_t, bitOr<uint64_t>>
                : atomic<uint32_t, bitOr<uint32_t>>;
  return wide ? atomic<uint64_t, bitXor<uint64_t>>
              : atomic<uint32_t, bitXor<uint32_t>>;
}

Handler handlerFor(std::string_view name, Type type) {
  if (name == "add")
    return addHandler(type);
  if (name == "min")
    return minHandler(type);
  if (name == "max")
    return maxHandler(type);
  if (name == "and" || name == "or" || name == "xor")
    return bitHandler(name, type);
  if (name == "inc")
    return type == Type::U32 ? atomic<uint32_t, increment> : nullptr;
  if (name == "dec")
    return type == Type::U32 ? atomic<uint32_t, decrement> : nullptr;
  if (name == "exch")
    return sizeOf(type) == 4   ? atomic<uint32_t, exchange<uint32_t>>
           : sizeOf(type) == 8 ? atomic<uint64_t, exchange<uint64_t>>
                               : nullptr;
  if (name == "cas")
    return sizeOf(type) == 2   ? compareAndSwap<uint16_t>
           : sizeOf(type) == 4 ? compareAndSwap<uint32_t>
           : sizeOf(type) == 8 ? compareAndSwap<uint64_t>
                               : nullptr;
  return nullptr;
}

/// The registers of an operand that may be a vector.
bool addParts(Decoder &d, const Operand *operand, unsigned count, Type type,
              bool results, std::vector<Ref> &refs) {
  if (!operand || operand->kind == Operand::Sink) {
    refs.insert(refs.end(), count, d.sink());
    return true;
  }
  if (operand->kind != Operand::Vector) {
    refs.push_back(results ? d.dst(*operand, type) : d.src(*operand, type));
    return count == 1;
  }
  for (const Operand &part : operand->parts)
    refs.push_back(results ? d.dst(part, type) : d.src(part, type));
  return operand->parts.size() == count;
}

Handler build(Decoder &d, bool hasResult) {
  MemoryModifiers m = takeMemoryModifiers(d);
  std::string_view name = d.peek();
  d.skip();
  MemoryModifiers hints = takeMemoryModifiers(d);
  std::optional<Type> type = d.takeType();
  bool cas = name == "cas";
  size_t first = hasResult ? 1 : 0;
  size_t operands = first + 2 + cas;
  if (!type ||
      (m.space != AddressSpace::Global && m.space != AddressSpace::Shared &&
       m.space != AddressSpace::Generic) ||
      !d.expectOperands(operands, operands + 1)) // and a cache policy
    return nullptr;
  unsigned count = m.vector * hints.vector;
  std::vector<Ref> refs;
  if (!addParts(d, &d.operand(first + 1), count, *type, false, refs) ||
      !addParts(d, hasResult ? &d.operand(0) : nullptr, count, *type, true,
                refs))
    return nullptr;
  if (cas)
    d.op.c = d.src(first + 2, *type);
  d.op.more = d.refs(refs);
  d.op.extra = count;
  d.address(first, m.space);
  d.op.synchronizes = true;
  d.op.kind = OpClass::Atomic;
  return handlerFor(name, *type);
}

Handler buildAtom(Decoder &d) { return build(d, true); }
Handler buildRed(Decoder &d) {
  return d.peek() == "async" ? nullptr : build(d, false);
}

constexpr RuleEntry rules[] = {{"atom", buildAtom}, {"red", buildRed}};

} // namespace

std::span<const RuleEntry> emu::atomicRules() { return rules; }
