//===- Lanes.h - one function for 32 lanes --------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_EMULATOR_EXEC_LANES_H
#define TENON_RUNTIME_EMULATOR_EXEC_LANES_H

/// \file
/// `Lift<f>::run` is the handler of an instruction whose result in a lane is
/// f(a), f(a, b) or f(a, b, c) of that lane's operands. Registers hold values
/// of the operand's width, so f's types say how they are read. Loops over all
/// lanes are what the compiler vectorises; the few instructions that run under
/// a partial mask compute all lanes too and keep some.

#include "runtime/emulator/exec/State.h"

namespace tenon::emu {

template <typename T> T *lanes(const Warp &warp, Ref ref) {
  return reinterpret_cast<T *>(warp.base[ref >> 30] + (ref & OffsetMask));
}

inline uint32_t &predicate(const Warp &warp, Ref ref) {
  return *lanes<uint32_t>(warp, ref);
}

/// Writes value(lane) to the lanes of `mask` of `d`.
template <typename D, typename Value>
[[gnu::always_inline]] inline void each(D *d, uint32_t mask, Value &&value) {
  if (mask == ~0u) {
#pragma GCC ivdep
    for (unsigned i = 0; i != 32; ++i)
      d[i] = value(i);
    return;
  }
  D results[32];
#pragma GCC ivdep
  for (unsigned i = 0; i != 32; ++i)
    results[i] = value(i);
#pragma GCC ivdep
  for (unsigned i = 0; i != 32; ++i)
    d[i] = mask >> i & 1 ? results[i] : d[i];
}

/// Sets the bits of `mask` of a predicate to test(lane).
template <typename Test>
[[gnu::always_inline]] inline uint32_t maskOf(Test &&test) {
  uint32_t bits = 0;
#pragma GCC ivdep
  for (unsigned i = 0; i != 32; ++i)
    bits |= static_cast<uint32_t>(test(i) ? 1 : 0) << i;
  return bits;
}

inline void setPredicate(Warp &warp, Ref ref, uint32_t mask, uint32_t bits) {
  uint32_t &p = predicate(warp, ref);
  p = (p & ~mask) | (bits & mask);
}

/// Calls f(lane) for the lanes of `mask`, the lowest first.
template <typename F> void forLanes(uint32_t mask, F &&f) {
  for (; mask != 0; mask &= mask - 1)
    f(static_cast<unsigned>(__builtin_ctz(mask)));
}

template <auto F> struct Lift;

template <typename D, typename A, D (*F)(A)> struct Lift<F> {
  static void run(Warp &warp, const Op &op, uint32_t mask) {
    const A *a = lanes<A>(warp, op.a);
    each(lanes<D>(warp, op.dst), mask, [=](unsigned i) { return F(a[i]); });
  }
};

template <typename D, typename A, typename B, D (*F)(A, B)> struct Lift<F> {
  static void run(Warp &warp, const Op &op, uint32_t mask) {
    const A *a = lanes<A>(warp, op.a);
    const B *b = lanes<B>(warp, op.b);
    each(lanes<D>(warp, op.dst), mask,
         [=](unsigned i) { return F(a[i], b[i]); });
  }
};

template <typename D, typename A, typename B, typename C, D (*F)(A, B, C)>
struct Lift<F> {
  static void run(Warp &warp, const Op &op, uint32_t mask) {
    const A *a = lanes<A>(warp, op.a);
    const B *b = lanes<B>(warp, op.b);
    const C *c = lanes<C>(warp, op.c);
    each(lanes<D>(warp, op.dst), mask,
         [=](unsigned i) { return F(a[i], b[i], c[i]); });
  }
};

/// The handler of F<T>, T being the one of the given types that has a width of
/// 2, 4 or (where given) 8 bytes; null for other widths.
template <template <typename> class F, typename T16, typename T32,
          typename... T64>
Handler liftForWidth(unsigned bytes) {
  switch (bytes) {
  case sizeof(T16):
    return Lift<F<T16>::of>::run;
  case sizeof(T32):
    return Lift<F<T32>::of>::run;
  case 8:
    if constexpr (sizeof...(T64) == 1)
      return Lift<F<T64...>::of>::run;
    return nullptr;
  default:
    return nullptr;
  }
}

} // namespace tenon::emu

#endif // TENON_RUNTIME_EMULATOR_EXEC_LANES_H
