//===- Compare.cpp - comparisons and selections --------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/emulator/exec/Decoder.h"
#include "runtime/emulator/exec/HalfMath.h"
#include "runtime/emulator/exec/Lanes.h"

#include <array>
#include <cstring>
#include <type_traits>

using namespace tenon;
using namespace tenon::emu;
using ptx::Type;

namespace {

enum class Compare : uint8_t {
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
  Equ,
  Neu,
  Ltu,
  Leu,
  Gtu,
  Geu,
  Num,
  Nan,
  Count
};

// Of integers the unsigned names (lo, ls, hi, hs) are the plain ones on
// unsigned values; the "u" forms of floats are true where one is NaN.
template <typename T, Compare C> bool compare(T a, T b) {
  bool unordered = false;
  if constexpr (std::is_floating_point_v<T>)
    unordered = a != a || b != b;
  switch (C) {
  case Compare::Eq:
    return a == b;
  case Compare::Ne:
    return !unordered && a != b;
  case Compare::Lt:
    return a < b;
  case Compare::Le:
    return a <= b;
  case Compare::Gt:
    return a > b;
  case Compare::Ge:
    return a >= b;
  case Compare::Equ:
    return unordered || a == b;
  case Compare::Neu:
    return a != b;
  case Compare::Ltu:
    return unordered || a < b;
  case Compare::Leu:
    return unordered || a <= b;
  case Compare::Gtu:
    return unordered || a > b;
  case Compare::Geu:
    return unordered || a >= b;
  case Compare::Num:
    return !unordered;
  case Compare::Nan:
    return unordered;
  case Compare::Count:
    break;
  }
  return false;
}

/// f32 with .ftz.
struct Flushed {
  uint32_t bits;
  operator float() const { return flush(bitsToFloat(bits)); }
};

template <typename S> struct ValueOf {
  using type = S;
};
template <> struct ValueOf<F16> {
  using type = float;
};
template <> struct ValueOf<BF16> {
  using type = float;
};
template <> struct ValueOf<Flushed> {
  using type = float;
};

template <typename S, Compare C>
uint32_t comparison(const Warp &warp, const Op &op) {
  using T = typename ValueOf<S>::type;
  const S *a = lanes<S>(warp, op.a), *b = lanes<S>(warp, op.b);
  return maskOf([=](unsigned i) { return compare<T, C>(T(a[i]), T(b[i])); });
}

/// Op::extra of setp and set: how the result is combined with a predicate.
enum : uint32_t { CombineNone, CombineAnd, CombineOr, CombineXor, FlipBit = 4 };

uint32_t combine(const Warp &warp, const Op &op, uint32_t bits) {
  uint32_t other = predicate(warp, op.c) ^ (op.extra & FlipBit ? ~0u : 0);
  switch (op.extra & 3) {
  case CombineAnd:
    return bits & other;
  case CombineOr:
    return bits | other;
  case CombineXor:
    return bits ^ other;
  default:
    return bits;
  }
}

template <typename S, Compare C>
void setp(Warp &warp, const Op &op, uint32_t mask) {
  uint32_t bits = comparison<S, C>(warp, op);
  uint32_t second = combine(warp, op, ~bits);
  setPredicate(warp, op.dst, mask, combine(warp, op, bits));
  setPredicate(warp, warp.code->refs[op.more], mask, second);
}

/// setp on pairs: the low halves give p, the high ones q.
template <typename S, Compare C>
void setpPair(Warp &warp, const Op &op, uint32_t mask) {
  const S *a = lanes<S>(warp, op.a), *b = lanes<S>(warp, op.b);
  auto part = [&](unsigned high) {
    return combine(warp, op, maskOf([=](unsigned i) {
                     return compare<float, C>(a[2 * i + high], b[2 * i + high]);
                   }));
  };
  uint32_t second = part(1);
  setPredicate(warp, op.dst, mask, part(0));
  setPredicate(warp, warp.code->refs[op.more], mask, second);
}

/// set: the value for true, in Op::offset.
template <typename S, Compare C, typename D>
void setValue(Warp &warp, const Op &op, uint32_t mask) {
  uint32_t bits = combine(warp, op, comparison<S, C>(warp, op));
  D yes = static_cast<D>(op.offset);
  each(lanes<D>(warp, op.dst), mask,
       [=](unsigned i) { return bits >> i & 1 ? yes : D(0); });
}
template <typename S, Compare C>
void setPair(Warp &warp, const Op &op, uint32_t mask) {
  const S *a = lanes<S>(warp, op.a), *b = lanes<S>(warp, op.b);
  auto yes = static_cast<uint32_t>(op.offset);
  each(lanes<uint32_t>(warp, op.dst), mask, [=](unsigned i) {
    uint32_t low = compare<float, C>(a[2 * i], b[2 * i]) ? yes & 0xffff : 0;
    return low |
           (compare<float, C>(a[2 * i + 1], b[2 * i + 1]) ? yes & 0xffff0000u
                                                          : 0);
  });
}

template <typename S, Compare C> struct SetpOf {
  static constexpr Handler value = setp<S, C>;
};
template <typename S, Compare C> struct SetpPairOf {
  static constexpr Handler value = setpPair<S, C>;
};
template <typename S, Compare C> struct Set32Of {
  static constexpr Handler value = setValue<S, C, uint32_t>;
};
template <typename S, Compare C> struct Set16Of {
  static constexpr Handler value = setValue<S, C, uint16_t>;
};
template <typename S, Compare C> struct SetPairOf {
  static constexpr Handler value = setPair<S, C>;
};

constexpr auto numCompares = static_cast<size_t>(Compare::Count);

template <template <typename, Compare> class H, typename S, size_t... I>
Handler forCompare(Compare c, std::index_sequence<I...>) {
  static constexpr Handler handlers[] = {
      H<S, static_cast<Compare>(I)>::value...};
  return handlers[static_cast<size_t>(c)];
}
template <template <typename, Compare> class H, typename S>
Handler forCompare(Compare c) {
  return forCompare<H, S>(c, std::make_index_sequence<numCompares>());
}

template <template <typename, Compare> class H>
Handler forType(Type type, Compare c, bool ftz) {
  switch (type) {
  case Type::U16:
  case Type::B16:
    return forCompare<H, uint16_t>(c);
  case Type::S16:
    return forCompare<H, int16_t>(c);
  case Type::U32:
  case Type::B32:
    return forCompare<H, uint32_t>(c);
  case Type::S32:
    return forCompare<H, int32_t>(c);
  case Type::U64:
  case Type::B64:
    return forCompare<H, uint64_t>(c);
  case Type::S64:
    return forCompare<H, int64_t>(c);
  case Type::F16:
    return forCompare<H, F16>(c);
  case Type::BF16:
    return forCompare<H, BF16>(c);
  case Type::F32:
    return ftz ? forCompare<H, Flushed>(c) : forCompare<H, float>(c);
  case Type::F64:
    return forCompare<H, double>(c);
  default:
    return nullptr;
  }
}
template <template <typename, Compare> class H>
Handler forPairs(Type type, Compare c) {
  return type == Type::F16x2    ? forCompare<H, F16>(c)
         : type == Type::BF16x2 ? forCompare<H, BF16>(c)
                                : nullptr;
}

std::optional<Compare> takeCompare(Decoder &d) {
  static constexpr std::pair<std::string_view, Compare> names[] = {
      {"eq", Compare::Eq},   {"ne", Compare::Ne},   {"lt", Compare::Lt},
      {"le", Compare::Le},   {"gt", Compare::Gt},   {"ge", Compare::Ge},
      {"lo", Compare::Lt},   {"ls", Compare::Le},   {"hi", Compare::Gt},
      {"hs", Compare::Ge},   {"equ", Compare::Equ}, {"neu", Compare::Neu},
      {"ltu", Compare::Ltu}, {"leu", Compare::Leu}, {"gtu", Compare::Gtu},
      {"geu", Compare::Geu}, {"num", Compare::Num}, {"nan", Compare::Nan}};
  for (auto [name, compare] : names)
    if (d.take(name))
      return compare;
  return std::nullopt;
}

/// Integers compare `ne` without a thought of NaN.
Compare plainFor(Type type, Compare c) {
  bool isFloat = type == Type::F32 || type == Type::F64 || type == Type::F16 ||
                 type == Type::BF16;
  return !isFloat && c == Compare::Ne ? Compare::Neu : c;
}

/// The combining predicate, the last operand.
void takeCombination(Decoder &d) {
  d.op.extra = d.take("and")   ? CombineAnd
               : d.take("or")  ? CombineOr
               : d.take("xor") ? CombineXor
                               : CombineNone;
  d.op.c = ConstantRef;
  bool combined = d.op.extra != CombineNone;
  if (!d.expectOperands(combined ? 4 : 3, combined ? 4 : 3) || !combined)
    return;
  uint32_t flip;
  d.op.c = d.predicateSource(3, flip);
  if (flip)
    d.op.extra |= FlipBit;
}

Handler buildSetp(Decoder &d) {
  std::optional<Compare> c = takeCompare(d);
  if (!c)
    return nullptr;
  takeCombination(d);
  bool ftz = d.take("ftz");
  std::optional<Type> type = d.takeType();
  if (!type)
    return nullptr;
  d.op.kind = OpClass::Integer;
  d.op.dst = d.dst(0, Type::Pred);
  d.op.more = d.refs({d.predicateResult(d.operand(0).second)});
  d.op.a = d.src(1, *type);
  d.op.b = d.src(2, *type);
  if (Handler pairs = forPairs<SetpPairOf>(*type, *c))
    return pairs;
  return forType<SetpOf>(*type, plainFor(*type, *c), ftz);
}

Handler buildSet(Decoder &d) {
  std::optional<Compare> c = takeCompare(d);
  if (!c)
    return nullptr;
  takeCombination(d);
  bool ftz = d.take("ftz");
  std::optional<Type> result = d.takeType(), type = d.takeType();
  if (!result || !type)
    return nullptr;
  d.op.kind = OpClass::Integer;
  d.op.dst = d.dst(0, *result);
  d.op.a = d.src(1, *type);
  d.op.b = d.src(2, *type);
  switch (*result) {
  case Type::U32:
  case Type::S32:
    d.op.offset = -1;
    break;
  case Type::F32:
    d.op.offset = 0x3f800000;
    break;
  case Type::U16:
  case Type::S16:
    d.op.offset = -1;
    return forType<Set16Of>(*type, plainFor(*type, *c), ftz);
  case Type::F16:
  case Type::BF16:
    d.op.offset = result == Type::F16 ? 0x3c00 : 0x3f80;
    return forType<Set16Of>(*type, *c, ftz);
  case Type::F16x2:
  case Type::BF16x2:
    d.op.offset = result == Type::F16x2 ? 0x3c003c00 : 0x3f803f80;
    return forPairs<SetPairOf>(*type, *c);
  default:
    return nullptr;
  }
  if (Handler pairs = forPairs<SetPairOf>(*type, *c))
    return result != Type::F32 ? pairs : nullptr;
  return forType<Set32Of>(*type, plainFor(*type, *c), ftz);
}

template <typename T> void selp(Warp &warp, const Op &op, uint32_t mask) {
  const T *a = lanes<T>(warp, op.a), *b = lanes<T>(warp, op.b);
  uint32_t bits = predicate(warp, op.c) ^ op.extra;
  each(lanes<T>(warp, op.dst), mask,
       [=](unsigned i) { return bits >> i & 1 ? a[i] : b[i]; });
}

Handler buildSelp(Decoder &d) {
  std::optional<Type> type = d.takeType();
  if (!type || !d.expectOperands(4, 4))
    return nullptr;
  d.op.kind = OpClass::Move;
  d.op.dst = d.dst(0, *type);
  d.op.a = d.src(1, *type);
  d.op.b = d.src(2, *type);
  d.op.c = d.predicateSource(3, d.op.extra);
  return sizeOf(*type) == 2   ? selp<uint16_t>
         : sizeOf(*type) == 4 ? selp<uint32_t>
         : sizeOf(*type) == 8 ? selp<uint64_t>
                              : nullptr;
}

template <typename T> T slctInt(T a, T b, int32_t c) { return c >= 0 ? a : b; }
template <typename T> T slctFloat(T a, T b, float c) { return c >= 0 ? a : b; }

Handler buildSlct(Decoder &d) {
  d.take("ftz"); // a subnormal is as good as zero here: -0 >= 0
  std::optional<Type> type = d.takeType(), by = d.takeType();
  if (!type || (by != Type::S32 && by != Type::F32))
    return nullptr;
  bool isFloat = by == Type::F32;
  d.op.kind = OpClass::Move;
  Handler handler = nullptr;
  if (sizeOf(*type) == 2)
    handler =
        isFloat ? Lift<slctFloat<uint16_t>>::run : Lift<slctInt<uint16_t>>::run;
  if (sizeOf(*type) == 4)
    handler =
        isFloat ? Lift<slctFloat<uint32_t>>::run : Lift<slctInt<uint32_t>>::run;
  if (sizeOf(*type) == 8)
    handler =
        isFloat ? Lift<slctFloat<uint64_t>>::run : Lift<slctInt<uint64_t>>::run;
  return d.form(handler, *type, {*type, *type, *by});
}

constexpr RuleEntry rules[] = {
    {"setp", buildSetp},
    {"set", buildSet},
    {"selp", buildSelp},
    {"slct", buildSlct},
};

} // namespace

std::span<const RuleEntry> emu::compareRules() { return rules; }
