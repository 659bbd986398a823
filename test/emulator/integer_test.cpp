//===- integer_test.cpp - integer instructions ---------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/emulator/Instructions.h"

#include <algorithm>
#include <bit>
#include <gtest/gtest.h>

using namespace tenon::test;

namespace {

using O = const Operands &;
using U = uint64_t;
using u32 = uint32_t;
using s32 = int32_t;
using s64 = int64_t;
using u128 = unsigned __int128;

const std::vector<Operands> &values() {
  static const std::vector<Operands> all =
      triples({0, 1, 2, 7, 31, 32, 33, 0x64, 0x7fff, 0x8000, 0xffff, 0x12345678,
               0x7fffffff, 0x80000000, 0xffffffff, 0x123456789abcdef0,
               0x7fffffffffffffff, 0x8000000000000000, ~0ull});
  return all;
}

u32 clamp32(s64 v) {
  return static_cast<u32>(std::clamp<s64>(v, INT32_MIN, INT32_MAX));
}

TEST(Instructions, Arithmetic) {
  checkCases(
      {{"add.s32 %r, %ra, %rb;", 'r', [](O o) -> U { return o.a + o.b; }},
       {"add.sat.s32 %r, %ra, %rb;", 'r',
        [](O o) -> U { return clamp32(s64(s32(o.a)) + s32(o.b)); }},
       {"sub.sat.s32 %r, %ra, %rb;", 'r',
        [](O o) -> U { return clamp32(s64(s32(o.a)) - s32(o.b)); }},
       {"sub.u16 %h, %ha, %hb;", 'h', [](O o) -> U { return o.a - o.b; }},
       {"add.u64 %d, %a, %b;", 'd', [](O o) -> U { return o.a + o.b; }},
       {"add.u32 %r, %ra, -5;", 'r', [](O o) -> U { return o.a - 5; }},
       {"mul.lo.s32 %r, %ra, %rb;", 'r', [](O o) -> U { return o.a * o.b; }},
       {"mul.hi.u32 %r, %ra, %rb;", 'r',
        [](O o) -> U { return U(u32(o.a)) * u32(o.b) >> 32; }},
       {"mul.hi.s32 %r, %ra, %rb;", 'r',
        [](O o) -> U { return s64(s32(o.a)) * s32(o.b) >> 32; }},
       {"mul.wide.s32 %d, %ra, %rb;", 'd',
        [](O o) -> U { return s64(s32(o.a)) * s32(o.b); }},
       {"mul.wide.u16 %r, %ha, %hb;", 'r',
        [](O o) -> U { return u32(uint16_t(o.a)) * uint16_t(o.b); }},
       {"mul.hi.u64 %d, %a, %b;", 'd',
        [](O o) -> U { return u128(o.a) * o.b >> 64; }},
       {"mul.hi.s64 %d, %a, %b;", 'd',
        [](O o) -> U { return __int128(s64(o.a)) * s64(o.b) >> 64; }},
       {"mul24.lo.s32 %r, %ra, %rb;", 'r',
        [](O o) -> U {
          return s64(s32(o.a << 8) >> 8) * (s32(o.b << 8) >> 8);
        }},
       {"mad.lo.u32 %r, %ra, %rb, %rc;", 'r',
        [](O o) -> U { return o.a * o.b + o.c; }},
       {"mad.hi.sat.s32 %r, %ra, %rb, %rc;", 'r',
        [](O o) -> U {
          return clamp32((s64(s32(o.a)) * s32(o.b) >> 32) + s32(o.c));
        }},
       {"mad.wide.s32 %d, %ra, %rb, %c;", 'd',
        [](O o) -> U { return s64(s32(o.a)) * s32(o.b) + o.c; }},
       {"sad.s32 %r, %ra, %rb, %rc;", 'r',
        [](O o) -> U {
          s64 d = s64(s32(o.a)) - s32(o.b);
          return o.c + U(d < 0 ? -d : d);
        }},
       {"setp.ne.u32 %p, %rb, 0; @%p div.u32 %r, %ra, "
        "%rb;",
        'r', [](O o) -> U { return u32(o.b) ? u32(o.a) / u32(o.b) : 0; }},
       {"setp.ne.u64 %p, %b, 0; @%p rem.s64 %d, %a, %b;", 'd',
        [](O o) -> U {
          return o.b == 0 || o.b == ~0ull ? 0 : s64(o.a) % s64(o.b);
        }},
       {"min.s32 %r, %ra, %rb;", 'r',
        [](O o) -> U { return U(std::min(s32(o.a), s32(o.b))); }},
       {"max.u64 %d, %a, %b;", 'd',
        [](O o) -> U { return std::max(o.a, o.b); }},
       {"max.s16x2 %r, %ra, %rb;", 'r',
        [](O o) -> U {
          auto low = std::max(int16_t(o.a), int16_t(o.b));
          auto high = std::max(int16_t(o.a >> 16), int16_t(o.b >> 16));
          return U(uint16_t(low)) | U(uint16_t(high)) << 16;
        }},
       {"min.relu.s32 %r, %ra, %rb;", 'r',
        [](O o) -> U { return U(std::max(0, std::min(s32(o.a), s32(o.b)))); }},
       {"abs.s64 %d, %a;", 'd',
        [](O o) -> U { return s64(o.a) < 0 ? -o.a : o.a; }},
       {"neg.s16 %h, %ha;", 'h', [](O o) -> U { return -o.a; }},
       {"dp4a.s32.u32 %r, %ra, %rb, %rc;", 'r',
        [](O o) -> U {
          s64 sum = s32(o.c);
          for (int i = 0; i < 4; ++i)
            sum += int8_t(o.a >> 8 * i) * int(uint8_t(o.b >> 8 * i));
          return U(sum);
        }},
       {"dp2a.hi.u32.s32 %r, %ra, %rb, %rc;", 'r',
        [](O o) -> U {
          s64 sum = s32(o.c);
          for (int i = 0; i < 2; ++i)
            sum += int(uint16_t(o.a >> 16 * i)) * int8_t(o.b >> (16 + 8 * i));
          return U(sum);
        }}},
      values());
}

TEST(Instructions, Carries) {
  checkCases(
      {{"add.cc.u32 %r1, %ra, %rb; addc.u32 %r, %rc, 0;", 'r',
        [](O o) -> U { return o.c + ((U(u32(o.a)) + u32(o.b)) >> 32); }},
       {"sub.cc.u32 %r1, %ra, %rb; subc.u32 %r, %rc, 0;", 'r',
        [](O o) -> U { return o.c - (u32(o.a) < u32(o.b)); }},
       {"add.cc.u64 %d1, %a, %b; addc.cc.u64 %d2, %c, %a; addc.u64 %d, 0, 0;",
        'd',
        [](O o) -> U {
          u128 low = u128(o.a) + o.b;
          return U((u128(o.c) + o.a + (low >> 64)) >> 64);
        }},
       {"mad.lo.cc.u32 %r1, %ra, %rb, %rc; madc.hi.u32 %r, %ra, %rb, 0;", 'r',
        [](O o) -> U { return (U(u32(o.a)) * u32(o.b) + u32(o.c)) >> 32; }}},
      values());
}

u32 reverse(u32 v) {
  u32 r = 0;
  for (int i = 0; i < 32; ++i)
    r |= (v >> i & 1) << (31 - i);
  return r;
}

TEST(Instructions, Bits) {
  checkCases(
      {{"shl.b32 %r, %ra, %rb;", 'r',
        [](O o) -> U { return u32(o.b) > 31 ? 0 : u32(o.a) << u32(o.b); }},
       {"shr.u16 %h, %ha, %rb;", 'h',
        [](O o) -> U { return u32(o.b) > 15 ? 0 : uint16_t(o.a) >> u32(o.b); }},
       {"shr.s64 %d, %a, %rb;", 'd',
        [](O o) -> U { return U(s64(o.a) >> std::min<u32>(u32(o.b), 63)); }},
       {"bfe.u32 %r, %ra, %rb, %rc;", 'r',
        [](O o) -> U {
          U pos = o.b & 255, len = o.c & 255;
          U v = pos < 32 ? u32(o.a) >> pos : 0;
          return len < 32 ? v & ((U(1) << len) - 1) : v;
        }},
       {"bfe.s32 %r, %ra, %rb, %rc;", 'r',
        [](O o) -> U { // bit by bit, as the manual says
          u32 a = u32(o.a), r = 0;
          int pos = o.b & 255, len = o.c & 255, msb = 31;
          u32 sign = len == 0 ? 0 : a >> std::min(pos + len - 1, msb) & 1;
          for (int i = 0; i <= msb; ++i)
            r |= (i < len && pos + i <= msb ? a >> (pos + i) & 1 : sign) << i;
          return r;
        }},
       {"bfi.b32 %r, %ra, %rb, %rc, 9;", 'r',
        [](O o) -> U {
          u32 r = u32(o.b);
          int pos = o.c & 255;
          for (int i = 0; i < 9 && pos + i <= 31; ++i)
            r = (r & ~(1u << (pos + i))) | (u32(o.a) >> i & 1) << (pos + i);
          return r;
        }},
       {"bfind.u32 %r, %ra;", 'r',
        [](O o) -> U {
          return u32(o.a) ? 31 - std::countl_zero(u32(o.a)) : ~0u;
        }},
       {"bfind.s64 %r, %a;", 'r',
        [](O o) -> U {
          U v = s64(o.a) < 0 ? ~o.a : o.a;
          return v ? 63 - std::countl_zero(v) : ~0u;
        }},
       {"bfind.shiftamt.u32 %r, %ra;", 'r',
        [](O o) -> U { return u32(o.a) ? std::countl_zero(u32(o.a)) : ~0u; }},
       {"popc.b64 %r, %a;", 'r', [](O o) -> U { return std::popcount(o.a); }},
       {"clz.b64 %r, %a;", 'r', [](O o) -> U { return std::countl_zero(o.a); }},
       {"brev.b32 %r, %ra;", 'r', [](O o) -> U { return reverse(u32(o.a)); }},
       {"cnot.b32 %r, %ra;", 'r', [](O o) -> U { return u32(o.a) == 0; }},
       {"lop3.b32 %r, %ra, %rb, %rc, 0x96;", 'r',
        [](O o) -> U { return o.a ^ o.b ^ o.c; }},
       {"lop3.b32 %r, %ra, %rb, %rc, 0xca;", 'r',
        [](O o) -> U { return (o.a & o.b) | (~o.a & o.c); }},
       {"shf.l.wrap.b32 %r, %ra, %rb, %rc;", 'r',
        [](O o) -> U {
          return ((U(u32(o.b)) << 32 | u32(o.a)) << (o.c & 31)) >> 32;
        }},
       {"shf.r.clamp.b32 %r, %ra, %rb, %rc;", 'r',
        [](O o) -> U {
          return (U(u32(o.b)) << 32 | u32(o.a)) >> std::min<u32>(u32(o.c), 32);
        }},
       {"prmt.b32 %r, %ra, %rb, %rc;", 'r',
        [](O o) -> U {
          U bytes = U(u32(o.b)) << 32 | u32(o.a), r = 0;
          for (int i = 0; i < 4; ++i) {
            U s = o.c >> 4 * i & 15, byte = bytes >> 8 * (s & 7) & 255;
            r |= (s & 8 ? (byte & 128 ? 255 : 0) : byte) << 8 * i;
          }
          return r;
        }},
       {"bmsk.clamp.b32 %r, %ra, %rb;", 'r',
        [](O o) -> U {
          u32 r = 0;
          for (U i = u32(o.a); i < 32 && i < U(u32(o.a)) + u32(o.b); ++i)
            r |= 1u << i;
          return r;
        }},
       {"fns.b32 %r, %ra, 8, 2;", 'r',
        [](O o) -> U {
          int left = 2;
          for (int i = 8; i < 32; ++i)
            if ((o.a >> i & 1) && --left == 0)
              return i;
          return ~0u;
        }},
       {"mov.b32 {%h1, %h2}, %ra; mov.b32 %r, {%h2, %h1};", 'r',
        [](O o) -> U { return u32(o.a) << 16 | u32(o.a) >> 16; }},
       {"mov.b64 %d, {%ra, %rb};", 'd',
        [](O o) -> U { return U(u32(o.b)) << 32 | u32(o.a); }}},
      values());
}

TEST(Instructions, Selections) {
  checkCases(
      {{"setp.lo.u32 %p, %ra, %rb; selp.u32 %r, 3, 5, %p;", 'r',
        [](O o) -> U { return u32(o.a) < u32(o.b) ? 3 : 5; }},
       {"setp.ge.s64 %p|%q, %a, %b; selp.u32 %r, 1, 0, %p; selp.u32 %r1, 2, 0, "
        "%q; add.u32 %r, %r, %r1;",
        'r', [](O o) -> U { return s64(o.a) >= s64(o.b) ? 1 : 2; }},
       {"setp.ne.s16 %q, %hc, 0; setp.lt.xor.s32 %p, %ra, %rb, !%q; selp.b64 "
        "%d, %a, %b, %p;",
        'd',
        [](O o) -> U {
          return (s32(o.a) < s32(o.b)) != !(o.c & 0xffff) ? o.a : o.b;
        }},
       {"set.gt.u32.s32 %r, %ra, %rb;", 'r',
        [](O o) -> U { return s32(o.a) > s32(o.b) ? ~0u : 0; }},
       {"slct.u64.s32 %d, %a, %b, %rc;", 'd',
        [](O o) -> U { return s32(o.c) >= 0 ? o.a : o.b; }},
       {"setp.eq.u32 %p, %ra, %rb; setp.eq.u32 %q, %rb, %rc; and.pred %p, %p, "
        "%q; not.pred %q, %p; selp.u32 %r, 1, 0, %q;",
        'r',
        [](O o) -> U {
          return !(u32(o.a) == u32(o.b) && u32(o.b) == u32(o.c));
        }}},
      values());
}

TEST(Instructions, IntegerConversions) {
  checkCases(
      {{"cvt.s32.s8 %r, %ra;", 'r',
        [](O o) -> U { return U(s32(int8_t(o.a))); }},
       {"cvt.u32.u8 %r, %ra;", 'r', [](O o) -> U { return uint8_t(o.a); }},
       {"cvt.s64.s16 %d, %ha;", 'd',
        [](O o) -> U { return U(s64(int16_t(o.a))); }},
       {"cvt.sat.u8.s32 %r, %ra;", 'r',
        [](O o) -> U { return U(std::clamp(s32(o.a), 0, 255)); }},
       {"cvt.sat.s16.s64 %r, %a;", 'r',
        [](O o) -> U {
          return U(s32(std::clamp<s64>(s64(o.a), -32768, 32767)));
        }},
       {"cvt.sat.s32.u64 %r, %a;", 'r',
        [](O o) -> U { return std::min<U>(o.a, 0x7fffffff); }},
       {"cvt.pack.sat.u8.s32.b32 %r, %ra, %rb, %rc;", 'r',
        [](O o) -> U {
          return U(std::clamp(s32(o.b), 0, 255)) |
                 U(std::clamp(s32(o.a), 0, 255)) << 8 | o.c << 16;
        }},
       {"cvt.pack.sat.s16.s32 %r, %ra, %rb;", 'r',
        [](O o) -> U {
          return U(uint16_t(std::clamp(s32(o.b), -32768, 32767))) |
                 U(uint16_t(std::clamp(s32(o.a), -32768, 32767))) << 16;
        }}},
      values());
}

} // namespace
