//===- Integer.cpp - integer arithmetic ----------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/emulator/exec/Decoder.h"
#include "runtime/emulator/exec/Lanes.h"

#include <algorithm>
#include <type_traits>

using namespace tenon;
using namespace tenon::emu;
using ptx::Type;

namespace {

template <typename T> using Unsigned = std::make_unsigned_t<T>;
template <typename T>
using Wide = std::conditional_t<
    sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>,
    std::conditional_t<
        sizeof(T) == 4,
        std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>,
        std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>>>;

// Sums and products wrap: they are computed on unsigned values. (16-bit ones
// in 32 bits, because C++ would compute them as int.)
template <typename T>
using Work = std::conditional_t<sizeof(T) == 2, uint32_t, Unsigned<T>>;

template <typename T> struct Add {
  static T of(T a, T b) {
    return static_cast<T>(static_cast<Work<T>>(a) + static_cast<Work<T>>(b));
  }
};
template <typename T> struct Sub {
  static T of(T a, T b) {
    return static_cast<T>(static_cast<Work<T>>(a) - static_cast<Work<T>>(b));
  }
};
template <typename T> struct MulLo {
  static T of(T a, T b) {
    return static_cast<T>(static_cast<Work<T>>(a) * static_cast<Work<T>>(b));
  }
};
template <typename T> struct MulHi {
  static T of(T a, T b) {
    return static_cast<T>((Wide<T>(a) * Wide<T>(b)) >> (sizeof(T) * 8));
  }
};
template <typename T> struct MulWide {
  static Wide<T> of(T a, T b) { return Wide<T>(a) * Wide<T>(b); }
};
template <typename T> struct MadLo {
  static T of(T a, T b, T c) { return Add<T>::of(MulLo<T>::of(a, b), c); }
};
template <typename T> struct MadHi {
  static T of(T a, T b, T c) { return Add<T>::of(MulHi<T>::of(a, b), c); }
};
template <typename T> struct MadWide {
  static Wide<T> of(T a, T b, Wide<T> c) {
    return Add<Wide<T>>::of(MulWide<T>::of(a, b), c);
  }
};
template <typename T> struct Min {
  static T of(T a, T b) { return a < b ? a : b; }
};
template <typename T> struct Max {
  static T of(T a, T b) { return a > b ? a : b; }
};
// Division by zero has no defined result but must not stop anything; what GPUs
// return is all ones.
template <typename T> struct Div {
  static T of(T a, T b) {
    if (b == 0)
      return static_cast<T>(-1);
    if (std::is_signed_v<T> && b == static_cast<T>(-1))
      return Sub<T>::of(0, a);
    return static_cast<T>(a / b);
  }
};
template <typename T> struct Rem {
  static T of(T a, T b) {
    if (b == 0)
      return a;
    if (std::is_signed_v<T> && b == static_cast<T>(-1))
      return 0;
    return static_cast<T>(a % b);
  }
};
template <typename T> struct Neg {
  static T of(T a) { return Sub<T>::of(0, a); }
};
template <typename T> struct Abs {
  static T of(T a) { return a < 0 ? Sub<T>::of(0, a) : a; }
};
template <typename T> struct Sad {
  static T of(T a, T b, T c) {
    return Add<T>::of(c, a < b ? Sub<T>::of(b, a) : Sub<T>::of(a, b));
  }
};

int32_t saturate(int64_t value) {
  return static_cast<int32_t>(std::clamp<int64_t>(value, INT32_MIN, INT32_MAX));
}
int32_t addSat(int32_t a, int32_t b) { return saturate(int64_t(a) + b); }
int32_t subSat(int32_t a, int32_t b) { return saturate(int64_t(a) - b); }
int32_t madHiSat(int32_t a, int32_t b, int32_t c) {
  return saturate(int64_t(MulHi<int32_t>::of(a, b)) + c);
}
int32_t minRelu(int32_t a, int32_t b) { return std::max(std::min(a, b), 0); }
int32_t maxRelu(int32_t a, int32_t b) { return std::max(std::max(a, b), 0); }

/// The two 16-bit halves of a register, each through F.
template <typename T, T (*F)(T, T), bool Relu = false>
uint32_t halves(uint32_t a, uint32_t b) {
  T low = F(static_cast<T>(a), static_cast<T>(b));
  T high = F(static_cast<T>(a >> 16), static_cast<T>(b >> 16));
  if (Relu) {
    low = std::max<T>(low, 0);
    high = std::max<T>(high, 0);
  }
  return static_cast<uint16_t>(low) | uint32_t(static_cast<uint16_t>(high))
                                          << 16;
}

bool isNatural(Type type) {
  return type == Type::U16 || type == Type::U32 || type == Type::U64;
}
bool isInteger(Type type) {
  return type == Type::S16 || type == Type::S32 || type == Type::S64;
}

template <template <typename> class F> Handler signedIntegers(Type type) {
  return isInteger(type)
             ? liftForWidth<F, int16_t, int32_t, int64_t>(sizeOf(type))
             : nullptr;
}
template <template <typename> class F> Handler integers(Type type) {
  return isNatural(type)
             ? liftForWidth<F, uint16_t, uint32_t, uint64_t>(sizeOf(type))
             : signedIntegers<F>(type);
}

/// Of an F whose results are twice as wide.
template <template <typename> class F> Handler widening(Type type) {
  if (isInteger(type))
    return liftForWidth<F, int16_t, int32_t>(sizeOf(type));
  return isNatural(type) ? liftForWidth<F, uint16_t, uint32_t>(sizeOf(type))
                         : nullptr;
}

Type wider(Type type) {
  switch (type) {
  case Type::U16:
    return Type::U32;
  case Type::S16:
    return Type::S32;
  case Type::U32:
    return Type::U64;
  default:
    return Type::S64;
  }
}

// Carries. C of the condition code is one bit a lane.

enum class Carry { Add, Sub, MadLo, MadHi };

/// d = a op b (+ carry), carry out; borrow for subtraction.
template <typename T, Carry Kind, bool In, bool Out>
void carrying(Warp &warp, const Op &op, uint32_t mask) {
  const T *a = lanes<T>(warp, op.a);
  const T *b = lanes<T>(warp, op.b);
  const T *c = lanes<T>(warp, op.c);
  T *d = lanes<T>(warp, op.dst);
  uint32_t out = warp.carry;
  forLanes(mask, [&](unsigned i) {
    using W = unsigned __int128;
    T carry = In ? warp.carry >> i & 1 : 0;
    W left = a[i], right = b[i];
    if (Kind == Carry::MadLo || Kind == Carry::MadHi) {
      W product = W(a[i]) * b[i];
      left = static_cast<T>(Kind == Carry::MadLo ? product
                                                 : product >> sizeof(T) * 8);
      right = c[i];
    }
    W sum = Kind == Carry::Sub ? left - right - carry : left + right + carry;
    d[i] = static_cast<T>(sum);
    bool bit = (sum >> sizeof(T) * 8) != 0;
    out = (out & ~(1u << i)) | uint32_t(bit) << i;
  });
  if (Out)
    warp.carry = out;
}

template <Carry Kind> Handler carryHandler(Type type, bool in, bool out) {
  bool wide = sizeOf(type) == 8;
  if (sizeOf(type) < 4 || (!in && !out))
    return nullptr;
  if (wide)
    return in ? (out ? carrying<uint64_t, Kind, true, true>
                     : carrying<uint64_t, Kind, true, false>)
              : carrying<uint64_t, Kind, false, true>;
  return in ? (out ? carrying<uint32_t, Kind, true, true>
                   : carrying<uint32_t, Kind, true, false>)
            : carrying<uint32_t, Kind, false, true>;
}

/// The signed high product of madc.hi.s32 has other bits than the unsigned.
bool signedHigh(Type type) { return ptx::isSigned(type); }

template <Carry Kind> Handler buildCarrySum(Decoder &d, bool in) {
  bool out = d.take("cc");
  std::optional<Type> type = d.takeType();
  if (!type)
    return nullptr;
  d.op.kind = OpClass::Integer;
  return d.form(carryHandler<Kind>(*type, in, out), *type, {*type, *type});
}

Handler buildMadCarry(Decoder &d, bool in) {
  bool high = d.take("hi");
  if (!high && !d.take("lo"))
    return nullptr;
  bool out = d.take("cc");
  std::optional<Type> type = d.takeType();
  if (!type || (high && signedHigh(*type)))
    return nullptr;
  d.op.kind = OpClass::Integer;
  Handler handler = high ? carryHandler<Carry::MadHi>(*type, in, out)
                         : carryHandler<Carry::MadLo>(*type, in, out);
  return d.form(handler, *type, {*type, *type, *type});
}

Handler buildAddc(Decoder &d) { return buildCarrySum<Carry::Add>(d, true); }
Handler buildSubc(Decoder &d) { return buildCarrySum<Carry::Sub>(d, true); }
Handler buildMadc(Decoder &d) { return buildMadCarry(d, true); }

// Rules.

template <typename... Types> Handler binary(Decoder &d, Handler h, Type type) {
  d.op.kind = OpClass::Integer;
  return d.form(h, type, {type, type});
}

Handler buildAdd(Decoder &d) {
  if (d.peek() == "cc")
    return buildCarrySum<Carry::Add>(d, false);
  bool sat = d.take("sat");
  std::optional<Type> type = d.takeType();
  if (!type || (sat && *type != Type::S32))
    return nullptr;
  if (*type == Type::U16x2 || *type == Type::S16x2)
    return binary(d, Lift<halves<uint16_t, Add<uint16_t>::of>>::run, *type);
  return binary(d, sat ? Lift<addSat>::run : integers<Add>(*type), *type);
}

Handler buildSub(Decoder &d) {
  if (d.peek() == "cc")
    return buildCarrySum<Carry::Sub>(d, false);
  bool sat = d.take("sat");
  std::optional<Type> type = d.takeType();
  if (!type || (sat && *type != Type::S32))
    return nullptr;
  return binary(d, sat ? Lift<subSat>::run : integers<Sub>(*type), *type);
}

Handler buildMul(Decoder &d) {
  bool high = d.take("hi"), wide = !high && d.take("wide");
  if (!high && !wide && !d.take("lo"))
    return nullptr;
  std::optional<Type> type = d.takeType();
  if (!type)
    return nullptr;
  d.op.kind = OpClass::Integer;
  if (wide)
    return d.form(widening<MulWide>(*type), wider(*type), {*type, *type});
  return binary(d, high ? integers<MulHi>(*type) : integers<MulLo>(*type),
                *type);
}

Handler buildMad(Decoder &d) {
  if (d.peek(1) == "cc")
    return buildMadCarry(d, false);
  bool high = d.take("hi"), wide = !high && d.take("wide");
  if (!high && !wide && !d.take("lo"))
    return nullptr;
  bool sat = high && d.take("sat");
  std::optional<Type> type = d.takeType();
  if (!type || (sat && *type != Type::S32))
    return nullptr;
  d.op.kind = OpClass::Integer;
  if (wide)
    return d.form(widening<MadWide>(*type), wider(*type),
                  {*type, *type, wider(*type)});
  Handler handler = sat    ? Lift<madHiSat>::run
                    : high ? integers<MadHi>(*type)
                           : integers<MadLo>(*type);
  return d.form(handler, *type, {*type, *type, *type});
}

template <template <typename> class F> Handler buildPlain(Decoder &d) {
  std::optional<Type> type = d.takeType();
  return type ? binary(d, integers<F>(*type), *type) : nullptr;
}

template <template <typename> class F> Handler buildUnary(Decoder &d) {
  std::optional<Type> type = d.takeType();
  if (!type)
    return nullptr;
  d.op.kind = OpClass::Integer;
  return d.form(signedIntegers<F>(*type), *type, {*type});
}

template <template <typename> class F> Handler buildMinMax(Decoder &d) {
  constexpr bool isMin = std::is_same_v<F<int>, Min<int>>;
  bool relu = d.take("relu");
  std::optional<Type> type = d.takeType();
  if (!type)
    return nullptr;
  Handler handler = integers<F>(*type);
  if (*type == Type::U16x2)
    handler = Lift<halves<uint16_t, F<uint16_t>::of>>::run;
  if (*type == Type::S16x2)
    handler = relu ? Lift<halves<int16_t, F<int16_t>::of, true>>::run
                   : Lift<halves<int16_t, F<int16_t>::of>>::run;
  else if (relu)
    handler = *type != Type::S32 ? nullptr
              : isMin            ? Lift<minRelu>::run
                                 : Lift<maxRelu>::run;
  return binary(d, handler, *type);
}

Handler buildSad(Decoder &d) {
  std::optional<Type> type = d.takeType();
  if (!type)
    return nullptr;
  d.op.kind = OpClass::Integer;
  return d.form(integers<Sad>(*type), *type, {*type, *type, *type});
}

/// 24-bit products.
template <typename T, bool High> T mul24(T a, T b) {
  auto cut = [](T x) {
    return static_cast<T>(static_cast<T>(static_cast<uint32_t>(x) << 8) >> 8);
  };
  Wide<T> product = Wide<T>(cut(a)) * cut(b);
  return static_cast<T>(High ? product >> 16 : product);
}

Handler buildMul24(Decoder &d) {
  bool high = d.take("hi");
  if (!high && !d.take("lo"))
    return nullptr;
  std::optional<Type> type = d.takeType();
  if (type == Type::U32)
    return binary(d,
                  high ? Lift<mul24<uint32_t, true>>::run
                       : Lift<mul24<uint32_t, false>>::run,
                  *type);
  if (type == Type::S32)
    return binary(d,
                  high ? Lift<mul24<int32_t, true>>::run
                       : Lift<mul24<int32_t, false>>::run,
                  *type);
  return nullptr;
}

/// Dot products of bytes: dp4a of four pairs, dp2a of two 16-bit values with
/// two bytes.
template <typename A, typename B>
uint32_t dp4a(uint32_t a, uint32_t b, uint32_t c) {
  for (unsigned i = 0; i != 4; ++i)
    c += static_cast<uint32_t>(int32_t(static_cast<A>(a >> 8 * i)) *
                               int32_t(static_cast<B>(b >> 8 * i)));
  return c;
}
template <typename A, typename B, bool High>
uint32_t dp2a(uint32_t a, uint32_t b, uint32_t c) {
  for (unsigned i = 0; i != 2; ++i)
    c += static_cast<uint32_t>(
        int32_t(static_cast<A>(a >> 16 * i)) *
        int32_t(static_cast<B>(b >> (8 * i + (High ? 16 : 0)))));
  return c;
}

Handler buildDp4a(Decoder &d) {
  std::optional<Type> a = d.takeType(), b = d.takeType();
  if (!a || !b || (a != Type::U32 && a != Type::S32) ||
      (b != Type::U32 && b != Type::S32))
    return nullptr;
  static constexpr Handler handlers[] = {
      Lift<dp4a<uint8_t, uint8_t>>::run, Lift<dp4a<uint8_t, int8_t>>::run,
      Lift<dp4a<int8_t, uint8_t>>::run, Lift<dp4a<int8_t, int8_t>>::run};
  d.op.kind = OpClass::Integer;
  return d.form(handlers[(a == Type::S32) * 2 + (b == Type::S32)], Type::B32,
                {Type::B32, Type::B32, Type::B32});
}

template <bool High> Handler dp2aHandler(bool signedA, bool signedB) {
  if (signedA)
    return signedB ? Lift<dp2a<int16_t, int8_t, High>>::run
                   : Lift<dp2a<int16_t, uint8_t, High>>::run;
  return signedB ? Lift<dp2a<uint16_t, int8_t, High>>::run
                 : Lift<dp2a<uint16_t, uint8_t, High>>::run;
}

Handler buildDp2a(Decoder &d) {
  bool high = d.take("hi");
  if (!high && !d.take("lo"))
    return nullptr;
  std::optional<Type> a = d.takeType(), b = d.takeType();
  if (!a || !b || (a != Type::U32 && a != Type::S32) ||
      (b != Type::U32 && b != Type::S32))
    return nullptr;
  bool sa = a == Type::S32, sb = b == Type::S32;
  d.op.kind = OpClass::Integer;
  return d.form(high ? dp2aHandler<true>(sa, sb) : dp2aHandler<false>(sa, sb),
                Type::B32, {Type::B32, Type::B32, Type::B32});
}

constexpr RuleEntry rules[] = {
    {"add", buildAdd},         {"sub", buildSub},
    {"mul", buildMul},         {"mad", buildMad},
    {"div", buildPlain<Div>},  {"rem", buildPlain<Rem>},
    {"min", buildMinMax<Min>}, {"max", buildMinMax<Max>},
    {"neg", buildUnary<Neg>},  {"abs", buildUnary<Abs>},
    {"sad", buildSad},         {"addc", buildAddc},
    {"subc", buildSubc},       {"madc", buildMadc},
    {"mul24", buildMul24},     {"dp4a", buildDp4a},
    {"dp2a", buildDp2a},
};

} // namespace

std::span<const RuleEntry> emu::integerRules() { return rules; }
