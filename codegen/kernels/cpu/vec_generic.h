//===- vec_generic.h - vectors of 4 f32 for any CPU ---------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The contract is in vec.h, the only file that includes this one.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CPU_VEC_GENERIC_H
#define TENON_KERNELS_CPU_VEC_GENERIC_H

#include "kernels/common/form.h"

namespace tn {
inline namespace TN_FORM {

/// The compiler's own vectors: SSE2 on any x86-64, NEON on AArch64.
typedef float vf_native __attribute__((vector_size(16)));
typedef int32_t vi_native __attribute__((vector_size(16)));
typedef uint32_t vu_native __attribute__((vector_size(16)));

/// All bits of a lane are set where it is true.
struct vm {
  vi_native m;
  vm() = default;
  explicit TN_FN vm(vi_native m) : m(m) {}
};

struct vf {
  static constexpr int width = 4;
  vf_native v;
  vf() = default;
  explicit TN_FN vf(vf_native v) : v(v) {}
  TN_FN vf(float x) : v(vf_native{x, x, x, x}) {}
};

struct vi {
  vi_native v;
  vi() = default;
  explicit TN_FN vi(vi_native v) : v(v) {}
  TN_FN vi(int32_t x) : v(vi_native{x, x, x, x}) {}
};

TN_FN vf operator+(vf a, vf b) { return vf(a.v + b.v); }
TN_FN vf operator-(vf a, vf b) { return vf(a.v - b.v); }
TN_FN vf operator*(vf a, vf b) { return vf(a.v * b.v); }
TN_FN vf operator/(vf a, vf b) { return vf(a.v / b.v); }

TN_FN vm operator<(vf a, vf b) { return vm(vi_native(a.v < b.v)); }
TN_FN vm operator<=(vf a, vf b) { return vm(vi_native(a.v <= b.v)); }
TN_FN vm operator==(vf a, vf b) { return vm(vi_native(a.v == b.v)); }

TN_FN vm operator&(vm a, vm b) { return vm(a.m & b.m); }
TN_FN vm operator|(vm a, vm b) { return vm(a.m | b.m); }
TN_FN vm operator^(vm a, vm b) { return vm(a.m ^ b.m); }
TN_FN vm operator~(vm a) { return vm(~a.m); }
TN_FN bool any(vm a) { return (a.m[0] | a.m[1] | a.m[2] | a.m[3]) != 0; }
TN_FN bool all(vm a) { return (a.m[0] & a.m[1] & a.m[2] & a.m[3]) != 0; }
TN_FN vm mask_of(bool x) {
  int32_t b = x ? -1 : 0;
  return vm(vi_native{b, b, b, b});
}
TN_FN vm first_lanes(int64_t n) {
  int32_t c = n > 4 ? 4 : int32_t(n);
  return vm(vi_native(vi_native{0, 1, 2, 3} < vi_native{c, c, c, c}));
}

// Wrapping, as instructions do.
TN_FN vi operator+(vi a, vi b) {
  return vi(vi_native(vu_native(a.v) + vu_native(b.v)));
}
TN_FN vi operator-(vi a, vi b) {
  return vi(vi_native(vu_native(a.v) - vu_native(b.v)));
}
TN_FN vi operator&(vi a, vi b) { return vi(a.v & b.v); }
TN_FN vi operator|(vi a, vi b) { return vi(a.v | b.v); }
TN_FN vi operator^(vi a, vi b) { return vi(a.v ^ b.v); }
template <int N> TN_FN vi shift_left(vi a) { return vi(a.v << N); }
template <int N> TN_FN vi shift_right(vi a) { return vi(a.v >> N); }
TN_FN vm is_zero(vi a) { return vm(vi_native(a.v == vi(0).v)); }

TN_FN vi bits(vf a) { return vi(vi_native(a.v)); }
TN_FN vf from_bits(vi a) { return vf(vf_native(a.v)); }
TN_FN vf operator-(vf a) { return from_bits(bits(a) ^ vi(INT32_MIN)); }

/// Two roundings: this form has no fused multiply-add.
TN_FN vf fma(vf a, vf b, vf c) { return a * b + c; }
TN_FN vf fnma(vf a, vf b, vf c) { return c - a * b; }
TN_FN vf select(vm m, vf a, vf b) {
  return vf(vf_native((vi_native(a.v) & m.m) | (vi_native(b.v) & ~m.m)));
}
TN_FN vf min_raw(vf a, vf b) { return select(a < b, a, b); }
TN_FN vf max_raw(vf a, vf b) { return select(b < a, a, b); }
TN_FN vf abs(vf a) { return from_bits(bits(a) & vi(INT32_MAX)); }
TN_FN vf copysign(vf magnitude, vf sign) {
  return from_bits((bits(magnitude) & vi(INT32_MAX)) |
                   (bits(sign) & vi(INT32_MIN)));
}
TN_FN vf sqrt(vf a) {
  for (int i = 0; i < 4; ++i)
    a.v[i] = __builtin_sqrtf(a.v[i]);
  return a;
}

/// Adding and taking away 1.5 * 2^23 leaves the nearest integer; from 2^23 on
/// every f32 is an integer already.
TN_FN vf round_even(vf a) {
  vf magnitude = abs(a), big = vf(0x1p23f);
  vf rounded = vf(magnitude.v + big.v);
  return select(magnitude < big, copysign(rounded - big, a), a);
}
TN_FN vf floor(vf a) {
  vf r = round_even(a);
  return select(a < r, r - vf(1), r);
}
TN_FN vf ceil(vf a) {
  vf r = round_even(a);
  return copysign(select(r < a, r + vf(1), r), a);
}
TN_FN vf trunc(vf a) { return copysign(floor(abs(a)), a); }

TN_FN vi to_int(vf a) {
  vf r = round_even(a);
  return vi(vi_native{int32_t(r.v[0]), int32_t(r.v[1]), int32_t(r.v[2]),
                      int32_t(r.v[3])});
}
TN_FN vf to_float(vi a) { return vf(__builtin_convertvector(a.v, vf_native)); }

/// In two steps, since 2^n alone may lie outside f32's range.
TN_FN vf scale2(vf x, vf n) {
  vi whole = to_int(n), half = shift_right<1>(whole);
  vi rest = whole - half;
  return x * from_bits(shift_left<23>(half + vi(127))) *
         from_bits(shift_left<23>(rest + vi(127)));
}

TN_FN vf load(const float *p) {
  vf r;
  __builtin_memcpy(&r.v, p, sizeof(r.v));
  return r;
}
TN_FN void store(float *p, vf x) { __builtin_memcpy(p, &x.v, sizeof(x.v)); }
TN_FN vf load_n(const float *p, int64_t n) {
  if (n >= 4)
    return load(p);
  vf r = vf(0);
  for (int64_t i = 0; i < n; ++i)
    r.v[i] = p[i];
  return r;
}
TN_FN void store_n(float *p, vf x, int64_t n) {
  if (n >= 4)
    return store(p, x);
  for (int64_t i = 0; i < n; ++i)
    p[i] = x.v[i];
}

TN_FN vm load_mask_n(const uint8_t *p, int64_t n) {
  vi_native r = {};
  for (int64_t i = 0; i < n && i < 4; ++i)
    r[i] = p[i] ? -1 : 0;
  return vm(r);
}
TN_FN vm load_mask(const uint8_t *p) { return load_mask_n(p, 4); }
TN_FN void store_mask_n(uint8_t *p, vm x, int64_t n) {
  for (int64_t i = 0; i < n && i < 4; ++i)
    p[i] = x.m[i] & 1;
}
TN_FN void store_mask(uint8_t *p, vm x) { store_mask_n(p, x, 4); }

TN_FN float reduce_add(vf a) { return (a.v[0] + a.v[2]) + (a.v[1] + a.v[3]); }
TN_FN float reduce_max(vf a) {
  float x = a.v[0] > a.v[1] ? a.v[0] : a.v[1];
  float y = a.v[2] > a.v[3] ? a.v[2] : a.v[3];
  return x > y ? x : y;
}
TN_FN float reduce_min(vf a) {
  float x = a.v[0] < a.v[1] ? a.v[0] : a.v[1];
  float y = a.v[2] < a.v[3] ? a.v[2] : a.v[3];
  return x < y ? x : y;
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CPU_VEC_GENERIC_H
