//===- Reduce.cpp - the operations of cp.reduce.async.bulk ----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/emulator/tensor/Reduce.h"
#include "runtime/emulator/tensor/Formats.h"

#include <cstring>

namespace tenon::emu::tensor {
namespace {

/// The 16-bit floats as their bits, computed in f32: the sum of two of them is
/// rounded once in effect, for f32 has more than twice their bits.
struct Half {
  uint16_t bits;
  float value() const { return f16ToFloat(bits); }
  static Half from(float v) { return {floatToF16(v)}; }
};
struct BFloat {
  uint16_t bits;
  float value() const { return bf16ToFloat(bits); }
  static BFloat from(float v) { return {floatToBF16(v)}; }
};

struct Add {
  template <typename T> static T apply(T a, T b) { return T(a + b); }
  static int32_t apply(int32_t a, int32_t b) {
    return int32_t(uint32_t(a) + uint32_t(b));
  }
  static Half apply(Half a, Half b) {
    return Half::from(a.value() + b.value());
  }
  static BFloat apply(BFloat a, BFloat b) {
    return BFloat::from(a.value() + b.value());
  }
};
struct Min {
  template <typename T> static T apply(T a, T b) { return b < a ? b : a; }
  static Half apply(Half a, Half b) { return pick(a, b); }
  static BFloat apply(BFloat a, BFloat b) { return pick(a, b); }
  /// A number wins over NaN, -0 over +0.
  template <typename T> static T pick(T a, T b) {
    if (a.value() != a.value())
      return b.value() != b.value() ? T{0x7fff} : b;
    if (a.value() == b.value())
      return {uint16_t(a.bits | b.bits)};
    return b.value() < a.value() ? b : a;
  }
};
struct Max {
  template <typename T> static T apply(T a, T b) { return a < b ? b : a; }
  static Half apply(Half a, Half b) { return pick(a, b); }
  static BFloat apply(BFloat a, BFloat b) { return pick(a, b); }
  template <typename T> static T pick(T a, T b) {
    if (a.value() != a.value())
      return b.value() != b.value() ? T{0x7fff} : b;
    if (a.value() == b.value())
      return {uint16_t(a.bits & b.bits)};
    return a.value() < b.value() ? b : a;
  }
};
struct Inc {
  static uint32_t apply(uint32_t a, uint32_t b) { return a >= b ? 0 : a + 1; }
};
struct Dec {
  static uint32_t apply(uint32_t a, uint32_t b) {
    return a == 0 || a > b ? b : a - 1;
  }
};
struct And {
  template <typename T> static T apply(T a, T b) { return a & b; }
};
struct Or {
  template <typename T> static T apply(T a, T b) { return a | b; }
};
struct Xor {
  template <typename T> static T apply(T a, T b) { return a ^ b; }
};

template <typename Op, typename T>
void combine(uint8_t *to, const uint8_t *from, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    T a, b;
    std::memcpy(&a, to + i * sizeof(T), sizeof(T));
    std::memcpy(&b, from + i * sizeof(T), sizeof(T));
    a = Op::apply(a, b);
    std::memcpy(to + i * sizeof(T), &a, sizeof(T));
  }
}

struct Entry {
  ReduceOp op;
  ReduceType type;
  Combine combine;
};

template <typename Op, typename T>
constexpr Entry entry(ReduceOp op, ReduceType type) {
  return {op, type, combine<Op, T>};
}

// The PTX manual's table.
constexpr Entry table[] = {
    entry<Add, Half>(ReduceOp::Add, ReduceType::F16),
    entry<Add, BFloat>(ReduceOp::Add, ReduceType::BF16),
    entry<Add, float>(ReduceOp::Add, ReduceType::F32),
    entry<Add, double>(ReduceOp::Add, ReduceType::F64),
    entry<Add, int32_t>(ReduceOp::Add, ReduceType::S32),
    entry<Add, uint32_t>(ReduceOp::Add, ReduceType::U32),
    entry<Add, uint64_t>(ReduceOp::Add, ReduceType::U64),
    entry<Min, Half>(ReduceOp::Min, ReduceType::F16),
    entry<Min, BFloat>(ReduceOp::Min, ReduceType::BF16),
    entry<Min, int32_t>(ReduceOp::Min, ReduceType::S32),
    entry<Min, uint32_t>(ReduceOp::Min, ReduceType::U32),
    entry<Min, int64_t>(ReduceOp::Min, ReduceType::S64),
    entry<Min, uint64_t>(ReduceOp::Min, ReduceType::U64),
    entry<Max, Half>(ReduceOp::Max, ReduceType::F16),
    entry<Max, BFloat>(ReduceOp::Max, ReduceType::BF16),
    entry<Max, int32_t>(ReduceOp::Max, ReduceType::S32),
    entry<Max, uint32_t>(ReduceOp::Max, ReduceType::U32),
    entry<Max, int64_t>(ReduceOp::Max, ReduceType::S64),
    entry<Max, uint64_t>(ReduceOp::Max, ReduceType::U64),
    entry<Inc, uint32_t>(ReduceOp::Inc, ReduceType::U32),
    entry<Dec, uint32_t>(ReduceOp::Dec, ReduceType::U32),
    entry<And, uint32_t>(ReduceOp::And, ReduceType::B32),
    entry<And, uint64_t>(ReduceOp::And, ReduceType::B64),
    entry<Or, uint32_t>(ReduceOp::Or, ReduceType::B32),
    entry<Or, uint64_t>(ReduceOp::Or, ReduceType::B64),
    entry<Xor, uint32_t>(ReduceOp::Xor, ReduceType::B32),
    entry<Xor, uint64_t>(ReduceOp::Xor, ReduceType::B64),
};

} // namespace

Combine combinerOf(ReduceOp op, ReduceType type) {
  for (const Entry &e : table)
    if (e.op == op && e.type == type)
      return e.combine;
  return nullptr;
}

unsigned bytesOf(ReduceType type) {
  switch (type) {
  case ReduceType::F16:
  case ReduceType::BF16:
    return 2;
  case ReduceType::F32:
  case ReduceType::S32:
  case ReduceType::U32:
  case ReduceType::B32:
    return 4;
  default:
    return 8;
  }
}

} // namespace tenon::emu::tensor
