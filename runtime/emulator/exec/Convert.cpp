//===- Convert.cpp - conversions -----------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/emulator/exec/Decoder.h"
#include "runtime/emulator/exec/HalfMath.h"
#include "runtime/emulator/exec/Lanes.h"

#include <algorithm>
#include <cstring>

using namespace tenon;
using namespace tenon::emu;
using ptx::Type;
using tensor::Element;
using tensor::Rounding;

namespace {

// Any conversion: operands are widened to int64 or double, converted, and
// narrowed. The common ones have handlers of their own below.

union Values {
  int64_t integers[32];
  double floats[32];
};

struct Conversion {
  Type from, to;
  void (*load)(const Warp &warp, Ref ref, Values &values);
  void (*store)(Warp &warp, Ref ref, uint32_t mask, const Values &values);
  Rounding rounding = Rounding::NearestEven;
  bool toInteger = false; // .rni and its like: round to an integer
  bool ftz = false, sat = false, relu = false, satfinite = false;
};

bool isFloat(Type type) {
  return type == Type::F16 || type == Type::BF16 || type == Type::F32 ||
         type == Type::F64;
}

Element elementOf(Type type) {
  switch (type) {
  case Type::F16:
  case Type::F16x2:
    return Element::F16;
  case Type::BF16:
  case Type::BF16x2:
    return Element::BF16;
  case Type::TF32:
    return Element::TF32;
  case Type::E4M3x2:
    return Element::E4M3;
  case Type::E5M2x2:
    return Element::E5M2;
  case Type::F64:
    return Element::F64;
  default:
    return Element::F32;
  }
}

template <typename R, typename T>
void loadInteger(const Warp &warp, Ref ref, Values &values) {
  const R *r = lanes<R>(warp, ref);
  for (unsigned i = 0; i != 32; ++i)
    values.integers[i] = static_cast<int64_t>(static_cast<T>(r[i]));
}
template <typename T>
void loadFloat(const Warp &warp, Ref ref, Values &values) {
  const T *r = lanes<T>(warp, ref);
  for (unsigned i = 0; i != 32; ++i)
    values.floats[i] = static_cast<double>(r[i]);
}
struct Half {
  uint16_t bits;
  operator double() const { return tensor::f16ToFloat(bits); }
};
struct Brain {
  uint16_t bits;
  operator double() const { return tensor::bf16ToFloat(bits); }
};

template <typename R, typename T>
void storeInteger(Warp &warp, Ref ref, uint32_t mask, const Values &values) {
  each(lanes<R>(warp, ref), mask, [&](unsigned i) {
    return static_cast<R>(static_cast<T>(values.integers[i]));
  });
}

template <typename T> auto integerLoader(unsigned bytes) {
  return bytes == 2   ? loadInteger<uint16_t, T>
         : bytes == 4 ? loadInteger<uint32_t, T>
                      : loadInteger<uint64_t, T>;
}
template <typename T> auto integerStorer(unsigned bytes) {
  return bytes == 2   ? storeInteger<uint16_t, T>
         : bytes == 4 ? storeInteger<uint32_t, T>
                      : storeInteger<uint64_t, T>;
}

/// Calls f with a value of the C++ type of an integer type.
template <typename F> auto withInteger(Type type, F &&f) {
  switch (type) {
  case Type::U8:
    return f(uint8_t());
  case Type::S8:
    return f(int8_t());
  case Type::U16:
    return f(uint16_t());
  case Type::S16:
    return f(int16_t());
  case Type::U32:
    return f(uint32_t());
  case Type::S32:
    return f(int32_t());
  case Type::U64:
    return f(uint64_t());
  default:
    return f(int64_t());
  }
}
bool isInteger(Type type) { return type >= Type::U8 && type <= Type::S64; }

bool chooseLoader(Conversion &c, unsigned bytes) {
  switch (c.from) {
  case Type::F16:
    c.load = loadFloat<Half>;
    return bytes == 2;
  case Type::BF16:
    c.load = loadFloat<Brain>;
    return bytes == 2;
  case Type::F32:
    c.load = loadFloat<float>;
    return bytes == 4;
  case Type::F64:
    c.load = loadFloat<double>;
    return bytes == 8;
  default:
    if (!isInteger(c.from))
      return false;
    c.load = withInteger(c.from, [&](auto value) {
      return integerLoader<decltype(value)>(bytes);
    });
    return bytes >= sizeOf(c.from);
  }
}

bool chooseStorer(Conversion &c, unsigned bytes) {
  if (isFloat(c.to)) {
    c.store = sizeOf(c.to) == 2   ? storeInteger<uint16_t, uint16_t>
              : sizeOf(c.to) == 4 ? storeInteger<uint32_t, uint32_t>
                                  : storeInteger<uint64_t, uint64_t>;
    return bytes == sizeOf(c.to);
  }
  if (!isInteger(c.to))
    return false;
  c.store = withInteger(
      c.to, [&](auto value) { return integerStorer<decltype(value)>(bytes); });
  return bytes >= sizeOf(c.to);
}

int64_t saturateInteger(int64_t value, Type from, Type to) {
  bool huge = from == Type::U64 && value < 0;
  return withInteger(to, [&](auto sample) -> int64_t {
    using T = decltype(sample);
    using Limits = std::numeric_limits<T>;
    if (huge)
      return static_cast<int64_t>(Limits::max());
    if (sizeof(T) == 8)
      return Limits::is_signed ? value : std::max<int64_t>(value, 0);
    return std::clamp(value, static_cast<int64_t>(Limits::min()),
                      static_cast<int64_t>(Limits::max()));
  });
}

double roundToInteger(double value, Rounding rounding) {
  switch (rounding) {
  case Rounding::Zero:
    return std::trunc(value);
  case Rounding::Down:
    return std::floor(value);
  case Rounding::Up:
    return std::ceil(value);
  default:
    return std::nearbyint(value);
  }
}

/// NaN is 0, or the lowest value where either side has 64 bits.
int64_t floatToInteger(const Conversion &c, double value) {
  if (value != value) {
    bool wide = c.from == Type::F64 || sizeOf(c.to) == 8;
    return wide ? static_cast<int64_t>(uint64_t(1) << (sizeOf(c.to) * 8 - 1))
                : 0;
  }
  value = roundToInteger(value, c.rounding);
  return withInteger(c.to, [&](auto sample) -> int64_t {
    using T = decltype(sample);
    using Limits = std::numeric_limits<T>;
    if (value <= static_cast<double>(Limits::min()))
      return static_cast<int64_t>(Limits::min());
    if (value >= static_cast<double>(Limits::max()))
      return static_cast<int64_t>(Limits::max());
    return static_cast<int64_t>(static_cast<T>(value));
  });
}

/// An integer as a double: exact, or cut off with its last bit set when
/// something was lost, which later rounding cannot tell from the whole.
double widenInteger(int64_t value, bool isUnsigned, bool &exact) {
  bool negative = !isUnsigned && value < 0;
  auto magnitude = static_cast<uint64_t>(value);
  if (negative)
    magnitude = ~magnitude + 1;
  int bits = 64 - std::countl_zero(magnitude | 1);
  int cut = std::max(0, bits - 53);
  uint64_t kept = magnitude >> cut;
  exact = (kept << cut) == magnitude;
  kept |= !exact;
  double wide = std::ldexp(static_cast<double>(kept), cut);
  return negative ? -wide : wide;
}

uint64_t integerToFloat(const Conversion &c, int64_t value) {
  bool exact;
  double wide = widenInteger(value, c.from == Type::U64, exact);
  if (c.to == Type::F64 && !exact) {
    // The double's own neighbours decide.
    bool isUnsigned = c.from == Type::U64;
    long double whole = isUnsigned ? static_cast<long double>(uint64_t(value))
                                   : static_cast<long double>(value);
    auto nearest = static_cast<double>(whole);
    bool towardsLess = c.rounding == Rounding::Down ||
                       (c.rounding == Rounding::Zero && whole > 0);
    bool towardsMore = c.rounding == Rounding::Up ||
                       (c.rounding == Rounding::Zero && whole < 0);
    if (towardsLess && nearest > whole)
      nearest = std::nextafter(nearest, -INFINITY);
    if (towardsMore && nearest < whole)
      nearest = std::nextafter(nearest, INFINITY);
    return std::bit_cast<uint64_t>(nearest);
  }
  return tensor::encode(elementOf(c.to), wide, {c.rounding, false, false});
}

uint64_t floatToFloat(const Conversion &c, double value) {
  bool single = c.from == Type::F32 || c.to == Type::F32;
  if (c.ftz && c.from == Type::F32)
    value = flush(static_cast<float>(value));
  if (c.toInteger)
    value = roundToInteger(value, c.rounding);
  if (c.sat)
    value = value > 0 ? std::min(value, 1.0) : 0.0;
  if (c.relu && value < 0)
    value = 0;
  if (c.to == Type::F64)
    return std::bit_cast<uint64_t>(value);
  uint64_t bits =
      tensor::encode(elementOf(c.to), value, {c.rounding, c.satfinite, c.relu});
  if (c.ftz && single && c.to == Type::F32)
    bits = floatToBits(flush(bitsToFloat(static_cast<uint32_t>(bits))));
  return bits;
}

void convert(Warp &warp, const Op &op, uint32_t mask) {
  const auto &c =
      *static_cast<const Conversion *>(warp.code->objects[op.extra]);
  Values in, result;
  c.load(warp, op.a, in);
  bool fromFloat = isFloat(c.from), toFloat = isFloat(c.to);
  forLanes(mask, [&](unsigned i) {
    if (fromFloat && toFloat)
      result.integers[i] = static_cast<int64_t>(floatToFloat(c, in.floats[i]));
    else if (fromFloat)
      result.integers[i] =
          floatToInteger(c, c.ftz ? flush(float(in.floats[i])) : in.floats[i]);
    else if (toFloat)
      result.integers[i] =
          static_cast<int64_t>(integerToFloat(c, in.integers[i]));
    else
      result.integers[i] = c.sat ? saturateInteger(in.integers[i], c.from, c.to)
                                 : in.integers[i];
  });
  c.store(warp, op.dst, mask, result);
}

/// Between integers without saturation.
void convertIntegers(Warp &warp, const Op &op, uint32_t mask) {
  const auto &c =
      *static_cast<const Conversion *>(warp.code->objects[op.extra]);
  Values values;
  c.load(warp, op.a, values);
  c.store(warp, op.dst, mask, values);
}

// The common ones.

float fromF16(F16 a) { return a; }
float fromBF16(BF16 a) { return a; }
F16 toF16(float a) { return F16::round(a); }
BF16 toBF16(float a) { return BF16::round(a); }
float fromS32(int32_t a) { return static_cast<float>(a); }
float fromU32(uint32_t a) { return static_cast<float>(a); }
double widen(float a) { return a; }
uint32_t packF16(float a, float b) {
  return F16::round(b).bits | uint32_t(F16::round(a).bits) << 16;
}
uint32_t packBF16(float a, float b) {
  return BF16::round(b).bits | uint32_t(BF16::round(a).bits) << 16;
}

Handler quick(const Conversion &c) {
  if (c.ftz || c.sat || c.relu || c.satfinite || c.toInteger ||
      c.rounding != Rounding::NearestEven)
    return nullptr;
  if (c.from == Type::F16 && c.to == Type::F32)
    return Lift<fromF16>::run;
  if (c.from == Type::BF16 && c.to == Type::F32)
    return Lift<fromBF16>::run;
  if (c.from == Type::F32 && c.to == Type::F16)
    return Lift<toF16>::run;
  if (c.from == Type::F32 && c.to == Type::BF16)
    return Lift<toBF16>::run;
  if (c.from == Type::S32 && c.to == Type::F32)
    return Lift<fromS32>::run;
  if (c.from == Type::U32 && c.to == Type::F32)
    return Lift<fromU32>::run;
  if (c.from == Type::F32 && c.to == Type::F64)
    return Lift<widen>::run;
  return nullptr;
}

// Packed conversions: two values at once, a into the high half.

struct Packed {
  Element from, to;
  tensor::EncodeOptions options;
};

const Packed &packedOf(const Warp &warp, const Op &op) {
  return *static_cast<const Packed *>(warp.code->objects[op.extra]);
}

/// Two f32 registers into one register.
template <typename D> void packFloats(Warp &warp, const Op &op, uint32_t mask) {
  const Packed &c = packedOf(warp, op);
  const float *a = lanes<float>(warp, op.a), *b = lanes<float>(warp, op.b);
  unsigned half = sizeof(D) * 4;
  D *d = lanes<D>(warp, op.dst);
  forLanes(mask, [&](unsigned i) {
    d[i] = static_cast<D>(tensor::encode(c.to, b[i], c.options) |
                          tensor::encode(c.to, a[i], c.options) << half);
  });
}

/// Pairs of one format into pairs of another.
template <typename D, typename S>
void convertPairs(Warp &warp, const Op &op, uint32_t mask) {
  const Packed &c = packedOf(warp, op);
  const S *a = lanes<S>(warp, op.a);
  D *d = lanes<D>(warp, op.dst);
  constexpr unsigned from = sizeof(S) * 4, to = sizeof(D) * 4;
  forLanes(mask, [&](unsigned i) {
    uint64_t low = a[i] & ((uint64_t(1) << from) - 1);
    uint64_t high = uint64_t(a[i]) >> from;
    d[i] = static_cast<D>(
        tensor::encode(c.to, tensor::decode(c.from, low), c.options) |
        tensor::encode(c.to, tensor::decode(c.from, high), c.options) << to);
  });
}

void roundTF32(Warp &warp, const Op &op, uint32_t mask) {
  const Packed &c = packedOf(warp, op);
  const float *a = lanes<float>(warp, op.a);
  uint32_t *d = lanes<uint32_t>(warp, op.dst);
  forLanes(mask, [&](unsigned i) {
    d[i] =
        static_cast<uint32_t>(tensor::encode(Element::TF32, a[i], c.options));
  });
}

/// cvt.pack: two saturated integers, below which 8-bit ones leave room for c.
void packIntegers(Warp &warp, const Op &op, uint32_t mask) {
  const int32_t *a = lanes<int32_t>(warp, op.a),
                *b = lanes<int32_t>(warp, op.b);
  const uint32_t *c = lanes<uint32_t>(warp, op.c);
  auto to = static_cast<Type>(op.extra);
  unsigned bits = sizeOf(to) * 8;
  uint32_t field = (1u << bits) - 1;
  each(lanes<uint32_t>(warp, op.dst), mask, [&](unsigned i) {
    auto cut = [&](int32_t v) {
      return static_cast<uint32_t>(saturateInteger(v, Type::S32, to)) & field;
    };
    uint32_t both = cut(b[i]) | cut(a[i]) << bits;
    return bits == 16 ? both : both | c[i] << 16;
  });
}

// Rules.

struct Modifiers {
  std::optional<Rounding> rounding;
  bool toInteger = false;
};

Modifiers takeRounding(Decoder &d) {
  static constexpr std::pair<std::string_view, Rounding> names[] = {
      {"rn", Rounding::NearestEven}, {"rna", Rounding::NearestAway},
      {"rz", Rounding::Zero},        {"rm", Rounding::Down},
      {"rp", Rounding::Up},          {"rni", Rounding::NearestEven},
      {"rzi", Rounding::Zero},       {"rmi", Rounding::Down},
      {"rpi", Rounding::Up}};
  for (auto [name, rounding] : names)
    if (d.take(name))
      return {rounding, name.size() == 3 && name != "rna"};
  return {};
}

bool isPair(Type type) {
  return type == Type::F16x2 || type == Type::BF16x2 || type == Type::E4M3x2 ||
         type == Type::E5M2x2;
}

Handler buildPacked(Decoder &d, Type to, Type from, Packed packed) {
  packed.to = elementOf(to);
  packed.from = elementOf(from);
  bool plain = !packed.options.relu && !packed.options.saturateFinite &&
               packed.options.rounding == Rounding::NearestEven;
  d.op.extra = d.keep(std::make_shared<const Packed>(packed));
  if (to == Type::TF32)
    return from == Type::F32 ? d.form(roundTF32, Type::B32, {Type::F32})
                             : nullptr;
  Type result = sizeOf(to) == 2 ? Type::B16 : Type::B32;
  if (from == Type::F32) {
    Handler handler =
        sizeOf(to) == 2 ? packFloats<uint16_t> : packFloats<uint32_t>;
    if (plain && to == Type::F16x2)
      handler = Lift<packF16>::run;
    if (plain && to == Type::BF16x2)
      handler = Lift<packBF16>::run;
    return d.form(handler, result, {Type::F32, Type::F32});
  }
  if (!isPair(from))
    return nullptr;
  Type source = sizeOf(from) == 2 ? Type::B16 : Type::B32;
  Handler handler =
      sizeOf(to) == 2 ? (sizeOf(from) == 2 ? convertPairs<uint16_t, uint16_t>
                                           : convertPairs<uint16_t, uint32_t>)
                      : (sizeOf(from) == 2 ? convertPairs<uint32_t, uint16_t>
                                           : convertPairs<uint32_t, uint32_t>);
  return d.form(handler, result, {source});
}

Handler buildPack(Decoder &d) {
  if (!d.take("sat"))
    return nullptr;
  std::optional<Type> to = d.takeType(), from = d.takeType();
  if (!to || from != Type::S32 || !isInteger(*to) || sizeOf(*to) > 2)
    return nullptr;
  bool three = d.take("b32");
  if (three != (sizeOf(*to) == 1))
    return nullptr;
  d.op.extra = static_cast<uint32_t>(*to);
  if (three)
    return d.form(packIntegers, Type::B32, {Type::S32, Type::S32, Type::B32});
  return d.form(packIntegers, Type::B32, {Type::S32, Type::S32});
}

Handler buildCvt(Decoder &d) {
  d.op.kind = OpClass::Convert;
  if (d.take("pack"))
    return buildPack(d);
  Modifiers m = takeRounding(d);
  Conversion c{};
  for (bool more = true; more;) {
    more = false;
    for (auto [name, flag] :
         {std::pair{"ftz", &c.ftz}, std::pair{"sat", &c.sat},
          std::pair{"relu", &c.relu}, std::pair{"satfinite", &c.satfinite}})
      if (d.take(name))
        *flag = more = true;
  }
  std::optional<Type> to = d.takeType(), from = d.takeType();
  if (!to || !from)
    return nullptr;
  c.to = *to;
  c.from = *from;
  c.rounding = m.rounding.value_or(Rounding::NearestEven);
  c.toInteger = m.toInteger;
  if (isPair(*to) || *to == Type::TF32)
    return buildPacked(d, *to, *from,
                       {{}, {}, {c.rounding, c.satfinite, c.relu}});
  if (!d.expectOperands(2, 2))
    return nullptr;
  unsigned toBytes, fromBytes = d.width(1);
  d.op.dst = d.dstAny(d.operand(0), toBytes);
  if (d.operand(0).kind == ptx::Operand::Sink)
    toBytes = std::max(2u, sizeOf(c.to));
  if (fromBytes == 0) {
    fromBytes = std::max(2u, sizeOf(c.from));
    d.op.a = d.src(1, fromBytes == sizeOf(c.from) ? c.from : Type::U16);
  } else {
    d.op.a = d.reg(d.operand(1).reg);
  }
  if (!chooseLoader(c, fromBytes) || !chooseStorer(c, toBytes))
    return nullptr;
  if (Handler handler = quick(c))
    return handler;
  d.op.extra = d.keep(std::make_shared<const Conversion>(c));
  return isInteger(c.from) && isInteger(c.to) && !c.sat ? convertIntegers
                                                        : convert;
}

constexpr RuleEntry rules[] = {{"cvt", buildCvt}};

} // namespace

std::span<const RuleEntry> emu::convertRules() { return rules; }
