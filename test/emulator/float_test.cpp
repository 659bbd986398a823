//===- float_test.cpp - floating-point instructions ----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/emulator/Instructions.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

using namespace tenon::test;

namespace {

using O = const Operands &;
using U = uint64_t;
using u32 = uint32_t;
using Exact = __float128; // holds sums and products of these floats exactly

float f(U bits) { return std::bit_cast<float>(u32(bits)); }
U bits(float v) {
  return v != v ? 0x7fffffffu : std::bit_cast<u32>(v); // the NaN of f32
}
double d(U value) { return std::bit_cast<double>(value); }
U bits64(double v) { return std::bit_cast<U>(v); }

float half(U value) {
  auto low = static_cast<uint16_t>(value);
  return static_cast<float>(std::bit_cast<_Float16>(low));
}
U halfBits(float v) {
  return v != v ? 0x7fff : std::bit_cast<uint16_t>(static_cast<_Float16>(v));
}
U halfBits(double v) {
  return v != v ? 0x7fff : std::bit_cast<uint16_t>(static_cast<_Float16>(v));
}

enum class Round { Zero, Down, Up };

/// The float next to an exact value in a direction.
template <typename T> T towards(Exact exact, Round round) {
  T v = static_cast<T>(exact);
  if (exact != exact || std::isinf(static_cast<double>(exact)))
    return v;
  constexpr T inf = std::numeric_limits<T>::infinity();
  bool down = round == Round::Down || (round == Round::Zero && exact > 0);
  if (down && Exact(v) > exact)
    v = std::nextafter(v, -inf);
  if (!down && Exact(v) < exact)
    v = std::nextafter(v, inf);
  return v;
}

u32 word(float v) { return std::bit_cast<u32>(v); }

const std::vector<Operands> &floats() {
  static const std::vector<Operands> all = triples(
      {word(0.0f),     word(-0.0f),       word(1.0f),      word(-1.5f),
       word(0.1f),     word(3e-5f),       word(-7.25f),    word(65519.0f),
       word(65520.0f), word(1e20f),       word(-3e38f),    word(1e-40f),
       word(-1e-45f),  word(INFINITY),    word(-INFINITY), 0x7fc01234,
       word(448.0f),   word(16777217.0f), word(2.5f),      word(-0.50000006f)});
  return all;
}
/// Without NaN and infinities, and with results that stay finite.
const std::vector<Operands> &tame() {
  static const std::vector<Operands> all = triples(
      {word(1.0f), word(-1.5f), word(0.1f), word(3e-5f), word(-7.25f),
       word(65519.0f), word(1e10f), word(3.1415927f), word(16777215.0f)});
  return all;
}

float flush(float v) {
  return std::fabs(v) < std::numeric_limits<float>::min()
             ? std::copysign(0.0f, v)
             : v;
}

TEST(Instructions, Floats) {
  checkCases(
      {{"add.f32 %r, %ra, %rb;", 'r',
        [](O o) { return bits(f(o.a) + f(o.b)); }},
       {"sub.ftz.f32 %r, %ra, %rb;", 'r',
        [](O o) { return bits(flush(flush(f(o.a)) - flush(f(o.b)))); }},
       {"mul.f32 %r, %ra, %rb;", 'r',
        [](O o) { return bits(f(o.a) * f(o.b)); }},
       {"mul.sat.f32 %r, %ra, %rb;", 'r',
        [](O o) {
          float v = f(o.a) * f(o.b);
          return bits(v > 0 ? std::min(v, 1.0f) : 0.0f);
        }},
       {"fma.rn.f32 %r, %ra, %rb, %rc;", 'r',
        [](O o) { return bits(std::fma(f(o.a), f(o.b), f(o.c))); }},
       {"div.rn.f32 %r, %ra, %rb;", 'r',
        [](O o) { return bits(f(o.a) / f(o.b)); }},
       {"rcp.rn.f32 %r, %ra;", 'r', [](O o) { return bits(1.0f / f(o.a)); }},
       {"sqrt.rn.f32 %r, %ra;", 'r',
        [](O o) { return bits(std::sqrt(f(o.a))); }},
       {"neg.f32 %r, %ra;", 'r', [](O o) { return (o.a ^ 0x80000000u); }},
       {"abs.f32 %r, %ra;", 'r', [](O o) { return o.a & 0x7fffffffu; }},
       {"min.f32 %r, %ra, %rb;", 'r',
        [](O o) -> U {
          float a = f(o.a), b = f(o.b);
          if (a != a || b != b)
            return bits(a != a ? b : a);
          if (a == b)
            return std::signbit(a) ? o.a : o.b;
          return a < b ? o.a : o.b;
        }},
       {"max.NaN.f32 %r, %ra, %rb;", 'r',
        [](O o) -> U {
          float a = f(o.a), b = f(o.b);
          if (a != a || b != b)
            return 0x7fffffff;
          if (a == b)
            return std::signbit(a) ? o.b : o.a;
          return a > b ? o.a : o.b;
        }},
       {"min.xorsign.abs.f32 %r, %ra, %rb;", 'r',
        [](O o) -> U {
          float a = std::fabs(f(o.a)), b = std::fabs(f(o.b));
          float least = a != a ? b : b != b ? a : std::min(a, b);
          U sign = (o.a ^ o.b) & 0x80000000u;
          return least != least ? 0x7fffffff : (word(least) | sign);
        }},
       {"copysign.f32 %r, %ra, %rb;", 'r',
        [](O o) -> U { return (o.b & 0x7fffffff) | (o.a & 0x80000000u); }},
       {"setp.ltu.f32 %p, %ra, %rb; selp.u32 %r, 1, 0, %p;", 'r',
        [](O o) -> U { return !(f(o.a) >= f(o.b)); }},
       {"setp.ne.f32 %p, %ra, %rb; selp.u32 %r, 1, 0, %p;", 'r',
        [](O o) -> U {
          return f(o.a) == f(o.a) && f(o.b) == f(o.b) && f(o.a) != f(o.b);
        }},
       {"setp.neu.ftz.f32 %p, %ra, %rb; selp.u32 %r, 1, 0, %p;", 'r',
        [](O o) -> U { return flush(f(o.a)) != flush(f(o.b)); }},
       {"setp.nan.or.f32 %p|%q, %ra, %rb, 0; selp.u32 %r, 1, 0, %p; selp.u32 "
        "%r1, 2, 0, %q; or.b32 %r, %r, %r1;",
        'r',
        [](O o) -> U { return f(o.a) != f(o.a) || f(o.b) != f(o.b) ? 1 : 2; }},
       {"set.le.f32.f32 %r, %ra, %rb;", 'r',
        [](O o) -> U { return f(o.a) <= f(o.b) ? word(1.0f) : 0; }},
       {"testp.subnormal.f32 %p, %ra; selp.u32 %r, 1, 0, %p;", 'r',
        [](O o) -> U {
          return (o.a & 0x7f800000) == 0 && (o.a & 0x7fffff) != 0;
        }},
       {"cvt.f64.f32 %d1, %ra; cvt.f64.f32 %d2, %rb; fma.rn.f64 %d1, %d1, %d2, "
        "0d3FF0000000000000; setp.nan.f64 %p, %d1, %d1; selp.f64 %d, "
        "0d0000000000000000, %d1, %p;",
        'd',
        [](O o) {
          double v = std::fma(double(f(o.a)), double(f(o.b)), 1.0);
          return v != v ? 0 : bits64(v);
        }}},
      floats());
}

TEST(Instructions, DirectedRounding) {
  checkCases(
      {{"add.rz.f32 %r, %ra, %rb;", 'r',
        [](O o) {
          return bits(towards<float>(Exact(f(o.a)) + f(o.b), Round::Zero));
        }},
       {"add.rm.f32 %r, %ra, %rb;", 'r',
        [](O o) {
          Exact sum = Exact(f(o.a)) + f(o.b);
          // An exact zero of unlike signs is -0 when rounding down.
          return sum == 0 ? 0x80000000u
                          : bits(towards<float>(sum, Round::Down));
        }},
       {"mul.rp.f32 %r, %ra, %rb;", 'r',
        [](O o) {
          return bits(towards<float>(Exact(f(o.a)) * f(o.b), Round::Up));
        }},
       {"fma.rm.f32 %r, %ra, %rb, %rc;", 'r',
        [](O o) {
          return bits(
              towards<float>(Exact(f(o.a)) * f(o.b) + f(o.c), Round::Down));
        }},
       {"cvt.f64.f32 %d1, %ra; cvt.f64.f32 %d2, %rb; add.rp.f64 %d, %d1, %d2;",
        'd',
        [](O o) {
          return bits64(towards<double>(Exact(f(o.a)) + f(o.b), Round::Up));
        }},
       {"div.rz.f32 %r, %ra, %rb;", 'r',
        [](O o) {
          return bits(towards<float>(Exact(f(o.a)) / f(o.b), Round::Zero));
        }}},
      tame());
}

/// The bits of the e4m3 number nearest to v, found by trying all of them.
U nearest8(float v, bool wide, bool saturate) {
  if (v != v)
    return 0x7f;
  U sign = std::signbit(v) ? 0x80 : 0, best = 0;
  int mantissa = wide ? 2 : 3, bias = wide ? 15 : 7;
  Exact a = std::fabs(v), distance = std::numeric_limits<double>::max();
  U last = wide ? 0x7b : 0x7e; // the greatest finite
  auto value = [&](U code) {
    int e = static_cast<int>(code >> mantissa),
        m = code & ((1 << mantissa) - 1);
    double unit = std::ldexp(1.0, std::max(e, 1) - bias - mantissa);
    return Exact(unit * (m + (e ? 1 << mantissa : 0)));
  };
  for (U code = 0; code <= last + 1; ++code) { // one more: it would overflow
    Exact apart = value(code) > a ? value(code) - a : a - value(code);
    if (apart < distance || (apart == distance && code % 2 == 0)) {
      best = code;
      distance = apart;
    }
  }
  if (best > last || std::isinf(v))
    best = saturate ? last : wide ? 0x7c : 0x7f;
  return sign | best;
}

TEST(Instructions, FloatConversions) {
  checkCases(
      {{"cvt.rni.s32.f32 %r, %ra;", 'r',
        [](O o) -> U {
          double v = f(o.a);
          return v != v ? 0
                        : U(int64_t(std::clamp(std::nearbyint(v), -2147483648.0,
                                               2147483647.0)));
        }},
       {"cvt.rzi.u16.f32 %h, %ra;", 'h',
        [](O o) -> U {
          double v = f(o.a);
          return v != v ? 0 : U(std::clamp(std::trunc(v), 0.0, 65535.0));
        }},
       {"cvt.rmi.f32.f32 %r, %ra;", 'r',
        [](O o) { return bits(std::floor(f(o.a))); }},
       {"cvt.rn.f16.f32 %h, %ra;", 'h', [](O o) { return halfBits(f(o.a)); }},
       {"cvt.rn.relu.f16.f32 %h, %ra;", 'h',
        [](O o) -> U {
          return f(o.a) < 0 || o.a == 0x80000000u ? 0 : halfBits(f(o.a));
        }},
       {"cvt.f32.f16 %r, %ha;", 'r', [](O o) { return bits(half(o.a)); }},
       {"cvt.rn.f16x2.f32 %r, %ra, %rb;", 'r',
        [](O o) -> U { return halfBits(f(o.a)) << 16 | halfBits(f(o.b)); }},
       {"cvt.rn.satfinite.e4m3x2.f32 %h, %ra, %rb;", 'h',
        [](O o) -> U {
          return nearest8(f(o.a), false, true) << 8 |
                 nearest8(f(o.b), false, true);
        }},
       {"cvt.rn.satfinite.e5m2x2.f32 %h, %ra, %rb;", 'h',
        [](O o) -> U {
          return nearest8(f(o.a), true, true) << 8 |
                 nearest8(f(o.b), true, true);
        }},
       {"cvt.rna.tf32.f32 %r1, %ra; and.b32 %r, %r1, 0xffffe000;", 'r',
        [](O o) -> U {
          float v = f(o.a);
          if (v != v)
            return 0x7fffe000;
          return std::isinf(v) ? U(u32(o.a)) : (o.a + 0x1000) & 0xffffe000u;
        }},
       {"cvt.rn.f32.s32 %r, %ra;", 'r',
        [](O o) { return bits(static_cast<float>(int32_t(o.a))); }},
       {"mov.b64 %d1, {%rb, %ra}; cvt.rn.f32.u64 %r, %d1;", 'r',
        [](O o) {
          return bits(static_cast<float>(U(u32(o.a)) << 32 | u32(o.b)));
        }},
       {"mov.b64 %d1, {%rb, %ra}; cvt.rp.f32.s64 %r, %d1;", 'r',
        [](O o) {
          auto v = static_cast<int64_t>(U(u32(o.a)) << 32 | u32(o.b));
          return bits(towards<float>(Exact(v), Round::Up));
        }},
       {"mov.b64 %d1, {%rb, %ra}; cvt.rz.f64.u64 %d, %d1;", 'd',
        [](O o) {
          U v = U(u32(o.a)) << 32 | u32(o.b);
          return bits64(towards<double>(Exact(v), Round::Zero));
        }},
       {"cvt.f64.f32 %d1, %ra; mul.f64 %d1, %d1, 0d3FF0000010000000; cvt.rn.f32"
        ".f64 %r, %d1;",
        'r',
        [](O o) {
          return bits(static_cast<float>(f(o.a) * d(0x3ff0000010000000)));
        }}},
      floats());
}

const std::vector<Operands> &halves() {
  static const std::vector<Operands> all =
      triples({0x3c00, 0xbc01, 0x0001, 0x8001, 0x03ff, 0x7bff, 0x7c00, 0xfc00,
               0x7e01, 0x0000, 0x8000, 0x3555, 0x4248, 0xc900, 0x5640});
  return all;
}

/// One rounding of an exact sum.
U fmaHalf(U a, U b, U c) {
  Exact sum = Exact(half(a)) * half(b) + half(c);
  auto wide = static_cast<double>(sum);
  // Sets the last bit where the double is not the whole.
  if (wide == wide && !std::isinf(wide) && Exact(wide) != sum)
    wide = std::bit_cast<double>(bits64(towards<double>(sum, Round::Zero)) | 1);
  return halfBits(wide);
}

U both(U low, U high) { return (low & 0xffff) | high << 16; }

TEST(Instructions, Halves) {
  checkCases(
      {{"add.f16 %h, %ha, %hb;", 'h',
        [](O o) { return halfBits(half(o.a) + half(o.b)); }},
       {"mov.b32 %r1, {%ha, %hb}; mov.b32 %r2, {%hb, %hc}; mul.f16x2 %r, %r1, "
        "%r2;",
        'r',
        [](O o) {
          return both(halfBits(half(o.a) * half(o.b)),
                      halfBits(half(o.b) * half(o.c)));
        }},
       {"fma.rn.f16 %h, %ha, %hb, %hc;", 'h',
        [](O o) { return fmaHalf(o.a, o.b, o.c); }},
       {"fma.rn.relu.f16 %h, %ha, %hb, %hc;", 'h',
        [](O o) -> U {
          U r = fmaHalf(o.a, o.b, o.c);
          return r != 0x7fff && (r & 0x8000) ? 0 : r;
        }},
       {"min.NaN.f16 %h, %ha, %hb;", 'h',
        [](O o) -> U {
          float a = half(o.a), b = half(o.b);
          if (a != a || b != b)
            return 0x7fff;
          if (a == b)
            return o.a | o.b;
          return a < b ? o.a : o.b;
        }},
       {"setp.gt.f16 %p, %ha, %hb; selp.u32 %r, 1, 0, %p;", 'r',
        [](O o) -> U { return half(o.a) > half(o.b); }},
       {"mov.b32 %r1, {%ha, %hb}; mov.b32 %r2, {%hc, %hc}; "
        "setp.leu.f16x2 %p|%q, %r1, %r2; selp.u32 %r, 1, 0, %p; selp.u32 "
        "%r3, 2, 0, %q; or.b32 %r, %r, %r3;",
        'r',
        [](O o) -> U {
          return (half(o.a) > half(o.c) ? 0 : 1) |
                 (half(o.b) > half(o.c) ? 0 : 2);
        }},
       {"neg.f16 %h, %ha;", 'h', [](O o) -> U { return o.a ^ 0x8000; }},
       {"cvt.rzi.s32.f16 %r, %ha;", 'r',
        [](O o) -> U {
          double v = half(o.a);
          return v != v ? 0
                        : U(int64_t(std::clamp(std::trunc(v), -2147483648.0,
                                               2147483647.0)));
        }}},
      halves());
}

} // namespace
