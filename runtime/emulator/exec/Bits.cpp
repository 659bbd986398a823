//===- Bits.cpp - logic, shifts and bit fields ---------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/emulator/exec/Decoder.h"
#include "runtime/emulator/exec/Lanes.h"

#include <algorithm>
#include <bit>
#include <type_traits>

using namespace tenon;
using namespace tenon::emu;
using ptx::Type;

namespace {

template <typename T> struct And {
  static T of(T a, T b) { return a & b; }
};
template <typename T> struct Or {
  static T of(T a, T b) { return a | b; }
};
template <typename T> struct Xor {
  static T of(T a, T b) { return a ^ b; }
};
template <typename T> struct Not {
  static T of(T a) { return static_cast<T>(~a); }
};
template <typename T> struct Cnot {
  static T of(T a) { return a == 0; }
};
// Shifts by the width or more clear the value, or fill it with its sign.
template <typename T> struct Shl {
  static T of(T a, uint32_t n) {
    return n < sizeof(T) * 8 ? static_cast<T>(a << n) : T(0);
  }
};
template <typename T> struct Shr {
  static T of(T a, uint32_t n) {
    constexpr uint32_t bits = sizeof(T) * 8;
    if (std::is_signed_v<T>)
      return static_cast<T>(a >> std::min(n, bits - 1));
    return n < bits ? static_cast<T>(a >> n) : T(0);
  }
};
template <typename T> struct Popc {
  static uint32_t of(T a) { return static_cast<uint32_t>(std::popcount(a)); }
};
template <typename T> struct Clz {
  static uint32_t of(T a) { return static_cast<uint32_t>(std::countl_zero(a)); }
};
template <typename T> struct Brev {
  static T of(T a) {
    T r = 0;
    for (unsigned i = 0; i != sizeof(T) * 8; ++i)
      r |= static_cast<T>((a >> i & 1) << (sizeof(T) * 8 - 1 - i));
    return r;
  }
};

/// bfe: positions and lengths are bytes of their registers; bits beyond the
/// value are its sign.
template <typename T> struct Bfe {
  static T of(T a, uint32_t position, uint32_t length) {
    constexpr unsigned bits = sizeof(T) * 8;
    using U = std::make_unsigned_t<T>;
    unsigned pos = position & 0xff, len = length & 0xff;
    if (len == 0)
      return 0;
    unsigned top = std::min(pos + len - 1, bits - 1);
    bool sign = std::is_signed_v<T> && (static_cast<U>(a) >> top & 1);
    U field = pos < bits ? static_cast<U>(a) >> pos : U(0);
    unsigned have = pos < bits ? std::min(len, bits - pos) : 0;
    U keep = have >= bits ? ~U(0) : (U(1) << have) - 1;
    return static_cast<T>((field & keep) | (sign ? ~keep : U(0)));
  }
};

/// bfi d, a, b, pos, len: the low bits of a into b.
template <typename T> void bitInsert(Warp &warp, const Op &op, uint32_t mask) {
  const T *a = lanes<T>(warp, op.a), *b = lanes<T>(warp, op.b);
  const uint32_t *p = lanes<uint32_t>(warp, op.c);
  const uint32_t *n = lanes<uint32_t>(warp, warp.code->refs[op.more]);
  each(lanes<T>(warp, op.dst), mask, [=](unsigned i) {
    constexpr unsigned bits = sizeof(T) * 8;
    unsigned pos = p[i] & 0xff, len = n[i] & 0xff;
    if (pos >= bits || len == 0)
      return b[i];
    unsigned have = std::min(len, bits - pos);
    T keep = have >= bits ? ~T(0) : (T(1) << have) - 1;
    return static_cast<T>((b[i] & ~(keep << pos)) | (a[i] & keep) << pos);
  });
}

/// The position of the highest bit that differs from the sign, or all ones.
template <typename T, bool Shift> uint32_t findTop(T a) {
  using U = std::make_unsigned_t<T>;
  U bits = static_cast<U>(std::is_signed_v<T> && a < 0 ? ~a : a);
  if (bits == 0)
    return ~0u;
  auto zeros = static_cast<uint32_t>(std::countl_zero(bits));
  return Shift ? zeros : static_cast<uint32_t>(sizeof(T) * 8 - 1) - zeros;
}
template <typename T> struct Bfind {
  static uint32_t of(T a) { return findTop<T, false>(a); }
};
template <typename T> struct BfindShift {
  static uint32_t of(T a) { return findTop<T, true>(a); }
};

/// The n-th set bit of `mask`, counted from `base` upwards or downwards.
uint32_t fns(uint32_t mask, uint32_t base, int32_t n) {
  base &= 31;
  if (n == 0)
    return mask >> base & 1 ? base : ~0u;
  int step = n > 0 ? 1 : -1;
  int left = n > 0 ? n : -n;
  for (int at = static_cast<int>(base); at >= 0 && at < 32; at += step)
    if ((mask >> at & 1) && --left == 0)
      return static_cast<uint32_t>(at);
  return ~0u;
}

uint32_t bmskClamp(uint32_t position, uint32_t width) {
  if (position >= 32)
    return 0;
  uint32_t bits = width >= 32 ? ~0u : (1u << width) - 1;
  return bits << position;
}
uint32_t bmskWrap(uint32_t position, uint32_t width) {
  width &= 31;
  return ((1u << width) - 1) << (position & 31);
}

uint32_t lop3(uint32_t a, uint32_t b, uint32_t c, unsigned table) {
  uint32_t r = 0;
  for (unsigned i = 0; i != 8; ++i)
    if (table >> i & 1)
      r |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
  return r;
}

void logic3(Warp &warp, const Op &op, uint32_t mask) {
  const uint32_t *a = lanes<uint32_t>(warp, op.a);
  const uint32_t *b = lanes<uint32_t>(warp, op.b);
  const uint32_t *c = lanes<uint32_t>(warp, op.c);
  unsigned table = op.extra;
  each(lanes<uint32_t>(warp, op.dst), mask,
       [=](unsigned i) { return lop3(a[i], b[i], c[i], table); });
}

uint32_t funnelLeft(uint32_t a, uint32_t b, unsigned n) {
  uint64_t both = uint64_t(b) << 32 | a;
  return static_cast<uint32_t>((both << n) >> 32);
}
uint32_t funnelRight(uint32_t a, uint32_t b, unsigned n) {
  uint64_t both = uint64_t(b) << 32 | a;
  return static_cast<uint32_t>(both >> n);
}
template <bool Left, bool Wrap>
uint32_t funnel(uint32_t a, uint32_t b, uint32_t n) {
  n = Wrap ? n & 31 : std::min(n, 32u);
  return Left ? funnelLeft(a, b, n) : funnelRight(a, b, n);
}

// prmt: each result byte is a byte of b:a, or eight times its sign.

uint32_t pickByte(uint64_t bytes, unsigned selector) {
  auto byte = static_cast<uint32_t>(bytes >> 8 * (selector & 7) & 0xff);
  return selector & 8 ? (byte & 0x80 ? 0xff : 0) : byte;
}
uint32_t permute(uint32_t a, uint32_t b, uint32_t c) {
  uint64_t bytes = uint64_t(b) << 32 | a;
  uint32_t r = 0;
  for (unsigned i = 0; i != 4; ++i)
    r |= pickByte(bytes, c >> 4 * i & 15) << 8 * i;
  return r;
}
enum class Permute { F4e, B4e, Rc8, Ecl, Ecr, Rc16 };
template <Permute Mode>
uint32_t permuteMode(uint32_t a, uint32_t b, uint32_t c) {
  uint64_t bytes = uint64_t(b) << 32 | a;
  unsigned n = c & 3;
  uint32_t r = 0;
  for (unsigned i = 0; i != 4; ++i) {
    unsigned from = 0;
    switch (Mode) {
    case Permute::F4e:
      from = n + i;
      break;
    case Permute::B4e:
      from = n - i;
      break;
    case Permute::Rc8:
      from = n;
      break;
    case Permute::Ecl:
      from = std::max(n, i);
      break;
    case Permute::Ecr:
      from = std::min(n, i);
      break;
    case Permute::Rc16:
      from = (n & 1) * 2 + (i & 1);
      break;
    }
    r |= pickByte(bytes, from & 7) << 8 * i;
  }
  return r;
}

template <template <typename> class F> Handler untyped(Type type) {
  return liftForWidth<F, uint16_t, uint32_t, uint64_t>(sizeOf(type));
}
template <template <typename> class F> Handler typed(Type type) {
  return isSigned(type)
             ? liftForWidth<F, int16_t, int32_t, int64_t>(sizeOf(type))
             : untyped<F>(type);
}

// Predicates are masks: their logic is one operation.

template <auto F> void predicateLogic(Warp &warp, const Op &op, uint32_t mask) {
  uint32_t a = predicate(warp, op.a) ^ static_cast<uint32_t>(op.offset);
  uint32_t b = predicate(warp, op.b) ^ op.extra;
  setPredicate(warp, op.dst, mask, F(a, b));
}

template <template <typename> class F> Handler buildLogic(Decoder &d) {
  std::optional<Type> type = d.takeType();
  if (!type)
    return nullptr;
  d.op.kind = OpClass::Integer;
  if (*type != Type::Pred)
    return d.form(untyped<F>(*type), *type, {*type, *type});
  if (!d.expectOperands(3, 3))
    return nullptr;
  uint32_t flipA;
  d.op.dst = d.dst(0, Type::Pred);
  d.op.a = d.predicateSource(1, flipA);
  d.op.b = d.predicateSource(2, d.op.extra);
  d.op.offset = flipA;
  return predicateLogic<F<uint32_t>::of>;
}

Handler buildNot(Decoder &d) {
  std::optional<Type> type = d.takeType();
  if (!type)
    return nullptr;
  d.op.kind = OpClass::Integer;
  if (*type != Type::Pred)
    return d.form(untyped<Not>(*type), *type, {*type});
  uint32_t flip;
  d.op.dst = d.dst(0, Type::Pred);
  d.op.a = d.predicateSource(1, flip);
  d.op.offset = ~flip;
  d.op.b = ConstantRef;
  return predicateLogic<And<uint32_t>::of>;
}

template <template <typename> class F> Handler buildBits(Decoder &d) {
  std::optional<Type> type = d.takeType();
  d.op.kind = OpClass::Integer;
  return type ? d.form(untyped<F>(*type), *type, {*type}) : nullptr;
}
template <template <typename> class F> Handler buildCount(Decoder &d) {
  std::optional<Type> type = d.takeType();
  d.op.kind = OpClass::Integer;
  return type ? d.form(untyped<F>(*type), Type::U32, {*type}) : nullptr;
}
template <template <typename> class F> Handler buildShift(Decoder &d) {
  std::optional<Type> type = d.takeType();
  d.op.kind = OpClass::Integer;
  return type ? d.form(typed<F>(*type), *type, {*type, Type::U32}) : nullptr;
}
Handler buildBfe(Decoder &d) {
  std::optional<Type> type = d.takeType();
  d.op.kind = OpClass::Integer;
  return type && sizeOf(*type) >= 4
             ? d.form(typed<Bfe>(*type), *type, {*type, Type::U32, Type::U32})
             : nullptr;
}
Handler buildBfi(Decoder &d) {
  std::optional<Type> type = d.takeType();
  if (!type || sizeOf(*type) < 4 || !d.expectOperands(5, 5))
    return nullptr;
  d.op.kind = OpClass::Integer;
  d.op.dst = d.dst(0, *type);
  d.op.a = d.src(1, *type);
  d.op.b = d.src(2, *type);
  d.op.c = d.src(3, Type::U32);
  d.op.more = d.refs({d.src(4, Type::U32)});
  return sizeOf(*type) == 4 ? bitInsert<uint32_t> : bitInsert<uint64_t>;
}
Handler buildBfind(Decoder &d) {
  bool shift = d.take("shiftamt");
  std::optional<Type> type = d.takeType();
  if (!type || sizeOf(*type) < 4)
    return nullptr;
  d.op.kind = OpClass::Integer;
  return d.form(shift ? typed<BfindShift>(*type) : typed<Bfind>(*type),
                Type::U32, {*type});
}
Handler buildFns(Decoder &d) {
  d.op.kind = OpClass::Integer;
  return d.take("b32") ? d.form(Lift<fns>::run, Type::B32,
                                {Type::B32, Type::B32, Type::S32})
                       : nullptr;
}
Handler buildBmsk(Decoder &d) {
  bool wrap = d.take("wrap");
  if (!wrap && !d.take("clamp"))
    return nullptr;
  d.op.kind = OpClass::Integer;
  return d.take("b32")
             ? d.form(wrap ? Lift<bmskWrap>::run : Lift<bmskClamp>::run,
                      Type::B32, {Type::B32, Type::B32})
             : nullptr;
}
Handler buildLop3(Decoder &d) {
  if (!d.take("b32") || !d.expectOperands(5, 5))
    return nullptr;
  d.op.kind = OpClass::Integer;
  d.op.dst = d.dst(0, Type::B32);
  d.op.a = d.src(1, Type::B32);
  d.op.b = d.src(2, Type::B32);
  d.op.c = d.src(3, Type::B32);
  std::optional<int64_t> table = d.immediate(4);
  d.op.extra = static_cast<uint32_t>(table.value_or(0) & 0xff);
  return logic3;
}
Handler buildShf(Decoder &d) {
  bool left = d.take("l");
  if (!left && !d.take("r"))
    return nullptr;
  bool wrap = d.take("wrap");
  if ((!wrap && !d.take("clamp")) || !d.take("b32"))
    return nullptr;
  d.op.kind = OpClass::Integer;
  Handler handler = left ? (wrap ? Lift<funnel<true, true>>::run
                                 : Lift<funnel<true, false>>::run)
                         : (wrap ? Lift<funnel<false, true>>::run
                                 : Lift<funnel<false, false>>::run);
  return d.form(handler, Type::B32, {Type::B32, Type::B32, Type::U32});
}
Handler buildPrmt(Decoder &d) {
  static constexpr std::pair<std::string_view, Handler> modes[] = {
      {"f4e", Lift<permuteMode<Permute::F4e>>::run},
      {"b4e", Lift<permuteMode<Permute::B4e>>::run},
      {"rc8", Lift<permuteMode<Permute::Rc8>>::run},
      {"ecl", Lift<permuteMode<Permute::Ecl>>::run},
      {"ecr", Lift<permuteMode<Permute::Ecr>>::run},
      {"rc16", Lift<permuteMode<Permute::Rc16>>::run}};
  if (!d.take("b32"))
    return nullptr;
  Handler handler = Lift<permute>::run;
  for (auto [name, special] : modes)
    if (d.take(name))
      handler = special;
  d.op.kind = OpClass::Integer;
  return d.form(handler, Type::B32, {Type::B32, Type::B32, Type::B32});
}

constexpr RuleEntry rules[] = {
    {"and", buildLogic<And>},  {"or", buildLogic<Or>},
    {"xor", buildLogic<Xor>},  {"not", buildNot},
    {"cnot", buildBits<Cnot>}, {"shl", buildShift<Shl>},
    {"shr", buildShift<Shr>},  {"popc", buildCount<Popc>},
    {"clz", buildCount<Clz>},  {"brev", buildBits<Brev>},
    {"bfe", buildBfe},         {"bfi", buildBfi},
    {"bfind", buildBfind},     {"fns", buildFns},
    {"bmsk", buildBmsk},       {"lop3", buildLop3},
    {"shf", buildShf},         {"prmt", buildPrmt},
};

} // namespace

std::span<const RuleEntry> emu::bitRules() { return rules; }
